// SpMM from compressed sparse rows. See csr.go for how work is shared out. ELEM is the element type
// (half.cuh); a lane holds VEC columns, 16 bytes of a row of B.

#include "params.h"
#include "../include/epilogue.cuh"

typedef unsigned int u32;

#if ELEM == F32
#define VEC 4
typedef float4 Values; // of four entries
#else
#define VEC 8
typedef uint2 Values;
#endif

#define ALL 0xffffffffu

// value returns entry i of four.
__device__ __forceinline__ float value(const Values &v, int i) {
#if ELEM == F32
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
#else
    u32 w = i < 2 ? v.x : v.y;
    return i & 1 ? widen_hi<ELEM>(w) : widen_lo<ELEM>(w);
#endif
}

__device__ __forceinline__ u32 word(const uint4 &v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }

// load returns 16 bytes of B, or zeros. (Predicated by hand: around branches the compiler would wait
// for each load before the next.)
__device__ __forceinline__ uint4 load(const uint4 *b, bool in) {
    uint4 q;
    asm volatile("{.reg .pred in; setp.ne.u32 in, %5, 0;\n\t"
                 "mov.u32 %0, 0; mov.u32 %1, 0; mov.u32 %2, 0; mov.u32 %3, 0;\n\t"
                 "@in ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];}"
                 : "=r"(q.x), "=r"(q.y), "=r"(q.z), "=r"(q.w)
                 : "l"(b), "r"((u32)in));
    return q;
}

// accumulate adds v times the columns in q.
__device__ __forceinline__ void accumulate(float (&acc)[VEC], float v, const uint4 &q) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
#if ELEM == F32
        acc[i] = fmaf(v, __uint_as_float(word(q, i)), acc[i]);
#else
        acc[2 * i] = fmaf(v, widen_lo<ELEM>(word(q, i)), acc[2 * i]);
        acc[2 * i + 1] = fmaf(v, widen_hi<ELEM>(word(q, i)), acc[2 * i + 1]);
#endif
    }
}

// entries adds up the entries from begin to end that are the lane's: every along-th four of them,
// counted from multiples of four, so that columns and values come in whole vectors. The next four
// are fetched before the rows of B of these. Entries of the neighbouring rows count as zero times
// zero.
__device__ __forceinline__ void entries(float (&acc)[VEC], u32 begin, u32 end, u32 group, const uint4 *__restrict__ colidx,
                                        const Values *__restrict__ values, const uint4 *__restrict__ b, const Params &p) {
    u32 k = (begin & ~3u) + 4 * group, step = 4 * p.along, ld = p.ldb / VEC;
    if (k >= end) return;
    uint4 cols = __ldg(colidx + k / 4);
    Values vals = __ldg(values + k / 4);
    while (true) {
        u32 next = k + step;
        uint4 next_cols;
        Values next_vals;
        if (next < end) {
            next_cols = __ldg(colidx + next / 4);
            next_vals = __ldg(values + next / 4);
        }
        uint4 q[4];
        float v[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            bool in = k + i >= begin && k + i < end;
            v[i] = in ? value(vals, i) : 0.0f;
            q[i] = load(b + (size_t)word(cols, i) * ld, in);
        }
#pragma unroll
        for (int i = 0; i < 4; i++) accumulate(acc, v[i], q[i]);
        if (next >= end) return;
        k = next;
        cols = next_cols;
        vals = next_vals;
    }
}

// pieces adds up the lane's share of rows first to last of the workspace.
__device__ __forceinline__ void pieces(float (&acc)[VEC], u32 first, u32 last, u32 group, const float *part, const Params &p) {
#pragma unroll 4
    for (u32 i = first + group; i < last; i += p.along)
#pragma unroll
        for (int j = 0; j < VEC; j += 4) {
            float4 x = *(const float4 *)(part + (size_t)i * p.ldp + j);
            acc[j] += x.x;
            acc[j + 1] += x.y;
            acc[j + 2] += x.z;
            acc[j + 3] += x.w;
        }
}

// store_f32 writes alpha·acc + beta·c for the count columns from c on.
__device__ __forceinline__ void store_f32(float *c, const float (&acc)[VEC], u32 count, const Params &p) {
    if (count == VEC && p.ldc % 4 == 0) {
#pragma unroll
        for (int j = 0; j < VEC; j += 4) {
            float4 y = make_float4(p.alpha * acc[j], p.alpha * acc[j + 1], p.alpha * acc[j + 2], p.alpha * acc[j + 3]);
            if (p.beta != 0) {
                float4 x = *(float4 *)(c + j);
                y = make_float4(fmaf(p.beta, x.x, y.x), fmaf(p.beta, x.y, y.y), fmaf(p.beta, x.z, y.z), fmaf(p.beta, x.w, y.w));
            }
            *(float4 *)(c + j) = y;
        }
        return;
    }
#pragma unroll
    for (int j = 0; j < VEC; j++)
        if (j < count) c[j] = p.beta != 0 ? fmaf(p.beta, c[j], p.alpha * acc[j]) : p.alpha * acc[j];
}

// store_half is store_f32 for a C of 16-bit elements.
__device__ __forceinline__ void store_half(unsigned short *c, const float (&acc)[VEC], u32 count, const Params &p) {
    u32 y[VEC / 2];
#pragma unroll
    for (int j = 0; j < VEC; j += 2) {
        float lo = p.alpha * acc[j], hi = p.alpha * acc[j + 1];
        if (p.beta != 0) {
            u32 x = j < count ? c[j] : 0;
            if (j + 1 < count) x |= (u32)c[j + 1] << 16;
            lo = fmaf(p.beta, p.store == F16 ? widen_lo<F16>(x) : widen_lo<BF16>(x), lo);
            hi = fmaf(p.beta, p.store == F16 ? widen_hi<F16>(x) : widen_hi<BF16>(x), hi);
        }
        y[j / 2] = narrow(lo, hi, p.store);
    }
    if (count == VEC && p.ldc % VEC == 0) {
#if VEC == 8
        *(uint4 *)c = make_uint4(y[0], y[1], y[2], y[3]);
#else
        *(uint2 *)c = make_uint2(y[0], y[1]);
#endif
        return;
    }
#pragma unroll
    for (int j = 0; j < VEC; j++)
        if (j < count) c[j] = (unsigned short)(j & 1 ? y[j / 2] >> 16 : y[j / 2]);
}

// (At least 8 workgroups on a multiprocessor leave 64 registers, enough to have four rows of B in flight.)
extern "C" __global__ void __launch_bounds__(128, 8)
csr(const u32 *__restrict__ rowptr, const uint4 *__restrict__ colidx, const Values *__restrict__ values,
    const u32 *__restrict__ heavy, const uint4 *__restrict__ b, const float *__restrict__ bias, void *__restrict__ c, float *part,
    const Params p) {
    u32 group = threadIdx.x >> (__ffs(p.across) - 1); // of the workgroup's
    u32 lane = threadIdx.x & (p.across - 1);
    u32 item = (blockIdx.x + blockIdx.z * p.width) * p.per + (group >> (__ffs(p.along) - 1));
    group &= p.along - 1; // of the item's
    u32 col = (blockIdx.y * p.across + lane) * VEC; // the lane's first column
    float acc[VEC];
#pragma unroll
    for (int j = 0; j < VEC; j++) acc[j] = 0;

    bool busy = item < p.items && col < p.n;
    bool piece = p.phase == 0 && item < p.pieces;
    u32 row = 0;
    if (busy && p.phase == 1) {
        const u32 *r = heavy + 2 * (size_t)p.pieces + 3 * (size_t)item;
        row = r[0];
        pieces(acc, r[1], r[2], group, part + col, p);
    } else if (busy) {
        row = item - p.pieces;
        u32 begin = piece ? heavy[2 * (size_t)item] : rowptr[row];
        u32 end = piece ? heavy[2 * (size_t)item + 1] : rowptr[row + 1];
        busy = piece || end - begin <= p.longest; // else it is done in pieces
        if (busy) entries(acc, begin, end, group, colidx, values, b + col / VEC, p);
    }

    for (u32 d = p.across; d < p.across * p.along; d *= 2)
#pragma unroll
        for (int j = 0; j < VEC; j++) acc[j] += __shfl_xor_sync(ALL, acc[j], d);

    if (!busy || group != 0) return;
    if (piece) {
#pragma unroll
        for (int j = 0; j < VEC; j += 4)
            *(float4 *)(part + (size_t)item * p.ldp + col + j) = make_float4(acc[j], acc[j + 1], acc[j + 2], acc[j + 3]);
        return;
    }
    size_t at = (size_t)row * p.ldc + col;
    u32 count = min(p.n - col, (u32)VEC);
    if (p.store == F32)
        store_f32((float *)c + at, acc, count, p);
    else if (!has_epilogue(p.store))
        store_half((unsigned short *)c + at, acc, count, p);
    else
#pragma unroll
        for (int j = 0; j < VEC; j += 4)
            store_quad(c, bias, p.store, row, col + j, p.n, p.ldc, p.beta,
                       make_float4(p.alpha * acc[j], p.alpha * acc[j + 1], p.alpha * acc[j + 2], p.alpha * acc[j + 3]));
}
