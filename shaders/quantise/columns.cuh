// Columns of B: elements as bits of f32, their ranges, four or eight columns to a lane, what a CTA joins of its lanes;
// integers and their digits.

#pragma once
#include "params.h"
#include "../include/half.cuh"
#include "../include/fixed.cuh"
#include "../include/overlap.cuh"
#include "../include/seen.cuh"

typedef unsigned int u32;

#define ALL 0xffffffffu
#define WARPS (LOCAL / 32)

// Some is a row's elements of C neighbouring columns as they are in B.
template <int ELEM, int C> struct Some {
    static const int WORDS = ELEM == F32 ? C : C / 2;
    u32 w[WORDS];

    // load reads row k's elements from j on, whatever lies past the last column. j is a multiple of C.
    __device__ __forceinline__ void load(const u32 *b, u32 k, u32 j, u32 ldb) {
        const u32 *from = b + ((size_t)k * ldb + j) * WORDS / C;
        if constexpr (WORDS == 2) {
            uint2 v = __ldg((const uint2 *)from);
            w[0] = v.x, w[1] = v.y;
        } else {
#pragma unroll
            for (int i = 0; i < WORDS; i += 4) {
                uint4 v = __ldg((const uint4 *)(from + i));
                w[i] = v.x, w[i + 1] = v.y, w[i + 2] = v.z, w[i + 3] = v.w;
            }
        }
    }
    // bits returns the f32 bits of element t.
    __device__ __forceinline__ u32 bits(int t) const {
        if (ELEM == F32) return w[t];
        return __float_as_uint(t % 2 ? widen_hi<ELEM>(w[t / 2]) : widen_lo<ELEM>(w[t / 2]));
    }
};

// SeenAll has the figures of a whole range: the largest magnitude of any element, and of the finite ones, and the
// lowest bit set in a finite one as a number, less 1 (so that none is the largest). All are bits of f32.
struct SeenAll {
    u32 any = 0, largest = 0, lowest = 0xffffffffu;

    __device__ __forceinline__ void see(u32 x) {
        u32 m = x & 0x7fffffffu;
        any = max(any, m);
        if (m >= 0x7f800000u) m = 0;
        largest = max(largest, m);
        // Without its last bit, a number is smaller by that bit. A power of two is that bit itself.
        u32 low = __float_as_uint(__uint_as_float(m) - __uint_as_float(m & (m - 1)));
        lowest = min(lowest, ((m & 0x7fffffu) != 0 ? low : m) - 1);
    }
    __device__ __forceinline__ u32 range() const {
        u32 r = any >= 0x7f800000u ? WILD : 0;
        return largest == 0 ? r : r | join(range_of(largest), range_of(lowest + 1));
    }
    static __device__ __forceinline__ u32 join(u32 r, u32 s) { return ::join(r, s); }
};

// write writes C words.
template <int C> __device__ __forceinline__ void write(u32 *to, const u32 (&r)[C]) {
#pragma unroll
    for (int i = 0; i < C; i += 4) *(uint4 *)(to + i) = make_uint4(r[i], r[i + 1], r[i + 2], r[i + 3]);
}

// read reads C words.
template <int C> __device__ __forceinline__ void read(u32 (&r)[C], const u32 *from) {
#pragma unroll
    for (int i = 0; i < C; i += 4) {
        uint4 v = *(const uint4 *)(from + i);
        r[i] = v.x, r[i + 1] = v.y, r[i + 2] = v.z, r[i + 3] = v.w;
    }
}

// join_lanes joins what the lanes of the same C columns found, for all of them. C·across is at most 128.
template <class S, int C> __device__ __forceinline__ void join_lanes(u32 (&r)[C], u32 lane, u32 across) {
    __shared__ __align__(16) u32 found[WARPS][128];
    for (u32 d = across; d < 32; d *= 2)
#pragma unroll
        for (int t = 0; t < C; t++) r[t] = S::join(r[t], __shfl_xor_sync(ALL, r[t], d));
    if (threadIdx.x % 32 < across) write(found[threadIdx.x / 32] + C * lane, r);
    __syncthreads();
    u32 column = threadIdx.x, x = 0; // a column for each thread
    if (column < C * across)
#pragma unroll
        for (int w = 0; w < WARPS; w++) x = S::join(x, found[w][column]);
    if (column < C * across) found[0][column] = x;
    __syncthreads();
    read(r, found[0] + C * lane);
}

// The lane's place in phases 0 to 2, in which a lane has C columns, from j on.
struct Place {
    u32 lane, sub, subs, j, begin, end;
};

template <int C> __device__ __forceinline__ Place place(const Params &p) {
    u32 shift = __ffs(p.across) - 1, lane = threadIdx.x & (p.across - 1), begin = blockIdx.x * p.rows;
    return {lane,  threadIdx.x >> shift,    (u32)LOCAL >> shift, C * (blockIdx.y * p.across + lane),
            begin, min(begin + p.rows, p.k)};
}

// find returns the ranges of the lane's columns in the CTA's rows. S is Seen or SeenAll.
template <class S, int ELEM, int C>
__device__ __forceinline__ void find(u32 (&r)[C], const u32 *b, const Place &at, const Params &p) {
    S seen[C];
    if (at.j < p.ldq) {
#pragma unroll 8
        for (u32 k = at.begin + at.sub; k < at.end; k += at.subs) {
            Some<ELEM, C> x;
            x.load(b, k, at.j, p.ldb);
#pragma unroll
            for (int t = 0; t < C; t++) seen[t].see(x.bits(t));
        }
    }
#pragma unroll
    for (int t = 0; t < C; t++) r[t] = at.j + t < p.n ? seen[t].range() : 0;
    join_lanes<S>(r, at.lane, p.across);
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
