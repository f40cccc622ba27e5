// Split-K through the workspace: CTAs that run at the same time have partial sums of the same tile of C and add them in
// order.

#pragma once
#include "store_columns.cuh"

// MOST_SPLIT_SLOTS is the most tiles that are split, times the warpgroups of a CTA that add up separately. (Launches of
// one module run one after the other.) MOST_SPLITS is the most splits of a sum.
#define MOST_SPLIT_SLOTS 4096
#ifndef MOST_SPLITS
#define MOST_SPLITS 8
#endif
__device__ u32 arrived[MOST_SPLIT_SLOTS], left_again[MOST_SPLIT_SLOTS];

// sync_splits waits until the THREADS threads of each split of a tile are here. Their writes are visible then.
template <int THREADS> __device__ __forceinline__ void sync_splits(u32 slot, u32 partials, u32 barrier) {
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(THREADS) : "memory");
    if (threadIdx.x % THREADS == 0) {
        u32 there;
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(&arrived[slot]) : "memory");
        do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(there) : "l"(&arrived[slot]) : "memory");
        while (there < partials);
        if (atomicAdd(&left_again[slot], 1) == partials - 1)
            arrived[slot] = 0, left_again[slot] = 0; // for the next launch
    }
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(THREADS) : "memory");
}

// store_total stores 16 rows of sums, pairs of tiles of 8 columns side by side. Where COLUMNS_OF_C is defined, C may be
// column-major.
template <int ACROSS, class P, class F>
__device__ __forceinline__ void store_total(float (&acc)[1][ACROSS][4], Dest to, const P &p, u32 row, u32 col,
                                            F recompute) {
#ifdef COLUMNS_OF_C
    if (by_columns_c(p.store)) return store_columns<16>(acc[0], to, p, row, col, p.n, recompute);
#endif
    store_sums<16>(acc, to, p, row, col, p.n, recompute);
}

// store_split_k adds a split's partial sums to those of the others, and stores some columns of the tile. acc is as in
// store_tiles, from (row, col) on. Each group of THREADS threads, which meet at `barrier`, does so separately. (splits
// is read where it is needed, because there is no register for it.)
template <int THREADS, int DOWN, int ACROSS, class P, class F>
__device__ __forceinline__ void store_split_k(float (&acc)[DOWN][ACROSS][4], Dest to, const P &p, const u32 &splits,
                                              u32 row, u32 col, u32 slot, u32 split, u32 barrier, float *work,
                                              F recompute) {
    constexpr u32 EACH = THREADS * DOWN * ACROSS; // float4 of a split
    float4 *partials = (float4 *)work + (u64)slot * splits * EACH + threadIdx.x % THREADS;
#pragma unroll
    for (int j = 0; j < ACROSS; j++)
#pragma unroll
        for (int i = 0; i < DOWN; i++)
            if (col + 8 * j < p.n) __stcg(partials + split * EACH + (j * DOWN + i) * THREADS, *(float4 *)acc[i][j]);
    sync_splits<THREADS>(slot, splits, barrier);
#pragma unroll
    for (int j = 0; j < ACROSS; j += 2) {
        if (j / 2 % splits != split || col + 8 * j >= p.n) continue;
#pragma unroll
        for (int i = 0; i < DOWN; i++) {
            float4 x[2][MOST_SPLITS], s[2] = {};
#pragma unroll
            for (int q = 0; q < MOST_SPLITS; q++)
#pragma unroll
                for (int e = 0; e < 2; e++)
                    if (q < splits && col + 8 * (j + e) < p.n)
                        x[e][q] = __ldcg(partials + q * EACH + ((j + e) * DOWN + i) * THREADS);
#pragma unroll
            for (int q = 0; q < MOST_SPLITS; q++)
#pragma unroll
                for (int e = 0; e < 2; e++)
                    if (q < splits && col + 8 * (j + e) < p.n)
                        s[e].x += x[e][q].x, s[e].y += x[e][q].y, s[e].z += x[e][q].z, s[e].w += x[e][q].w;
            float two[1][2][4] = {{{s[0].x, s[0].y, s[0].z, s[0].w}, {s[1].x, s[1].y, s[1].z, s[1].w}}};
            store_total(two, to, p, row + 16 * i, col + 8 * j, recompute);
        }
    }
}
