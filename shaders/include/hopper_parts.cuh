// Adding up the sums of blocks of a cluster, which have a part each of the same sums, through each other's shared memory.

#pragma once
#include "bulk.cuh"
#include "launches.cuh"
#include "store_batches.cuh"

__device__ __forceinline__ void cluster_arrive() { asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); }
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

__device__ __forceinline__ void prefetch(const TileMap *map) { asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory"); }

// store_inside writes a warp's 16 rows of sums, but for those that lie past C's columns.
template <int N, class P, class F> __device__ __forceinline__ void store_inside(float (&acc)[N][4], Dest to, const P &p, u32 row, u32 col, F again) {
    store_sums<16>(reinterpret_cast<float(&)[1][N][4]>(acc), to, p, row, col, p.n, again);
}

// Exchange is what the WARPS warps of each of SUMMANDS blocks add up: 16 rows a warp, of WIDTH (even) tiles of 8 columns, as the matrix unit holds
// them. Block q of the cluster has part q.
template <int WIDTH, int SUMMANDS, int WARPS> struct Exchange {
    u32 at; // in shared memory
    u32 part;

    __device__ __forceinline__ u32 place(u32 warp, u32 tile) const { return at + ((tile * WARPS + warp) * 32 + threadIdx.x % 32) * 16; }

    // give is called by all warps with their sums, before cluster_sync.
    __device__ __forceinline__ void give(const float (&acc)[WIDTH][4], u32 warp) const {
#pragma unroll
        for (u32 j = 0; j < WIDTH; j++)
            asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(place(warp, j)), "f"(acc[j][0]), "f"(acc[j][1]), "f"(acc[j][2]), "f"(acc[j][3]) : "memory");
    }

    // store is called by all warps after it: each takes 16 rows by 16 columns in turn, adds them up in the order of the parts, and
    // stores them. Several are on their way at a time.
    template <class P, class F> __device__ __forceinline__ void store(u32 warp, Dest to, const P &p, u32 row, u32 col, F again) const {
        constexpr u32 ITEMS = (WIDTH / 2 + SUMMANDS - 1) / SUMMANDS, AHEAD = ITEMS < 3 ? ITEMS : 3;
#pragma unroll
        for (u32 base = 0; base < ITEMS; base += AHEAD) {
            float4 x[AHEAD][2][SUMMANDS];
            auto inside = [&](u32 i) { return (base + i) * SUMMANDS + part < WIDTH / 2 && col + 16 * ((base + i) * SUMMANDS + part) < p.n; };
#pragma unroll
            for (u32 i = 0; i < AHEAD; i++)
                if (inside(i))
#pragma unroll
                    for (u32 q = 0; q < SUMMANDS; q++)
#pragma unroll
                        for (u32 e = 0; e < 2; e++) x[i][e][q] = cluster_load4(place(warp, 2 * ((base + i) * SUMMANDS + part) + e), q);
            float sums[1][2 * AHEAD][4] = {};
#pragma unroll
            for (u32 i = 0; i < AHEAD; i++)
                if (inside(i))
#pragma unroll
                    for (u32 e = 0; e < 2; e++)
#pragma unroll
                        for (u32 v = 0; v < 4; v++)
#pragma unroll
                            for (u32 q = 0; q < SUMMANDS; q++) sums[0][2 * i + e][v] += (&x[i][e][q].x)[v];
            store_sums<16 * SUMMANDS>(sums, to, p, row + warp * 16, col + 16 * (base * SUMMANDS + part), min(p.n, col + 8 * WIDTH), again);
        }
    }
};

// finish is called by THREADS threads with sums of 16 rows a warp: blocks that have SUMMANDS parts of the same add them up in memory at at, which nothing
// reads or writes any more, and store them. The other threads of the block call cluster_sync and cluster_arrive meanwhile, if SUMMANDS is more than 1.
template <int THREADS, int SUMMANDS, int N, class P, class F> __device__ __forceinline__ void finish(float (&acc)[N][4], u32 at, u32 part, u32 warp, Dest to, const P &p, u32 row, u32 col, F again) {
    if (SUMMANDS > 1) {
        asm volatile("bar.sync 1, %0;" ::"n"(THREADS) : "memory"); // nothing is read of the stages any more, and nothing more comes
        Exchange<N, SUMMANDS, THREADS / 32> sums{at, part};
        sums.give(acc, warp);
        __syncwarp();
        cluster_sync();
        sums.store(warp, to, p, row, col, again);
        __syncwarp();
        cluster_arrive();
    } else
        store_inside(acc, to, p, row + warp * 16, col, again);
    __syncwarp();
}
