// A warp's stream, which bulk copies load into its stage buffer in shared memory. The including file defines MASK_BYTES
// (of a step's mask), REPEATED (bytes of the buffer that are repeated behind its end), LATE (see Stream) and
// FIRST_SEGMENT(p, split), the first segment of a split.

#pragma once
#include "lanestream.cuh"

// Stream is a stream in memory, and the stage buffer that its warp loads it into, a segment to a slot. The buffer's
// first rows are repeated behind its end, so that the next values of a chain always lie at increasing addresses. While
// segment j is multiplied, rows of values of segments j to j + lookahead are read. Where shared memory is scarce (LATE)
// the mask of segment j is loaded together with the values of segment j + lookahead, which takes fewer slots for masks.
// Elsewhere it is not, because that takes registers which Warp::word needs.
struct Stream {
    const unsigned char *values, *mask; // of the next segment to load
    u32 segment_bytes, mask_bytes; // of a segment: its values, its mask
    u32 count, total, // segments with a mask; segments with a mask or values
        lookahead, // segments past the current one whose values may be read
        late; // the mask of segment j is loaded with the values of segment j + late
    u32 slots, mask_slots, // of the buffer
        at, masks, barriers; // addresses in shared memory
    u32 coming = 0, // the next segment to load
        left, to = 0; // bytes of values that are not loaded yet; where the next ones go in the buffer

    // Each slot of a mask has room for `concurrent` bytes more, a multiple of 128, behind all masks.
    __device__ __forceinline__ Stream(const Index &index, const u32 *mask_, const u16 *values_, const Params &p,
                                      u32 group, u32 split, u32 at_, u32 barriers_, u32 concurrent = 0)
        : at(at_), barriers(barriers_) {
        u64 stream = (u64)group * p.splits + split;
        u32 first = FIRST_SEGMENT(p, split), row = index.row(stream);
        left = (index.row(stream + 1) - row) * ROW_BYTES, segment_bytes = index.segment_rows(stream) * ROW_BYTES;
        lookahead = p.window - 1, late = LATE ? lookahead : 0, count = FIRST_SEGMENT(p, split + 1) - first,
        total = count + lookahead;
        mask_bytes = p.steps * MASK_BYTES;
        slots = min((BUFFER_BYTES - REPEATED + late * (mask_bytes + concurrent)) /
                        (segment_bytes + mask_bytes + concurrent),
                    MOST_SLOTS),
        mask_slots = slots - late;
        masks = at + slots * segment_bytes + REPEATED;
        values = (const unsigned char *)values_ + (u64)row * ROW_BYTES;
        mask = (const unsigned char *)mask_ + ((u64)group * p.segments + first) * mask_bytes;
    }

    // begin starts loading the first segments, as many as there are slots.
    __device__ __forceinline__ void begin() {
        if (count > 0)
            for (u32 j = 0; j < min(slots, total); j++) fetch(j, j - late);
    }
    // masked reports whether a mask is loaded with the values of segment j.
    __device__ __forceinline__ bool masked(u32 j) const { return j >= late && j < count + late; }
    // fetch starts loading the next segment, and reports whether its copy includes a mask. All lanes call it when they
    // have used the slot's last segment.
    __device__ __forceinline__ bool fetch(u32 slot, u32 mask_slot) {
        return fetch(slot, mask_slot, StageBuffer::elected());
    }
    // This form is for warps that load a stream for each lane: `elected` says which lanes load.
    __device__ __forceinline__ bool fetch(u32 slot, u32 mask_slot, bool elected) {
        u32 n = min(segment_bytes, left), mirrored = to < REPEATED ? min(n, REPEATED - to) : 0; // bytes to repeat
        u32 bits = coming >= late && coming < count + late ? mask_bytes : 0, barrier = barriers + 8 * slot;
        if (elected) {
            barrier_expect(barrier, n + mirrored + bits);
            if (n > 0) StageBuffer::bulk(at + to, values, n, barrier);
            if (mirrored > 0) StageBuffer::bulk(at + slots * segment_bytes + to, values, mirrored, barrier);
            if (bits > 0) StageBuffer::bulk(masks + mask_slot * mask_bytes, mask, bits, barrier);
        }
        values += n, left -= n, mask += bits, coming++;
        to = slot + 1 == slots ? 0 : to + segment_bytes;
        return bits > 0;
    }
};
