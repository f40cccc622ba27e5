// What compute capability 9.0 adds for loading shared memory: barriers that count bytes, clusters, bulk copies that
// multicast, and TMA copies of tiles. Barriers are named by their address in shared memory.

#pragma once
#include "units.cuh"

__device__ __forceinline__ void barrier_init(u32 barrier, u32 arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
// barrier_fence shows barriers that were made to the cluster, before cluster_sync.
__device__ __forceinline__ void barrier_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

// barrier_expect arrives, and has the barrier wait for `bytes` bytes of copies too.
__device__ __forceinline__ void barrier_expect(u32 barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
// barrier_arrive arrives at a block's barrier, that block being of this cluster. It orders no ordinary writes for other
// blocks.
__device__ __forceinline__ void barrier_arrive(u32 barrier, u32 block) {
    asm volatile(
        "{ .reg .b32 at; mapa.shared::cluster.u32 at, %0, %1; mbarrier.arrive.shared::cluster.b64 _, [at]; }" ::"r"(
            barrier),
        "r"(block)
        : "memory");
}
// barrier_wait waits for the end of the barrier's phase of this parity. A new barrier has left the one of parity 1.
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

// cluster_load and cluster_load4 read a CTA's shared memory, that block being of this cluster.
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

// bulk_copy multicasts bytes (a multiple of 16) to one place in every CTA of the mask, and counts them at its barrier
// there.
__device__ __forceinline__ void bulk_copy(u32 to, const void *from, u32 bytes, u32 barrier, u16 blocks) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1], %2, [%3], %4;" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier), "h"(blocks)
                 : "memory");
}

// TileMap describes a matrix whose tiles are copied: 64 columns of 16 bits wide, in rows of 128 bytes whose 16-byte
// chunks are exchanged by the row mod 8. Past the matrix there are zeros. Where tiles are 32, 16 or 8 columns wide, the
// chunks of rows of 64 or 32 bytes are exchanged by row / 2 mod 4 or row / 4 mod 2, and those of 16 bytes lie as they
// are.
struct alignas(128) TileMap {
    u32 raw[32];
};

// tile_map makes one, by a whole warp; scratch is 128 bytes of shared memory at a multiple of 128. pitch is in bytes, a
// multiple of 16 below 2^36.
template <int T, int COLUMNS = 64>
__device__ __forceinline__ void tile_map(TileMap *to, TileMap *scratch, const void *matrix, u32 rows, u32 cols,
                                         u64 pitch, u32 tile_rows) {
    u32 at = shared_address(scratch), lane = threadIdx.x & 31;
    // What the driver encodes for tiles that the L2 cache fetches by 128 bytes has this bit too, which no instruction
    // sets. It is a hint; without it a product of matrices is 8 % slower. The pitch is put in its place by hand because
    // compilers before CUDA 12.5 (and drivers of that time, which compile what is loaded) do not divide it by 16.
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
// tile_map_acquire lets this thread copy by a map that was made.
__device__ __forceinline__ void tile_map_acquire(const TileMap *map) {
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
}

// tile_copy is bulk_copy for the tile whose first element is at (row, col).
__device__ __forceinline__ void tile_copy(u32 to, const TileMap *map, u32 row, u32 col, u32 barrier, u16 blocks) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
                 "l"(map), "r"(col), "r"(row), "r"(barrier), "h"(blocks)
                 : "memory");
}
// tile_copy_here is tile_copy for this block alone, which is faster.
__device__ __forceinline__ void tile_copy_here(u32 to, const TileMap *map, u32 row, u32 col, u32 barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                 "[%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(map), "r"(col), "r"(row), "r"(barrier)
                 : "memory");
}
