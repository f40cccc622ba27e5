// Lane streams on CUDA (package formats/lanestream): where the arrays are, a warp's stage buffer, and outputs from the
// entries alone. A segment is p.steps steps of 32 columns: their masks, and the rows of values that are loaded with
// them.

#pragma once
#include "params.h"
#include "../include/result.cuh"
#include "take.cuh"
#ifdef HOPPER
#include "../include/bulk.cuh"

// barrier_arrive_here is barrier_arrive for a barrier of this CTA.
__device__ __forceinline__ void barrier_arrive_here(u32 barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
#endif

#define GROUP_ROWS 64
#define STEP_COLS 32
#define ROW_BYTES 128 // of a row of values
#define STEP_BYTES 256 // of a step's mask
#define MIRROR 16 // rows of the buffer that are repeated behind its end: a word of the mask takes 16 values at most
#define MOST_SLOTS 8 // segments in the buffer

// Index finds the arrays in `index`.
struct Index {
    const u32 *words;
    u64 streams, remainder;

    __device__ __forceinline__ Index(const u32 *index, const Params &p)
        : words(index), streams((u64)p.groups * p.splits), remainder(2 * streams + 1) {}
    __device__ __forceinline__ u32 row(u64 stream) const { return words[stream]; }
    __device__ __forceinline__ u32 segment_rows(u64 stream) const { return words[streams + 1 + stream]; }
    __device__ __forceinline__ u32 remainder_at(u32 row) const { return words[remainder + row]; }
    __device__ __forceinline__ const u32 *remainder_cols(const Params &p) const {
        return words + remainder + p.rows + 1;
    }
    __device__ __forceinline__ const u16 *remainder_values(const u16 *values) const {
        return values + (u64)row(streams) * 64;
    }
    // stored tells whether a value is an entry.
    __device__ __forceinline__ bool stored(const Params &p, u64 value) const {
        return remainder_cols(p)[remainder_at(p.rows) + (value >> 5)] >> (value & 31) & 1;
    }
};

// first_segment returns the first segment of a split.
__device__ __forceinline__ u32 first_segment(const Params &p, u32 split) {
    return (u32)((u64)p.segments * split / p.splits);
}

// StageBuffer is a stream in memory, and the stage buffer in shared memory that its warp loads it into, a segment to a
// slot. A slot has a segment's rows of values, and elsewhere its mask. The buffer's first rows are repeated behind its
// end, so that the next values of a chain always lie at increasing addresses.
struct StageBuffer {
    const unsigned char *values, *mask;
    u32 rows, segment_rows, // of values: of the stream; of a segment
        count, total; // segments with a mask; segments with a mask or values
    u32 slots, mask_bytes;
    u32 at, masks, barriers; // addresses in shared memory

    __device__ __forceinline__ StageBuffer(const Index &index, const u32 *mask_, const u16 *values_, const Params &p,
                                           u32 group, u32 split, u32 at_, u32 barriers_)
        : at(at_), barriers(barriers_) {
        u64 stream = (u64)group * p.splits + split;
        u32 first = first_segment(p, split), row = index.row(stream);
        rows = index.row(stream + 1) - row, segment_rows = index.segment_rows(stream),
        count = first_segment(p, split + 1) - first;
        total = max(count, (rows + segment_rows - 1) / segment_rows);
        mask_bytes = p.steps * STEP_BYTES;
        slots = min((BUFFER_BYTES - MIRROR * ROW_BYTES) / (segment_rows * ROW_BYTES + mask_bytes), MOST_SLOTS);
        masks = at + (slots * segment_rows + MIRROR) * ROW_BYTES;
        values = (const unsigned char *)values_ + (u64)row * ROW_BYTES;
        mask = (const unsigned char *)mask_ + ((u64)group * p.segments + first) * mask_bytes;
    }

    // fetch starts loading segment j into a slot. All lanes call it when they have used the slot's last segment.
    __device__ __forceinline__ void fetch(u32 j, u32 slot, u32 lane) const {
        u32 row = min(j * segment_rows, rows), n = min(segment_rows, rows - row) * ROW_BYTES,
            to = slot * segment_rows * ROW_BYTES;
        u32 mirrored = to < MIRROR * ROW_BYTES ? min(n, MIRROR * ROW_BYTES - to) : 0; // bytes to repeat
        u32 bytes = j < count ? mask_bytes : 0, mirror = at + slots * segment_rows * ROW_BYTES + to;
        const unsigned char *from = values + (u64)row * ROW_BYTES, *bits = mask + (u64)j * mask_bytes;
#ifdef HOPPER
        if (elected()) {
            u32 barrier = barriers + 8 * slot;
            barrier_expect(barrier, n + mirrored + bytes);
            if (n > 0) bulk(at + to, from, n, barrier);
            if (mirrored > 0) bulk(mirror, from, mirrored, barrier);
            if (bytes > 0) bulk(masks + slot * mask_bytes, bits, bytes, barrier);
        }
        __syncwarp();
#else
        for (u32 i = lane * 16; i < n; i += 512) copy<16>(at + to + i, from + i, 16);
        for (u32 i = lane * 16; i < mirrored; i += 512) copy<16>(mirror + i, from + i, 16);
        for (u32 i = lane * 16; i < bytes; i += 512) copy<16>(masks + slot * mask_bytes + i, bits + i, 16);
        copy_commit();
#endif
    }

#ifdef HOPPER
    // elected returns true in one lane of the warp.
    static __device__ __forceinline__ bool elected() {
        u32 is;
        asm volatile("{.reg .pred one; elect.sync _|one, 0xffffffff; selp.u32 %0, 1, 0, one;}" : "=r"(is));
        return is;
    }
    static __device__ __forceinline__ void bulk(u32 to, const void *from, u32 bytes, u32 barrier) {
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
            "l"(from), "r"(bytes), "r"(barrier)
            : "memory");
    }
#endif
};

// shared_word, shared_words and shared_quad read one, two and four words of shared memory.
__device__ __forceinline__ u32 shared_word(u32 at) {
    u32 x;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(at) : "memory");
    return x;
}
__device__ __forceinline__ uint2 shared_words(u32 at) {
    uint2 x;
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(x.x), "=r"(x.y) : "r"(at) : "memory");
    return x;
}
__device__ __forceinline__ uint4 shared_quad(u32 at) {
    uint4 x;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "r"(at)
                 : "memory");
    return x;
}

// Entries computes an output again from its row's entries alone: the finite repair.
struct Entries {
    Index index;
    const u32 *mask;
    const u16 *values, *b;
    const Params *p;

    __device__ __forceinline__ void add(Special &s, u16 value, u64 k, u32 col) const {
#ifdef B_VECTOR
        s.add(widen_lo<ELEM>(value), widen_lo<ELEM>(b[k]));
#elif defined(B_LINES)
        s.add(widen_lo<ELEM>(value), widen_lo<ELEM>(b[(u64)col * p->ldb + k]));
#else
        s.add(widen_lo<ELEM>(value), widen_lo<ELEM>(b[k * p->ldb + col]));
#endif
    }

    __device__ __forceinline__ float operator()(u32 row, u32 col) const {
        Special s;
        u32 r = row % GROUP_ROWS, group = row / GROUP_ROWS,
            mine = (r >> 3 & 1) | r >> 4 << 2; // the row's positions, without their bit 1
        for (u32 split = 0; split < p->splits; split++)
            for (u32 chain = 8 * (r % 8); chain < 8 * (r % 8) + 8; chain++) {
                u64 at = (u64)index.row((u64)group * p->splits + split) * 64 + chain;
                for (u32 step = first_segment(*p, split) * p->steps; step < first_segment(*p, split + 1) * p->steps;
                     step++)
                    for (u32 w = 0; w < 2; w++) {
                        u32 word =
                            mask[((u64)group * p->segments * p->steps + step) * 64 + chain / 2 * 2 + w] >> (chain & 1);
                        for (u32 i = 0; i < 16; i++) {
                            if (!(word >> (2 * i) & 1)) continue;
                            u64 k = (u64)step * STEP_COLS + 16 * w + 8 * (i >> 1 & 1) + 4 * (chain & 1) + chain / 2 % 4;
                            if ((i & 13) == mine && index.stored(*p, at)) add(s, values[at], k, col);
                            at += 64;
                        }
                    }
            }
        remainder(s, row, col);
        return s.result();
    }
    __device__ __forceinline__ void remainder(Special &s, u32 row, u32 col) const {
        for (u32 i = index.remainder_at(row); i < index.remainder_at(row + 1); i++)
            add(s, index.remainder_values(values)[i], index.remainder_cols(*p)[i], col);
    }
};
