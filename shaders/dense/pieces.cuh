// How tiles of C are shared out, and added up where several blocks sum parts of one.
//
// The first p.whole tiles are summed by one block each. Each of the rest is cut along the sum into p.splits parts, whose
// blocks follow each other and run at the same time: all write their sums to the workspace, wait for each other, and each adds
// up some columns of the tile, in the order of the parts.

#pragma once
#include "gemm.cuh"
#include "../include/store_batches.cuh"

// MOST_SLOTS is the most split tiles, times the groups of warps of a block that add up by themselves. Launches of a module
// follow each other.
#define MOST_SLOTS 4096
#define MOST_SPLITS 8
__device__ u32 arrived[MOST_SLOTS], left_again[MOST_SLOTS];

// A piece of the work: a tile, or a part of its sum.
struct Piece {
    u32 tile, slot, part; // of a split tile: its number among these
    u32 first, last;      // steps of the sum
    bool split;
};

// piece_at returns piece i of tiles that have so many steps.
__device__ __forceinline__ Piece piece_at(u32 i, u32 steps, const Params &p) {
    if (i < p.whole || p.splits < 2) return {i, 0, 0, 0, steps, false};
    u32 slot = (i - p.whole) / p.splits, part = (i - p.whole) % p.splits;
    return {p.whole + slot, slot, part, (u32)((u64)steps * part / p.splits), (u32)((u64)steps * (part + 1) / p.splits), true};
}

// meet waits until the THREADS threads of each part of a tile are here. What they wrote before is then seen.
template <int THREADS> __device__ __forceinline__ void meet(u32 slot, u32 parts, u32 barrier) {
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(THREADS) : "memory");
    if (threadIdx.x % THREADS == 0) {
        u32 there;
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(&arrived[slot]) : "memory");
        do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(there) : "l"(&arrived[slot]) : "memory");
        while (there < parts);
        if (atomicAdd(&left_again[slot], 1) == parts - 1) arrived[slot] = 0, left_again[slot] = 0; // for the next launch
    }
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(THREADS) : "memory");
}

// store_parts adds a part's sums to those of the others and stores some columns of the tile. acc is as in store_tiles, from
// (row, col) on; a group of THREADS threads, which meet at that barrier, does so by itself.
template <int THREADS, int DOWN, int ACROSS, class F>
__device__ __forceinline__ void store_parts(float (&acc)[DOWN][ACROSS][4], Dest to, const Params &p, u32 row, u32 col, u32 slot, u32 part, u32 barrier,
                                            float *work, F again) {
    constexpr u32 EACH = THREADS * DOWN * ACROSS; // float4 of a part
    float4 *parts = (float4 *)work + (u64)slot * p.splits * EACH + threadIdx.x % THREADS;
#pragma unroll
    for (int j = 0; j < ACROSS; j++)
#pragma unroll
        for (int i = 0; i < DOWN; i++)
            if (col + 8 * j < p.n) __stcg(parts + part * EACH + (j * DOWN + i) * THREADS, *(float4 *)acc[i][j]);
    meet<THREADS>(slot, p.splits, barrier);
#pragma unroll
    for (int j = 0; j < ACROSS; j += 2) {
        if (j / 2 % p.splits != part || col + 8 * j >= p.n) continue;
#pragma unroll
        for (int i = 0; i < DOWN; i++) {
            float4 x[2][MOST_SPLITS], s[2] = {};
#pragma unroll
            for (int q = 0; q < MOST_SPLITS; q++)
#pragma unroll
                for (int e = 0; e < 2; e++)
                    if (q < p.splits && col + 8 * (j + e) < p.n) x[e][q] = __ldcg(parts + q * EACH + ((j + e) * DOWN + i) * THREADS);
#pragma unroll
            for (int q = 0; q < MOST_SPLITS; q++)
#pragma unroll
                for (int e = 0; e < 2; e++)
                    if (q < p.splits && col + 8 * (j + e) < p.n) s[e].x += x[e][q].x, s[e].y += x[e][q].y, s[e].z += x[e][q].z, s[e].w += x[e][q].w;
            float two[1][2][4] = {{{s[0].x, s[0].y, s[0].z, s[0].w}, {s[1].x, s[1].y, s[1].z, s[1].w}}};
            store_sums<16>(two, to, p, row + 16 * i, col + 8 * j, p.n, again);
        }
    }
}
