// Computes: B (cols × n) in RFX-p's fixed point, q (quantise.go). Phase 0 finds ranges of parts of columns, phases 1
// and 2 join them and quantise.
// Tile: a CTA has a tile of rows and columns of B.
// Data movement: straight through registers; ranges of a tile meet in shared memory.
// Bound by: memory bandwidth.

#include "params.h"
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
__device__ __forceinline__ int whole(u32 x, float scale, float more) {
    return finite(x) ? __float2int_rn(__uint_as_float(x) * scale * more) : 0;
}

// split gathers four columns' digits by place.
__device__ __forceinline__ void split(u32 (&place)[4], const u32 *x) {
    u32 a = __byte_perm(x[0], x[1], 0x5140), b = __byte_perm(x[2], x[3], 0x5140);
    place[0] = __byte_perm(a, b, 0x5410), place[1] = __byte_perm(a, b, 0x7632);
    a = __byte_perm(x[0], x[1], 0x7362), b = __byte_perm(x[2], x[3], 0x7362);
    place[2] = __byte_perm(a, b, 0x5410), place[3] = __byte_perm(a, b, 0x7632);
}

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

// join8 joins what the lanes of the same eight columns found, for all of them.
__device__ __forceinline__ void join8(u32 (*found)[LOCAL], u32 (&r)[8], u32 lane, u32 across) {
#pragma unroll
    for (int t = 0; t < 8; t++) found[t][threadIdx.x] = r[t];
    __syncthreads();
    for (u32 i = lane; i < LOCAL; i += across)
#pragma unroll
        for (int t = 0; t < 8; t++) r[t] = join(r[t], found[t][i]);
}

// The lane's place in phases 0 and 2, in which a lane has eight columns, from j on.
struct Place {
    u32 lane, sub, subs, j, begin, end;
};

__device__ __forceinline__ Place place(const Params &p) {
    u32 shift = __ffs(p.across) - 1, lane = threadIdx.x & (p.across - 1), begin = blockIdx.x * p.rows;
    return {lane,  threadIdx.x >> shift,    (u32)LOCAL >> shift, 8 * (blockIdx.y * p.across + lane),
            begin, min(begin + p.rows, p.k)};
}

// scan is phase 0.
template <int ELEM>
__device__ __forceinline__ void scan(u32 (*found)[LOCAL], const u32 *__restrict__ b, u32 *q, const Params &p) {
    Place at = place(p);
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
    u32 r[8];
#pragma unroll
    for (int t = 0; t < 8; t++) r[t] = at.j + t < p.n ? range_of(seen[t]) : 0;
    join8(found, r, at.lane, p.across);
    if (at.j >= p.ldq || at.sub != 0) return;
    uint4 *to = (uint4 *)(q + (size_t)(blockIdx.x + 1) * p.ldq + at.j);
    to[0] = make_uint4(r[0], r[1], r[2], r[3]);
    to[1] = make_uint4(r[4], r[5], r[6], r[7]);
}

// to_digits is phase 2.
template <int ELEM>
__device__ __forceinline__ void to_digits(u32 (*found)[LOCAL], const u32 *__restrict__ b, u32 *q, const Params &p) {
    Place at = place(p);
    bool inside = at.j < p.ldq;
    u32 r[8] = {};
#pragma unroll 4
    for (u32 c = at.sub; inside && c < p.chunks; c += at.subs) {
        const uint4 *v = (const uint4 *)(q + (size_t)(c + 1) * p.ldq + at.j);
        uint4 x = v[0], y = v[1];
        r[0] = join(r[0], x.x), r[1] = join(r[1], x.y), r[2] = join(r[2], x.z), r[3] = join(r[3], x.w);
        r[4] = join(r[4], y.x), r[5] = join(r[5], y.y), r[6] = join(r[6], y.z), r[7] = join(r[7], y.w);
    }
    join8(found, r, at.lane, p.across);
    if (!inside) return;
    float scale[8], more[8];
#pragma unroll
    for (int t = 0; t < 8; t++) {
        if (at.sub == 0 && blockIdx.x == 0) q[at.j + t] = r[t];
        int l = -unit(r[t], p.bits), half = l / 2; // each factor between 2^-126 and 2^127
        scale[t] = at.j + t < p.n ? __uint_as_float((u32)(127 + half) << 23) : 0;
        more[t] = __uint_as_float((u32)(127 + l - half) << 23);
    }
    u32 places = (p.bits + 1) / 8, pitch = ((places * p.ldq + 31) & ~63u) + 32;
    char *rows = (char *)(q + (size_t)(p.chunks + 1) * p.ldq);
#pragma unroll 4
    for (u32 k = at.begin + at.sub; k < at.end; k += at.subs) {
        u32 x[8], lo[4], hi[4];
        load8<ELEM>(x, b, k, at.j, p.ldb);
#pragma unroll
        for (int t = 0; t < 8; t++) x[t] = digits(whole(x[t], scale[t], more[t]), p.bits);
        split(lo, x);
        split(hi, x + 4);
        char *row = rows + (size_t)k * pitch;
        *(uint4 *)(row + 2 * at.j) = make_uint4(lo[0], hi[0], lo[1], hi[1]);
        if (places == 3) *(uint2 *)(row + 2 * p.ldq + at.j) = make_uint2(lo[2], hi[2]);
        if (places == 4) *(uint4 *)(row + 2 * p.ldq + 2 * at.j) = make_uint4(lo[2], hi[2], lo[3], hi[3]);
    }
}

template <int ELEM>
__device__ __forceinline__ void by_eights(u32 (*found)[LOCAL], const u32 *b, u32 *q, const Params &p) {
    if (p.phase == 0) scan<ELEM>(found, b, q, p);
    else to_digits<ELEM>(found, b, q, p);
}

extern "C" __global__ void __launch_bounds__(LOCAL) quantise(const u32 *__restrict__ b, u32 *q, const Params p) {
    __shared__ u32 found[8][LOCAL];
    if (p.phase != 1) {
        if (p.elem == F32) by_eights<F32>(found, b, q, p);
        else if (p.elem == F16) by_eights<F16>(found, b, q, p);
        else by_eights<BF16>(found, b, q, p);
        return;
    }
    u32 shift = __ffs(p.across) - 1;
    u32 lane = threadIdx.x & (p.across - 1), sub = threadIdx.x >> shift, subs = LOCAL >> shift;
    u32 j = 2 * (blockIdx.y * p.across + lane); // the first of the lane's columns
    u32 begin = blockIdx.x * p.rows, end = min(begin + p.rows, p.k);
    bool inside = j < p.ldq;
    uint2 r = make_uint2(0, 0);
    if (inside) {
#pragma unroll 8
        for (u32 c = sub; c < p.chunks; c += subs) r = join(r, *(const uint2 *)(q + (size_t)(c + 1) * p.ldq + j));
    }
    // Join what the lanes of these two columns found, for all of them.
    found[0][threadIdx.x] = r.x, found[1][threadIdx.x] = r.y;
    __syncthreads();
    for (u32 i = lane; i < LOCAL; i += p.across) r = join(r, make_uint2(found[0][i], found[1][i]));
    if (!inside) return;
    if (sub == 0 && blockIdx.x == 0) *(uint2 *)(q + j) = r;
    int l0 = unit(r.x, p.bits), l1 = unit(r.y, p.bits);
    u32 *rows = q + (size_t)(p.chunks + 1) * p.ldq;
    u32 words = p.bits == 15 ? p.ldq / 2 : p.bits == 47 ? 2 * p.ldq : p.ldq; // of a row
#pragma unroll 4
    for (u32 k = begin + sub; k < end; k += subs) store(rows + (size_t)k * words, j, load(b, k, j, p), l0, l1, p);
}
