// What the kernels for compute capability 9.0 share: stages of both operands in shared memory, which TMA copies fill
// and consumer warpgroups multiply.
//
// A stage is DEPTH of k of ROWS lines of L and COLS of R, as they lie in the matrix: along the sum or across it. The
// CTAs of a cluster have neighbouring tiles, CLUSTER_ROWS below each other and CLUSTER_COLS side by side: each loads a
// share of what several of them need and multicasts it.
//
// Constants: ELEM (half.cuh), ROWS (64 or 128), COLS (8, 16, or a multiple of 32 to 256), STAGES, CLUSTER_ROWS,
// CLUSTER_COLS, TRANSPOSED (1: R lies along, see hopper.cu; 0 if it is not defined).

#pragma once
#include "work_tiles.cuh"
#include "wgmma.cuh"
#include "../include/cluster_split_k.cuh"

#define DEPTH 64 // places k of a stage
#define SLAB (DEPTH * 128) // bytes of 64 lines
#define GROUPS (ROWS / 64) // of four warps that multiply
#define L_BYTES (GROUPS * SLAB)
#define WIDE (COLS < 64 ? COLS : 64) // columns of a slab of R where it lies across
#define SLABS ((COLS + 63) / 64)
#define R_SLAB (DEPTH * 2 * WIDE)
#ifndef TRANSPOSED
#define TRANSPOSED 0
#endif
#define R_BYTES (TRANSPOSED ? COLS * DEPTH * 2 : SLABS * R_SLAB)
#define MULTICAST (CLUSTER_ROWS * CLUSTER_COLS)
#define STAGE_BYTES (L_BYTES + R_BYTES)

// Shared memory: stages, a barrier each for copies that have come and for stages that have been read. Blocks first to
// first + MULTICAST - 1 of the cluster share them.
struct Pipeline {
    u32 stages, full, empty, first;

    __device__ __forceinline__ Pipeline(u32 at, u32 first)
        : stages(at), full(at + STAGES * STAGE_BYTES), empty(full + 8 * STAGES), first(first) {}
    __device__ __forceinline__ void start() const {
        for (u32 s = 0; s < STAGES; s++) {
            barrier_init(full + 8 * s, 1);
            barrier_init(empty + 8 * s, GROUPS * MULTICAST);
        }
        barrier_fence();
    }
};

// issue_copies multicasts the CTA's share, number `share`, of an operand's tile to all CTAs of the mask: lines from
// line i on at places from k on; of those that lie across `slabs` slabs. Elements past the operand's end become 0.
template <int LINES, int SHARE>
__device__ __forceinline__ void issue_copies(u32 to, const TileMap *map, bool along, u32 i, u32 k, u32 slabs, u32 share,
                                             u32 bar, u16 blocks) {
    constexpr u32 LINE_SHARE = LINES / SHARE, PLACE_SHARE = DEPTH / SHARE,
                  SIDE = LINES < 64 ? LINES : 64; // lines of a slab
    auto copy = [&](u32 at, u32 row, u32 col) {
        if (SHARE == 1) tile_copy_here(at, map, row, col, bar);
        else tile_copy(at, map, row, col, bar, blocks);
    };
    if (along) return copy(to + share * LINE_SHARE * 128, i + share * LINE_SHARE, k);
    for (u32 s = 0; s < slabs; s++)
        copy(to + (s * DEPTH + share * PLACE_SHARE) * 2 * SIDE, k + share * PLACE_SHARE, i + SIDE * s);
}

// slabs_of returns how many slabs of R's tile from column col on are loaded where it lies across, r_bytes how many
// bytes those are, or all lines where it lies along. Slabs past the matrix are not loaded: their results are never
// stored.
__device__ __forceinline__ u32 slabs_of(const Params &p, u32 col) {
    return col < p.n ? min(SLABS, (p.n - col + WIDE - 1) / WIDE) : 0;
}
__device__ __forceinline__ u32 r_bytes(u32 slabs, bool along) { return along ? COLS * DEPTH * 2 : slabs * R_SLAB; }

// PipelineState is a position in the pipeline: a stage and the parity of its barriers.
struct PipelineState {
    u32 stage, parity;
    __device__ __forceinline__ void next() {
        if (++stage == STAGES) stage = 0, parity ^= 1;
    }
};

// sum adds the products of steps first to last - 1 to the sums of a group of four warps, which has 64 rows. LT and RT
// tell that an operand lies across.
template <int LT, int RT>
__device__ __forceinline__ void sum(float (&acc)[COLS / 8][4], const Pipeline &pipeline, PipelineState &at, u32 first,
                                    u32 last, u32 group) {
    u32 lane = threadIdx.x % 128, before = 0;
    u64 l = swizzled(pipeline.stages + group * SLAB, SLAB),
        r = RT ? across_of<WIDE>(pipeline.stages + L_BYTES, SLAB) : swizzled(pipeline.stages + L_BYTES, SLAB);
    auto release = [&](u32 s) { // by a thread for each CTA
        if (lane < MULTICAST) barrier_arrive(pipeline.empty + 8 * s, pipeline.first + lane);
    };
#pragma unroll 1
    for (u32 k = first; k < last; k++) {
        u64 to = at.stage * (STAGE_BYTES >> 4); // addresses are in 16 bytes
        barrier_wait(pipeline.full + 8 * at.stage, at.parity);
        wgmma_fence();
#pragma unroll
        for (u32 e = 0; e < DEPTH / 16; e++)
            wgmma_sum<ELEM, LT, RT>(acc, l + to + e * ((LT ? 2048 : 32) >> 4),
                                    r + to + e * ((RT ? 32 * WIDE : 32) >> 4));
        wgmma_commit();
        if (k > first) {
            wgmma_wait<1>(); // the step before is done
            release(before);
        }
        before = at.stage;
        at.next();
    }
    wgmma_wait<0>();
    wgmma_hold(acc);
    if (first < last) release(before);
}

__device__ __forceinline__ void sum(float (&acc)[COLS / 8][4], const Pipeline &pipeline, PipelineState &at, u32 first,
                                    u32 last, u32 group, bool l_along, bool r_along) {
    if (!l_along) sum<1, 0>(acc, pipeline, at, first, last, group);
    else if (TRANSPOSED || r_along) sum<0, 0>(acc, pipeline, at, first, last, group);
    else sum<0, 1>(acc, pipeline, at, first, last, group);
}
