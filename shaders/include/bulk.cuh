// Loading shared memory on compute capability 9.0: barriers that count bytes, clusters, bulk copies that multicast, and
// TMA copies of tiles. A barrier is given by its address in shared memory.

#pragma once
#include "units.cuh"

__device__ __forceinline__ void barrier_init(u32 barrier, u32 arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
// barrier_fence makes new barriers visible to the cluster; cluster_sync follows.
__device__ __forceinline__ void barrier_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

// barrier_expect arrives at the barrier and makes its phase wait for `bytes` bytes of copies, too.
__device__ __forceinline__ void barrier_expect(u32 barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
// barrier_arrive arrives at the barrier of CTA number `block` of the cluster. It does not order ordinary writes for
// other CTAs.
__device__ __forceinline__ void barrier_arrive(u32 barrier, u32 block) {
    asm volatile(
        "{ .reg .b32 at; mapa.shared::cluster.u32 at, %0, %1; mbarrier.arrive.shared::cluster.b64 _, [at]; }" ::"r"(
            barrier),
        "r"(block)
        : "memory");
}
// barrier_wait waits for the end of the barrier's phase of this parity. At a new barrier, parity 1 does not wait.
__device__ __forceinline__ void barrier_wait(u32 barrier, u32 parity) {
    asm volatile(
        "{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; @!done bra again; }" ::"r"(
            barrier),
        "r"(parity)
        : "memory");
}

__device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// cluster_load and cluster_load4 read the shared memory of CTA number `block` of the cluster.
__device__ __forceinline__ float cluster_load(u32 at, u32 block) {
    float x;
    asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %1, %2; ld.shared::cluster.f32 %0, [there]; }"
                 : "=f"(x)
                 : "r"(at), "r"(block)
                 : "memory");
    return x;
}
__device__ __forceinline__ float4 cluster_load4(u32 at, u32 block) {
    float4 x;
    asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %4, %5; "
                 "ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [there]; }"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                 : "r"(at), "r"(block)
                 : "memory");
    return x;
}

// bulk_copy multicasts bytes (a multiple of 16) to the same address in every CTA of the mask. They count at its barrier
// there.
__device__ __forceinline__ void bulk_copy(u32 to, const void *from, u32 bytes, u32 barrier, u16 blocks) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1], %2, [%3], %4;" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier), "h"(blocks)
                 : "memory");
}

// TileMap is a tensor map of a matrix of 16-bit elements. A copied tile has rows of 64 columns, 128 bytes, whose
// 16-byte chunks are swizzled by the row mod 8. Tiles of 32, 16 and 8 columns have rows of 64, 32 and 16 bytes. The
// first are swizzled by row / 2 mod 4, the second by row / 4 mod 2, and the last are not. Elements past the matrix are
// zeros.
struct alignas(128) TileMap {
    u32 raw[32];
};

// tile_map makes a tensor map. A whole warp calls it. scratch is 128 bytes of shared memory, aligned to 128. pitch is
// in bytes, a multiple of 16 below 2^36.
template <int T, int COLUMNS = 64>
__device__ __forceinline__ void tile_map(TileMap *to, TileMap *scratch, const void *matrix, u32 rows, u32 cols,
                                         u64 pitch, u32 tile_rows) {
    u32 at = shared_address(scratch), lane = threadIdx.x & 31;
    // The driver sets this bit in maps for which L2 fetches 128 bytes at a time; no instruction sets it. It is a hint;
    // without it a dense product is 8 % slower. The pitch is written directly because compilers before CUDA 12.5, and
    // drivers of that time, which compile PTX, do not divide it by 16.
    scratch->raw[lane] = lane == 2 ? 1 << 18 : lane == 3 ? (u32)(pitch >> 4) : 0;
    __syncwarp();
    if (lane == 0) {
#define REPLACE(field, type, value) \
    asm volatile("tensormap.replace.tile." field ", %1;" ::"r"(at), type(value) : "memory")
        REPLACE("global_address.shared::cta.b1024.b64 [%0]", "l", (u64)matrix);
        REPLACE("rank.shared::cta.b1024.b32 [%0]", "r", 1); // dimensions less one
        REPLACE("box_dim.shared::cta.b1024.b32 [%0], 0", "r", COLUMNS);
        REPLACE("box_dim.shared::cta.b1024.b32 [%0], 1", "r", tile_rows);
        REPLACE("global_dim.shared::cta.b1024.b32 [%0], 0", "r", cols);
        REPLACE("global_dim.shared::cta.b1024.b32 [%0], 1", "r", rows);
        REPLACE("element_stride.shared::cta.b1024.b32 [%0], 0", "r", 1);
        REPLACE("element_stride.shared::cta.b1024.b32 [%0], 1", "r", 1);
        REPLACE("elemtype.shared::cta.b1024.b32 [%0]", "n", T == BF16 ? 10 : 6);
        REPLACE("interleave_layout.shared::cta.b1024.b32 [%0]", "n", 0);
        REPLACE("swizzle_mode.shared::cta.b1024.b32 [%0]", "n",
                COLUMNS == 64   ? 3
                : COLUMNS == 32 ? 2
                : COLUMNS == 16 ? 1
                                : 0);
        REPLACE("fill_mode.shared::cta.b1024.b32 [%0]", "n", 0);
#undef REPLACE
    }
    __syncwarp();
    asm volatile(
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(
            to),
        "r"(at)
        : "memory");
}
// tile_map_acquire makes a map that another thread made usable for this thread's copies.
__device__ __forceinline__ void tile_map_acquire(const TileMap *map) {
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
}

// tile_copy is bulk_copy for the tile whose first element is at (row, col) of the matrix.
__device__ __forceinline__ void tile_copy(u32 to, const TileMap *map, u32 row, u32 col, u32 barrier, u16 blocks) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
                 "l"(map), "r"(col), "r"(row), "r"(barrier), "h"(blocks)
                 : "memory");
}
// tile_copy_here is tile_copy to this CTA alone, which is faster.
__device__ __forceinline__ void tile_copy_here(u32 to, const TileMap *map, u32 row, u32 col, u32 barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(map), "r"(col), "r"(row), "r"(barrier)
                 : "memory");
}
