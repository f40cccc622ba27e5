// RowEntries computes an output again from its row's entries alone (finite repair), for the kernel's layout.

#pragma once
#include "lanestream.cuh"

// PairEntries does so for layout Pairs.
struct PairEntries : Entries {
    __device__ __forceinline__ void take(Special &s, u64 value, u64 k, u32 col) const {
        if (index.stored(*p, value)) add(s, values[value], k, col);
    }
    __device__ __forceinline__ float operator()(u32 row, u32 col) const {
        Special s;
        u32 r = row % GROUP_ROWS, group = row / GROUP_ROWS;
        for (u32 split = 0; split < p->splits; split++)
            for (u32 lane = 4 * (r % 8); lane < 4 * (r % 8) + 4; lane++) {
                u64 last = (u64)index.row((u64)group * p->splits + split) * 64 + 2 * lane - 64;
                for (u32 step = FIRST_SEGMENT(*p, split) * p->steps; step < FIRST_SEGMENT(*p, split + 1) * p->steps;
                     step++) {
                    const u32 *words = mask + ((u64)group * p->segments * p->steps + step) * 96;
                    for (u32 i = 0; i < 16; i++) {
                        u32 bits = words[64 + lane] >> (16 * (i >> 3) + 7 - (i & 7)), half = i >> 1 & 1;
                        u32 code = words[((lane & ~3u) + (i >> 2 & 1) * 2 + half) * 2 + (i >> 3)] >>
                                   (4 * (lane % 4) + 16 * (i & 1));
                        u64 k = (u64)step * STEP_COLS + 16 * half + 4 * (lane % 4);
                        bool mine = (i >> 2 << 1 | (i & 1)) == r >> 3;
                        if (bits & 1) last += 64;
                        if (mine && bits & 1) take(s, last, k + (code & 3), col);
                        if (mine && bits & 256) take(s, last + 1, k + (code >> 2 & 3), col);
                    }
                }
            }
        remainder(s, row, col);
        return s.result();
    }
};
#if PAIRS
typedef PairEntries RowEntries;
#else
typedef Entries RowEntries;
#endif
