// A warp's stream of pieces, which bulk copies load to its stage buffer in shared memory. The including file defines
// MASK_BYTES, of a step; REPEATED, the bytes that a buffer has twice; LATE, which see; and FIRST_PIECE(p, part), the
// first piece of a split.

#pragma once
#include "lanestream.cuh"

// Stream is a stream of pieces, values and mask, and the stage buffer that a warp loads them into. A slot of the buffer
// has the rows of a piece, and behind the buffer the first rows are repeated, so that a chain's next rows lie behind
// each other. Where room is scarce (LATE) a piece's mask comes with the last rows that are read with it, those of piece
// + window - 1: there are fewer slots for masks. (Elsewhere that takes registers which word has no longer.)
struct Stream {
    const unsigned char *values, *mask; // of the next piece
    u32 piece_bytes, mask_bytes; // of a piece
    u32 count, total, lookahead,
        late; // pieces of the mask; of values; pieces that a step looks ahead; pieces by which the mask comes later
    u32 slots, mask_slots, at, masks, barriers; // in shared memory
    u32 coming = 0, left, to = 0; // the next piece; bytes of values left, and where it goes in the buffer

    // With a piece's mask come `concurrent` bytes, a multiple of 128, which lie behind the masks.
    __device__ __forceinline__ Stream(const Index &index, const u32 *mask_, const u16 *values_, const Params &p,
                                      u32 group, u32 split, u32 at_, u32 barriers_, u32 concurrent = 0)
        : at(at_), barriers(barriers_) {
        u64 stream = (u64)group * p.splits + split;
        u32 first = FIRST_PIECE(p, split), row = index.row(stream);
        left = (index.row(stream + 1) - row) * ROW_BYTES, piece_bytes = index.piece_rows(stream) * ROW_BYTES;
        lookahead = p.window - 1, late = LATE ? lookahead : 0, count = FIRST_PIECE(p, split + 1) - first,
        total = count + lookahead;
        mask_bytes = p.steps * MASK_BYTES;
        slots =
            min((BUFFER_BYTES - REPEATED + late * (mask_bytes + concurrent)) / (piece_bytes + mask_bytes + concurrent),
                MOST_SLOTS),
        mask_slots = slots - late;
        masks = at + slots * piece_bytes + REPEATED;
        values = (const unsigned char *)values_ + (u64)row * ROW_BYTES;
        mask = (const unsigned char *)mask_ + ((u64)group * p.pieces + first) * mask_bytes;
    }

    // begin starts loading the first pieces.
    __device__ __forceinline__ void begin() {
        if (count > 0)
            for (u32 j = 0; j < min(slots, total); j++) fetch(j, j - late);
    }
    // masked tells whether piece j of values comes with a mask.
    __device__ __forceinline__ bool masked(u32 j) const { return j >= late && j < count + late; }
    // fetch starts loading the next piece, and tells whether a mask comes with it. All lanes call it when they are done
    // with its slots.
    __device__ __forceinline__ bool fetch(u32 slot, u32 mask_slot) {
        return fetch(slot, mask_slot, StageBuffer::elected());
    }
    // This one is for lanes that load a stream each.
    __device__ __forceinline__ bool fetch(u32 slot, u32 mask_slot, bool elected) {
        u32 n = min(piece_bytes, left),
            mirrored = to < REPEATED ? min(n, REPEATED - to) : 0; // bytes that are there twice
        u32 bits = coming >= late && coming < count + late ? mask_bytes : 0, barrier = barriers + 8 * slot;
        if (elected) {
            barrier_expect(barrier, n + mirrored + bits);
            if (n > 0) StageBuffer::bulk(at + to, values, n, barrier);
            if (mirrored > 0) StageBuffer::bulk(at + slots * piece_bytes + to, values, mirrored, barrier);
            if (bits > 0) StageBuffer::bulk(masks + mask_slot * mask_bytes, mask, bits, barrier);
        }
        values += n, left -= n, mask += bits, coming++;
        to = slot + 1 == slots ? 0 : to + piece_bytes;
        return bits > 0;
    }
};
