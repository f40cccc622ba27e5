// What the kernels for compute capability 9.0 share: stage buffers for both operands in shared memory, which TMA copies
// fill and consumer warpgroups multiply.
//
// A line is a row of L or a column of R (gemm.cuh). An operand lies "along" if it is K-major: neighbouring k of a line
// are neighbours in memory. It lies "across" if it is MN-major: neighbouring lines are neighbours, at the same k. A
// stage holds ROWS lines of L and COLS lines of R for DEPTH values of k, in the order of the matrix. A slab is at most
// 64 lines of a stage. A TMA copy of an operand that lies across writes one slab, or this CTA's share of it.
//
// The CTAs of a cluster have neighbouring tiles, CLUSTER_ROWS × CLUSTER_COLS of them. Those in a row of tiles need the
// same lines of L, those in a column the same lines of R: each loads a share of these and multicasts it to the others.
//
// Constants: ELEM (half.cuh), ROWS (64 or 128), COLS (8, 16, or a multiple of 32 up to 256; if TRANSPOSED any N of
// wgmma that wgmma.cuh has), STAGES, CLUSTER_ROWS, CLUSTER_COLS, TRANSPOSED (1: see hopper.cu, and R lies along;
// default 0).

#pragma once
#include "work_tiles.cuh"
#include "wgmma.cuh"
#include "../include/cluster_split_k.cuh"

#define DEPTH 64 // values of k in a stage
#define SLAB (DEPTH * 128) // bytes of a slab of 64 lines
#define GROUPS (ROWS / 64) // consumer warpgroups
#define L_BYTES (GROUPS * SLAB)
#define WIDE (COLS < 64 ? COLS : 64) // lines of a slab of R, if it lies across
#define SLABS ((COLS + 63) / 64)
#define R_SLAB (DEPTH * 2 * WIDE)
#ifndef TRANSPOSED
#define TRANSPOSED 0
#endif
#define R_BYTES (TRANSPOSED ? COLS * DEPTH * 2 : SLABS * R_SLAB)
#define MULTICAST (CLUSTER_ROWS * CLUSTER_COLS)
#define STAGE_BYTES (L_BYTES + R_BYTES)

// Pipeline finds the stage buffers in shared memory and their barriers. Each stage has a barrier "full", at which its
// copies arrive, and a barrier "empty", at which its readers do. CTAs first to first + MULTICAST - 1 of the cluster
// read what any of them loads.
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

// issue_copies loads share number `share` of an operand's stage, of SHARE equal shares, and multicasts it to the CTAs
// in the mask `blocks`. The stage holds LINES lines from line i on, and k from k on. If the operand lies across, only
// its first `slabs` slabs are loaded. Elements past the operand's end become 0.
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

// slabs_of returns the number of slabs to load for the tile of R from column col on, if R lies across. Slabs past the
// matrix are not loaded, because their results are not stored. r_bytes returns the bytes of these slabs, or of the
// whole tile if R lies along.
__device__ __forceinline__ u32 slabs_of(const Params &p, u32 col) {
    return col < p.n ? min(SLABS, (p.n - col + WIDE - 1) / WIDE) : 0;
}
__device__ __forceinline__ u32 r_bytes(u32 slabs, bool along) { return along ? COLS * DEPTH * 2 : slabs * R_SLAB; }

// PipelineState is a position in the pipeline: a stage, and the parity of its barriers to wait for.
struct PipelineState {
    u32 stage, parity;
    __device__ __forceinline__ void next() {
        if (++stage == STAGES) stage = 0, parity ^= 1;
    }
};

// sum adds the products of steps first to last - 1 to the sums of a consumer warpgroup, which has 64 rows. LT and RT
// are 1 if L and R lie across.
template <int LT, int RT>
__device__ __forceinline__ void sum(float (&acc)[COLS / 8][4], const Pipeline &pipeline, PipelineState &at, u32 first,
                                    u32 last, u32 group) {
    u32 lane = threadIdx.x % 128, before = 0;
    u64 l = swizzled(pipeline.stages + group * SLAB, SLAB),
        r = RT ? across_of<WIDE>(pipeline.stages + L_BYTES, SLAB) : swizzled(pipeline.stages + L_BYTES, SLAB);
    auto release = [&](u32 s) { // one thread arrives at each CTA's barrier
        if (lane < MULTICAST) barrier_arrive(pipeline.empty + 8 * s, pipeline.first + lane);
    };
#pragma unroll 1
    for (u32 k = first; k < last; k++) {
        u64 to = at.stage * (STAGE_BYTES >> 4); // descriptors count units of 16 bytes
        barrier_wait(pipeline.full + 8 * at.stage, at.parity);
        wgmma_fence();
#pragma unroll
        for (u32 e = 0; e < DEPTH / 16; e++)
            wgmma_sum<ELEM, LT, RT>(acc, l + to + e * ((LT ? 2048 : 32) >> 4),
                                    r + to + e * ((RT ? 32 * WIDE : 32) >> 4));
        wgmma_commit();
        if (k > first) {
            wgmma_wait<1>(); // until the previous step is done
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
