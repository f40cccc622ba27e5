// Computes: dst = srcᵀ for dense matrices of 16-bit elements, whose lines begin at multiples of 16 bytes.
// Tile: a CTA brings 64 elements of 64 lines of src to 64 elements of 64 lines of dst.
// Data movement: 16 bytes at a time to shared memory and from there to dst; ldmatrix transposes 8×8 elements. The next
// launch may begin as soon as all CTAs run.
// Bound by: latency, then L2.

#include "params.h"
#include "../include/launches.cuh"
#include "../include/units.cuh"

#define SIDE 64
#define THREADS 128

// place returns where chunk c (of 8 elements) of line l of src lies in the tile, in bytes.
__device__ __forceinline__ u32 place(u32 l, u32 c) { return l * (SIDE * 2) + (c ^ (l & 7)) * 16; }

// exchange transposes four words of each of four neighbouring lanes.
__device__ __forceinline__ void exchange(u32 (&x)[4]) {
#pragma unroll
    for (int bit = 1; bit < 4; bit *= 2) {
        bool upper = threadIdx.x & bit;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (i & bit) continue;
            u32 got = __shfl_xor_sync(0xffffffff, upper ? x[i] : x[i + bit], bit);
            if (upper) x[i] = got;
            else x[i + bit] = got;
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    densecopy(const u16 *__restrict__ src, const float *__restrict__, u16 *__restrict__ dst, const Params p) {
    __shared__ __align__(128) unsigned char tile[SIDE * SIDE * 2];
    u32 number = blockIdx.x + blockIdx.z * p.width, l0 = number / p.tiles * SIDE, e0 = number % p.tiles * SIDE;
    u32 thread = threadIdx.y * 32 + threadIdx.x, lane = threadIdx.x, warp = threadIdx.y, at = shared_address(tile);
    launches_before();
    launches_after();
    // Element e of dst's line l is element l of src's line e.
#pragma unroll
    for (u32 i = 0; i < SIDE * 8 / THREADS; i++) {
        u32 e = (i * THREADS + thread) / 8, c = thread % 8;
        if (e0 + e < p.len && l0 + 8 * c < p.lines)
            *(uint4 *)(tile + place(e, c)) = *(const uint4 *)(src + (size_t)(e0 + e) * p.lds + l0 + 8 * c);
    }
    __syncthreads();
#pragma unroll
    for (u32 i = 0; i < 4; i++) { // a warp has 16 lines of dst, here 8 of them and half of their elements
        u32 c = warp * 2 + i / 2, half = i % 2, x[4];
        ldmatrix_trans(x, at + place(half * 32 + lane, c));
        exchange(x);
        u32 l = l0 + 8 * c + lane / 4, e = e0 + half * 32 + lane % 4 * 8;
        if (l >= p.lines || e >= p.len) continue;
        u16 *to = dst + (size_t)l * p.ldd + e;
        if (e + 8 <= p.len) *(uint4 *)to = make_uint4(x[0], x[1], x[2], x[3]);
        else
#pragma unroll
            for (u32 j = 0; j < 7; j++)
                if (e + j < p.len) to[j] = (u16)(x[j / 2] >> (16 * (j & 1)));
    }
}
