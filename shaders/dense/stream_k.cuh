// How quantised.cu divides work among the clusters that run at the same time. Each takes one work tile after another
// (work_tiles.cuh), or, if p.splits is 0, first an equal number of whole tiles and then an equal share of the other
// tiles' steps along K (stream-K: Osama et al., PPoPP 2023).
//
// The steps of the tiles from p.whole on are numbered consecutively, and each cluster has a range of them, which may
// begin and end within tiles. The cluster that has a tile's first steps stores the tile. The others write their partial
// sums to the workspace, and it adds them to its own in the order of the steps. A cluster writes the partial sums of
// its first work tile before it waits for any others, so that there is no circular wait.

#pragma once
#include "work_tiles.cuh"
#include "../include/bulk.cuh"

struct StreamK {
    u32 cluster, clusters, whole, steps; // whole: whole tiles of this cluster; steps: of a tile
    u32 count; // work tiles of this cluster
    u32 rest, // steps of all tiles from p.whole on; times the clusters it has 32 bits
        first, last; // this cluster's range of them

    __device__ __forceinline__ StreamK(u32 cluster, u32 clusters, u32 tiles, u32 steps, const Params &p)
        : cluster(cluster), clusters(clusters), steps(steps) {
        if (p.splits == 0) {
            whole = p.whole / clusters, rest = (tiles - p.whole) * steps;
            first = rest * cluster / clusters, last = end(cluster);
            count = whole + (last > first ? (last - 1) / steps - first / steps + 1 : 0);
        } else {
            u32 work_tiles = p.whole + (tiles - p.whole) * p.splits;
            whole = rest = first = last = 0;
            count = cluster < work_tiles ? (work_tiles - cluster - 1) / clusters + 1 : 0;
        }
    }
    // end returns the last step of a cluster's range + 1.
    __device__ __forceinline__ u32 end(u32 cluster) const { return rest * (cluster + 1) / clusters; }

    // work_tile returns this cluster's work tile number i. Its slot is where the partial sums are written.
    __device__ __forceinline__ WorkTile work_tile(u32 i, const Params &p) const {
        if (p.splits) return work_tile_at(cluster + i * clusters, steps, p);
        if (i < whole) return {cluster + i * clusters, 0, 0, 0, steps, false};
        u32 tile = first / steps + i - whole, from = tile * steps;
        return {p.whole + tile, cluster, 0, max(first, from) - from, min(last, from + steps) - from, false};
    }
    // ended reports whether the tile of x ends within the range of a cluster, or before it.
    __device__ __forceinline__ bool ended(const WorkTile &x, u32 cluster, const Params &p) const {
        return end(cluster) >= (x.tile - p.whole + 1) * steps;
    }
};

// give writes partial sums to a slot of the workspace, in the layout of store_split_k.
template <int THREADS, int DOWN, int ACROSS>
__device__ __forceinline__ void give(const float (&acc)[DOWN][ACROSS][4], const Params &p, u32 col, u32 slot,
                                     u32 barrier, float *work) {
    float4 *to = (float4 *)work + (u64)slot * (THREADS * DOWN * ACROSS) + threadIdx.x % THREADS;
#pragma unroll
    for (int j = 0; j < ACROSS; j++)
#pragma unroll
        for (int i = 0; i < DOWN; i++)
            if (col + 8 * j < p.n) __stcg(to + (j * DOWN + i) * THREADS, *(const float4 *)acc[i][j]);
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(THREADS) : "memory");
    if (threadIdx.x % THREADS == 0)
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(&arrived[slot]) : "memory");
}

// bulk_copy_here copies bytes (a multiple of 16) to this CTA. They count at its barrier.
__device__ __forceinline__ void bulk_copy_here(u32 to, const void *from, u32 bytes, u32 barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

__device__ __forceinline__ float4 shared_load4(u32 at) {
    float4 x;
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                 : "r"(at)
                 : "memory");
    return x;
}

// Landing is where a warpgroup receives partial sums: shared memory that nothing else uses any more, and the barrier at
// which they arrive.
struct Landing {
    u32 at, full, parity;

    // i is the warpgroup's number; it receives `bytes` bytes at a time, in the memory of a CTA's stages.
    __device__ __forceinline__ Landing(u32 stages, u32 barriers, u32 i, u32 bytes)
        : at(stages + i * bytes), full(barriers + 8 * i), parity(0) {}
};

// add waits for the partial sums in a slot and adds them. They come through shared memory: loading a few at a time to
// registers took longer than everything else, and there are no registers for more.
template <int THREADS, int DOWN, int ACROSS>
__device__ __forceinline__ void add(float (&acc)[DOWN][ACROSS][4], const Params &p, u32 col, u32 slot, u32 barrier,
                                    const float *work, Landing &landing) {
    constexpr u32 BYTES = THREADS * DOWN * ACROSS * 16;
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(THREADS) : "memory"); // the previous partial sums were read
    if (threadIdx.x % THREADS == 0) {
        u32 there;
        do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(there) : "l"(&arrived[slot]) : "memory");
        while (there == 0);
        arrived[slot] = 0; // reset for the next launch
        asm volatile("fence.proxy.async;" ::: "memory");
        barrier_expect(landing.full, BYTES);
        bulk_copy_here(landing.at, (const char *)work + (u64)slot * BYTES, BYTES, landing.full);
    }
    barrier_wait(landing.full, landing.parity);
    landing.parity ^= 1;
#pragma unroll
    for (int j = 0; j < ACROSS; j++)
#pragma unroll
        for (int i = 0; i < DOWN; i++) {
            if (col + 8 * j >= p.n) continue;
            float4 x = shared_load4(landing.at + ((j * DOWN + i) * THREADS + threadIdx.x % THREADS) * 16);
            acc[i][j][0] += x.x, acc[i][j][1] += x.y, acc[i][j][2] += x.z, acc[i][j][3] += x.w;
        }
}

// store_work_tile stores a work tile's sums in C, or passes them to the cluster that does. acc is as in store_tiles,
// from (row, col) on; slot_of(cluster) returns the slot of these THREADS threads in a cluster. All MULTIPLY consumer
// threads of the CTA meet before the stages become a Landing.
template <int THREADS, int MULTIPLY, int DOWN, int ACROSS, class S, class F>
__device__ __forceinline__ void store_work_tile(float (&acc)[DOWN][ACROSS][4], const StreamK &schedule,
                                                const WorkTile &x, Dest to, const Params &p, u32 row, u32 col,
                                                S slot_of, u32 barrier, float *work, Landing landing, F recompute) {
    if (x.is_split)
        return store_split_k<THREADS>(acc, to, p, p.splits, row, col, slot_of(x.slot), x.split, barrier, work,
                                      recompute);
    if (x.first > 0) return give<THREADS>(acc, p, col, slot_of(x.slot), barrier, work);
    if (x.last < schedule.steps) { // other clusters have the tile's other steps; no work tile of this one follows
        asm volatile("bar.sync 3, %0;" ::"n"(MULTIPLY) : "memory");
        for (u32 c = x.slot; !schedule.ended(x, c, p); c++)
            add<THREADS>(acc, p, col, slot_of(c + 1), barrier, work, landing);
    }
    store_sums<16>(acc, to, p, row, col, p.n, recompute);
}
