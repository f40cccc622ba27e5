// Brings B to fixed point. See quantise.go for the phases and the layout of q.

#include "zparams.h"
#include "../include/half.cuh"
#include "../include/fixed.cuh"

typedef unsigned int u32;

#define LOCAL 128

// load returns the f32 bits of row k's elements j and j+1, zeros for those past the last column. j is even.
__device__ __forceinline__ uint2 load(const u32 *b, u32 k, u32 j, const Params &p) {
    size_t i = (size_t)k * p.ldb + j;
    uint2 x;
    if (p.elem == F32) {
        x = *(const uint2 *)(b + i);
    } else {
        u32 w = b[i / 2];
        x = p.elem == F16 ? make_uint2(__float_as_uint(widen_lo<F16>(w)), __float_as_uint(widen_hi<F16>(w)))
                          : make_uint2(w << 16, w & 0xffff0000u);
    }
    return make_uint2(j < p.n ? x.x : 0, j + 1 < p.n ? x.y : 0);
}

__device__ __forceinline__ uint2 join(uint2 r, uint2 s) { return make_uint2(join(r.x, s.x), join(r.y, s.y)); }

// store writes elements j and j+1 of a row.
__device__ __forceinline__ void store(u32 *row, u32 j, uint2 x, int l0, int l1, const Params &p) {
    long long a = quantise(x.x, l0), b = quantise(x.y, l1);
    if (p.bits == 15) {
        row[j / 2] = ((u32)a & 0xffffu) | (u32)b << 16;
    } else if (p.bits != 47) {
        *(uint2 *)(row + j) = make_uint2((u32)a, (u32)b);
    } else { // two balanced digits of 24 bits
        int lo_a = (int)((u32)a << 8) >> 8, lo_b = (int)((u32)b << 8) >> 8;
        *(uint2 *)(row + j) = make_uint2(lo_a, lo_b);
        *(uint2 *)(row + p.ldq + j) = make_uint2((u32)((a - lo_a) >> 24), (u32)((b - lo_b) >> 24));
    }
}

extern "C" __global__ void __launch_bounds__(LOCAL)
quantise(const u32 *__restrict__ b, u32 *q, const Params p) {
    __shared__ uint2 found[LOCAL];
    u32 shift = __ffs(p.across) - 1;
    u32 lane = threadIdx.x & (p.across - 1), sub = threadIdx.x >> shift, subs = LOCAL >> shift;
    u32 j = 2 * (blockIdx.y * p.across + lane); // the first of the lane's columns
    u32 begin = blockIdx.x * p.rows, end = min(begin + p.rows, p.k);
    bool inside = j < p.ldq;
    uint2 r = make_uint2(0, 0);
    if (inside && p.phase == 0) {
#pragma unroll 8
        for (u32 k = begin + sub; k < end; k += subs) {
            uint2 x = load(b, k, j, p);
            r = join(r, make_uint2(range_of(x.x), range_of(x.y)));
        }
    } else if (inside) {
#pragma unroll 8
        for (u32 c = sub; c < p.chunks; c += subs) r = join(r, *(const uint2 *)(q + (size_t)(c + 1) * p.ldq + j));
    }
    // Join what the lanes of these two columns found, for all of them.
    found[threadIdx.x] = r;
    __syncthreads();
    r = found[lane];
    for (u32 i = lane + p.across; i < LOCAL; i += p.across) r = join(r, found[i]);
    if (!inside) return;
    if (sub == 0 && (p.phase == 0 || blockIdx.x == 0))
        *(uint2 *)(q + (p.phase == 0 ? (size_t)(blockIdx.x + 1) * p.ldq : 0) + j) = r;
    if (p.phase == 0) return;
    int l0 = unit(r.x, p.bits), l1 = unit(r.y, p.bits);
    u32 *rows = q + (size_t)(p.chunks + 1) * p.ldq;
    u32 words = p.bits == 15 ? p.ldq / 2 : p.bits == 47 ? 2 * p.ldq : p.ldq; // of a row
#pragma unroll 4
    for (u32 k = begin + sub; k < end; k += subs) store(rows + (size_t)k * words, j, load(b, k, j, p), l0, l1, p);
}
