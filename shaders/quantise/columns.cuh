// Columns of B: elements as bits of f32, their ranges, eight columns to a lane, what a CTA joins of its lanes; integers
// and their digits.

#pragma once
#include "params.h"
#include "../include/half.cuh"
#include "../include/fixed.cuh"
#include "../include/overlap.cuh"

typedef unsigned int u32;

#define ALL 0xffffffffu
#define WARPS (LOCAL / 32)

// load8 returns the f32 bits of row k's elements j to j+7, whatever lies past the last column. j is a multiple of 8.
template <int ELEM> __device__ __forceinline__ void load8(u32 (&x)[8], const u32 *b, u32 k, u32 j, u32 ldb) {
    size_t i = (size_t)k * ldb + j;
    if (ELEM == F32) {
        uint4 v = __ldg((const uint4 *)(b + i)), w = __ldg((const uint4 *)(b + i + 4));
        x[0] = v.x, x[1] = v.y, x[2] = v.z, x[3] = v.w, x[4] = w.x, x[5] = w.y, x[6] = w.z, x[7] = w.w;
        return;
    }
    uint4 w = __ldg((const uint4 *)(b + i / 2));
    u32 v[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
    for (int t = 0; t < 4; t++)
        x[2 * t] = __float_as_uint(widen_lo<ELEM>(v[t])), x[2 * t + 1] = __float_as_uint(widen_hi<ELEM>(v[t]));
}

// What is known of some elements: the largest magnitude of any, and of the finite ones, and the lowest bit set in a
// finite one as a number, less 1 (so that none is the largest). All are bits of f32.
struct Seen {
    u32 any, largest, lowest;
};

__device__ __forceinline__ void see(Seen &s, u32 x) {
    u32 m = x & 0x7fffffffu;
    s.any = max(s.any, m);
    if (m >= 0x7f800000u) m = 0;
    s.largest = max(s.largest, m);
    // Without its last bit, a number is smaller by that bit. A power of two is that bit itself.
    u32 low = __float_as_uint(__uint_as_float(m) - __uint_as_float(m & (m - 1)));
    s.lowest = min(s.lowest, ((m & 0x7fffffu) != 0 ? low : m) - 1);
}

__device__ __forceinline__ u32 range_of(const Seen &s) {
    u32 r = s.any >= 0x7f800000u ? WILD : 0;
    return s.largest == 0 ? r : r | join(range_of(s.largest), range_of(s.lowest + 1));
}

// write8 writes eight words.
__device__ __forceinline__ void write8(u32 *to, const u32 (&r)[8]) {
    ((uint4 *)to)[0] = make_uint4(r[0], r[1], r[2], r[3]);
    ((uint4 *)to)[1] = make_uint4(r[4], r[5], r[6], r[7]);
}

// join8 joins what the lanes of the same eight columns found, for all of them. across is at most 16.
__device__ __forceinline__ void join8(u32 (&r)[8], u32 lane, u32 across) {
    __shared__ __align__(16) u32 found[WARPS][128];
    for (u32 d = across; d < 32; d *= 2)
#pragma unroll
        for (int t = 0; t < 8; t++) r[t] = join(r[t], __shfl_xor_sync(ALL, r[t], d));
    if (threadIdx.x % 32 < across) write8(found[threadIdx.x / 32] + 8 * lane, r);
    __syncthreads();
    u32 column = threadIdx.x, x = 0; // a column for each thread
    if (column < 8 * across)
#pragma unroll
        for (int w = 0; w < WARPS; w++) x = join(x, found[w][column]);
    if (column < 8 * across) found[0][column] = x;
    __syncthreads();
    uint4 lo = *(const uint4 *)(found[0] + 8 * lane), hi = *(const uint4 *)(found[0] + 8 * lane + 4);
    r[0] = lo.x, r[1] = lo.y, r[2] = lo.z, r[3] = lo.w, r[4] = hi.x, r[5] = hi.y, r[6] = hi.z, r[7] = hi.w;
}

// The lane's place in phases 0 to 2, in which a lane has eight columns, from j on.
struct Place {
    u32 lane, sub, subs, j, begin, end;
};

__device__ __forceinline__ Place place(const Params &p) {
    u32 shift = __ffs(p.across) - 1, lane = threadIdx.x & (p.across - 1), begin = blockIdx.x * p.rows;
    return {lane,  threadIdx.x >> shift,    (u32)LOCAL >> shift, 8 * (blockIdx.y * p.across + lane),
            begin, min(begin + p.rows, p.k)};
}

// find returns the ranges of the lane's eight columns in the CTA's rows.
template <int ELEM> __device__ __forceinline__ void find(u32 (&r)[8], const u32 *b, const Place &at, const Params &p) {
    Seen seen[8];
#pragma unroll
    for (int t = 0; t < 8; t++) seen[t] = {0, 0, 0xffffffffu};
    if (at.j < p.ldq) {
#pragma unroll 4
        for (u32 k = at.begin + at.sub; k < at.end; k += at.subs) {
            u32 x[8];
            load8<ELEM>(x, b, k, at.j, p.ldb);
#pragma unroll
            for (int t = 0; t < 8; t++) see(seen[t], x[t]);
        }
    }
#pragma unroll
    for (int t = 0; t < 8; t++) r[t] = at.j + t < p.n ? range_of(seen[t]) : 0;
    join8(r, at.lane, p.across);
}

// digits returns q as balanced digits, a byte each, the lowest first.
__device__ __forceinline__ u32 digits(int q, u32 bits) {
    u32 half = bits == 15 ? 0x80u : bits == 23 ? 0x8080u : 0x808080u;
    return ((u32)q + half) ^ half;
}

// whole is quantise for p below 47: scaling by powers of two, one after the other, is exact wherever the result is
// not far below 1/2.
__device__ __forceinline__ int whole(u32 x, float scale, float more) {
    return finite(x) ? __float2int_rn(__uint_as_float(x) * scale * more) : 0;
}

// factors returns the scale of a column as two, each between 2^-126 and 2^127.
__device__ __forceinline__ void factors(u32 range, u32 bits, float &scale, float &more) {
    int l = -unit(range, bits), half = l / 2;
    scale = __uint_as_float((u32)(127 + half) << 23), more = __uint_as_float((u32)(127 + l - half) << 23);
}

// Digits are the balanced digits of 8 bits of an integer: four in lo, two in hi.
struct Digits {
    u32 lo, hi;
};

// whole47 is quantise for p = 47: in float64 scaling is exact, and the conversion rounds once, ties to even.
__device__ __forceinline__ long long whole47(u32 x, int l) {
    double scale = __longlong_as_double((long long)(1023 - l) << 52);
    return finite(x) ? __double2ll_rn((double)__uint_as_float(x) * scale) : 0;
}

// digits47 quantises an element at p = 47, in units of 2^l.
__device__ __forceinline__ Digits digits47(u32 x, int l) {
    const long long half = 0x808080808080;
    long long d = (whole47(x, l) + half) ^ half;
    return {(u32)d, (u32)(d >> 32)};
}
