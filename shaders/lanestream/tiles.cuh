// What kernels on COLS columns share. They process the columns in tiles of 8.

#pragma once
#include "../include/launches.cuh"
#include "lanestream.cuh"
#if defined(B_VECTOR) || defined(B_LINES)
#define C_COLUMNS
#endif
#ifdef C_COLUMNS
#include "../include/store_line.cuh"
#endif

#define TILES (COLS / 8)
#define PITCH (COLS + 4) // of a row of sums in shared memory
#define SUMS (GROUP_ROWS * PITCH * 4) // bytes of the partial sums of a group of rows

// write_sum_pairs writes a warp's sums to shared memory. pair(i, t, h) returns the lane's two sums in row lane / 4 + 8h
// of the i-th 16 rows and tile t of the columns.
template <class F> __device__ __forceinline__ void write_sum_pairs(float *sums, u32 lane, F pair) {
#pragma unroll
    for (int i = 0; i < 4; i++)
#pragma unroll
        for (int t = 0; t < TILES; t++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                *(float2 *)(sums + (16 * i + 8 * h + lane / 4) * PITCH + 8 * t + 2 * (lane % 4)) = pair(i, t, h);
    __syncwarp();
}

// swizzled returns where chunk c (of 8 columns) of row k lies within its row of B, in bytes.
__device__ __forceinline__ u32 swizzled(u32 k, u32 c) {
    return TILES == 1 ? 0 : TILES == 2 ? (c ^ (k >> 2 & 1)) * 16 : (c ^ (k >> 1 & 3)) * 16;
}

// Quad is a thread's i-th output of a cluster: four columns, from column `at` on, of row r of group `of`. Neighbouring
// threads have neighbouring columns, or for a column-major C neighbouring rows.
struct Quad {
#ifdef C_COLUMNS
    static constexpr bool ROWS = true;
#else
    static constexpr bool ROWS = false;
#endif
    u32 of, r, at;

    __device__ __forceinline__ Quad(u32 i) : of(i / (GROUP_ROWS * (COLS / 4))) {
#ifdef C_COLUMNS
        r = i % GROUP_ROWS, at = i / GROUP_ROWS % (COLS / 4) * 4;
#else
        r = i / (COLS / 4) % GROUP_ROWS, at = i % (COLS / 4) * 4;
#endif
    }
};
#ifdef C_COLUMNS
typedef EitherOut<Params> Output;
#else
typedef Out<Params> Output;
#endif

// cluster_exit waits for all CTAs of the cluster. It does not order their writes.
__device__ __forceinline__ void cluster_exit() {
    asm volatile("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}

// add_splits adds to x the partial sums of group `of` of the cluster, in the order of K: those of row r and the four
// columns from `at` on. Each warp has left its partial sums at the start of its stage buffer.
__device__ __forceinline__ void add_splits(float4 &x, const unsigned char *smem, u32 of, u32 r, u32 at,
                                           const Params &p) {
    for (u32 q = of, end = p.splits * p.each; q < end; q += 4 * p.each) {
        float4 y[4];
#pragma unroll
        for (int k = 0; k < 4; k++) {
            u32 s = q + k * p.each;
            y[k] = make_float4(0, 0, 0, 0);
#ifdef HOPPER
            if (s < end)
                y[k] = cluster_load4(shared_address(smem) + s % WARPS * BUFFER_BYTES + (r * PITCH + at) * 4, s / WARPS);
#else
            if (s < end) y[k] = *(const float4 *)(smem + s * BUFFER_BYTES + (r * PITCH + at) * 4);
#endif
        }
#pragma unroll
        for (int k = 0; k < 4; k++) x.x += y[k].x, x.y += y[k].y, x.z += y[k].z, x.w += y[k].w;
    }
}
// added returns the total of the partial sums.
__device__ __forceinline__ float4 added(const unsigned char *smem, u32 of, u32 r, u32 at, const Params &p) {
    float4 x = make_float4(0, 0, 0, 0);
    add_splits(x, smem, of, r, at, p);
    return x;
}
