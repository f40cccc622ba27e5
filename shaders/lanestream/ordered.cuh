// TMA copies that permute rows of B: in shared memory rows are in the order in which the kernel has the columns of A.

#pragma once
#include "lanestream.cuh"
#include "../include/hopper.cuh"

// Axis is a dimension of a tensor map over rows of B: `size` positions, `pitch` rows apart. A copy has `box` of them.
struct Axis {
    u32 size, box, pitch;
};

// ordered_map makes a tensor map of B with dimensions (column, x, y, z), as tile_map does. In shared memory the rows of
// a copy lie with x fastest, then y, then z. A whole warp calls it.
__device__ __forceinline__ void ordered_map(TileMap *to, TileMap *scratch, const void *b, const Params &p, Axis x,
                                            Axis y, Axis z) {
    u32 at = shared_address(scratch), lane = threadIdx.x & 31, row = p.ldb * 2 / 16; // pitches are in units of 16 bytes
    u32 rows = lane == 3 ? x.pitch : lane == 4 ? y.pitch : lane == 5 ? z.pitch : 0;
    scratch->raw[lane] = lane == 2 ? 1 << 18 : rows * row;
    __syncwarp();
    if (lane == 0) {
#define REPLACE(field, type, value) \
    asm volatile("tensormap.replace.tile." field ", %1;" ::"r"(at), type(value) : "memory")
        REPLACE("global_address.shared::cta.b1024.b64 [%0]", "l", (u64)b);
        REPLACE("rank.shared::cta.b1024.b32 [%0]", "r", 3); // dimensions less one
        REPLACE("box_dim.shared::cta.b1024.b32 [%0], 0", "r", 64);
        REPLACE("box_dim.shared::cta.b1024.b32 [%0], 1", "r", x.box);
        REPLACE("box_dim.shared::cta.b1024.b32 [%0], 2", "r", y.box);
        REPLACE("box_dim.shared::cta.b1024.b32 [%0], 3", "r", z.box);
        REPLACE("global_dim.shared::cta.b1024.b32 [%0], 0", "r", p.ldb);
        REPLACE("global_dim.shared::cta.b1024.b32 [%0], 1", "r", x.size);
        REPLACE("global_dim.shared::cta.b1024.b32 [%0], 2", "r", y.size);
        REPLACE("global_dim.shared::cta.b1024.b32 [%0], 3", "r", z.size);
        REPLACE("element_stride.shared::cta.b1024.b32 [%0], 0", "r", 1);
        REPLACE("element_stride.shared::cta.b1024.b32 [%0], 1", "r", 1);
        REPLACE("element_stride.shared::cta.b1024.b32 [%0], 2", "r", 1);
        REPLACE("element_stride.shared::cta.b1024.b32 [%0], 3", "r", 1);
        REPLACE("elemtype.shared::cta.b1024.b32 [%0]", "n", ELEM == BF16 ? 10 : 6);
        REPLACE("interleave_layout.shared::cta.b1024.b32 [%0]", "n", 0);
        REPLACE("swizzle_mode.shared::cta.b1024.b32 [%0]", "n", 3); // 128 bytes
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

// ordered_copy copies the box whose first element is (col, 0, y, z) to the CTAs of the mask `blocks`, as tile_copy
// does.
__device__ __forceinline__ void ordered_copy(u32 to, const TileMap *map, u32 col, u32 y, u32 z, u32 barrier,
                                             u16 blocks) {
    asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%2, %3, %4, %5}], [%6], %7;" ::"r"(to),
                 "l"(map), "r"(col), "r"(0), "r"(y), "r"(z), "r"(barrier), "h"(blocks)
                 : "memory");
}

// load_tail writes `depth` rows of B, from row k on, and 64·slabs columns, from column c on, where copies would: a slab
// of `bytes` bytes has 64 columns, and row k + r is its row place(r). It is for the last rows, which the map lacks when
// B's rows are no multiple of its unit. A whole warp calls it.
template <class F>
__device__ __forceinline__ void load_tail(const u16 *b, const Params &p, u32 to, u32 bytes, u32 k, u32 depth, u32 c,
                                          u32 slabs, u32 lane, F place) {
    for (u32 i = lane; i < slabs * depth * 8; i += 32) {
        u32 slab = i / (depth * 8), r = i / 8 % depth, at = i % 8, row = place(r), first = c + slab * 64 + at * 8;
        uint4 x = make_uint4(0, 0, 0, 0);
        if (k + r < p.cols && first < p.ldb) x = *(const uint4 *)(b + (u64)(k + r) * p.ldb + first);
        asm volatile(
            "st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to + slab * bytes + row * 128 + (at ^ row % 8) * 16),
            "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w)
            : "memory");
    }
    async_fence();
    __syncwarp();
}
