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

// digits returns q as balanced digits, a byte each, the lowest first.
__device__ __forceinline__ u32 digits(int q, u32 bits) {
    u32 half = bits == 15 ? 0x80u : bits == 23 ? 0x8080u : 0x808080u;
    return ((u32)q + half) ^ half;
}

// whole is quantise for p below 47: scaling by powers of two, one after the other, is exact wherever the result is
// not far below 1/2.
__device__ __forceinline__ int whole(u32 x, float scale, float more) { return finite(x) ? __float2int_rn(__uint_as_float(x) * scale * more) : 0; }

// split brings the places of four columns' digits together.
__device__ __forceinline__ void split(u32 (&place)[4], const u32 *x) {
    u32 a = __byte_perm(x[0], x[1], 0x5140), b = __byte_perm(x[2], x[3], 0x5140);
    place[0] = __byte_perm(a, b, 0x5410), place[1] = __byte_perm(a, b, 0x7632);
    a = __byte_perm(x[0], x[1], 0x7362), b = __byte_perm(x[2], x[3], 0x7362);
    place[2] = __byte_perm(a, b, 0x5410), place[3] = __byte_perm(a, b, 0x7632);
}

// load8 returns the f32 bits of row k's elements j to j+7, zeros for those past the last column. j is a multiple of 8.
__device__ __forceinline__ void load8(u32 (&x)[8], const u32 *b, u32 k, u32 j, const Params &p) {
    size_t i = (size_t)k * p.ldb + j;
    if (p.elem == F32) {
        *(uint4 *)x = *(const uint4 *)(b + i);
        *(uint4 *)(x + 4) = *(const uint4 *)(b + i + 4);
    } else {
        uint4 w = *(const uint4 *)(b + i / 2);
        u32 v[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
        for (int t = 0; t < 4; t++) {
            x[2 * t] = p.elem == F16 ? __float_as_uint(widen_lo<F16>(v[t])) : v[t] << 16;
            x[2 * t + 1] = p.elem == F16 ? __float_as_uint(widen_hi<F16>(v[t])) : v[t] & 0xffff0000u;
        }
    }
#pragma unroll
    for (int t = 0; t < 8; t++) x[t] = j + t < p.n ? x[t] : 0;
}

// to_digits is phase 2: a lane has eight columns.
__device__ __forceinline__ void to_digits(u32 (*found)[8], const u32 *__restrict__ b, u32 *q, const Params &p) {
    u32 shift = __ffs(p.across) - 1;
    u32 lane = threadIdx.x & (p.across - 1), sub = threadIdx.x >> shift, subs = LOCAL >> shift;
    u32 j = 8 * (blockIdx.y * p.across + lane); // the first of the lane's columns
    u32 begin = blockIdx.x * p.rows, end = min(begin + p.rows, p.k);
    bool inside = j < p.ldq;
    u32 r[8] = {};
    for (u32 c = sub; inside && c < p.chunks; c += subs)
#pragma unroll
        for (int t = 0; t < 8; t++) r[t] = join(r[t], q[(size_t)(c + 1) * p.ldq + j + t]);
#pragma unroll
    for (int t = 0; t < 8; t++) found[threadIdx.x][t] = r[t];
    __syncthreads();
    for (u32 i = lane; i < LOCAL; i += p.across)
#pragma unroll
        for (int t = 0; t < 8; t++) r[t] = join(r[t], found[i][t]);
    if (!inside) return;
    float scale[8], more[8];
#pragma unroll
    for (int t = 0; t < 8; t++) {
        if (sub == 0 && blockIdx.x == 0) q[j + t] = r[t];
        int l = -unit(r[t], p.bits), half = l / 2; // each between 2^-126 and 2^127
        scale[t] = __uint_as_float((u32)(127 + half) << 23), more[t] = __uint_as_float((u32)(127 + l - half) << 23);
    }
    u32 places = (p.bits + 1) / 8, pitch = ((places * p.ldq + 31) & ~63u) + 32;
    char *rows = (char *)(q + (size_t)(p.chunks + 1) * p.ldq);
#pragma unroll 2
    for (u32 k = begin + sub; k < end; k += subs) {
        u32 x[8], lo[4], hi[4];
        load8(x, b, k, j, p);
#pragma unroll
        for (int t = 0; t < 8; t++) x[t] = digits(whole(x[t], scale[t], more[t]), p.bits);
        split(lo, x);
        split(hi, x + 4);
        char *row = rows + (size_t)k * pitch;
        *(uint4 *)(row + 2 * j) = make_uint4(lo[0], hi[0], lo[1], hi[1]);
        if (places == 3) *(uint2 *)(row + 2 * p.ldq + j) = make_uint2(lo[2], hi[2]);
        if (places == 4) *(uint4 *)(row + 2 * p.ldq + 2 * j) = make_uint4(lo[2], hi[2], lo[3], hi[3]);
    }
}

extern "C" __global__ void __launch_bounds__(LOCAL)
quantise(const u32 *__restrict__ b, u32 *q, const Params p) {
    __shared__ uint2 found[LOCAL];
    __shared__ u32 found8[LOCAL][8];
    if (p.phase == 2) return to_digits(found8, b, q, p);
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
