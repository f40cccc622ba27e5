// SpMM from compressed sparse rows. See csr.go for how work is shared out. ELEM is the element type
// (half.cuh); a lane holds VEC columns, 16 bytes of a row of B, or with COLUMNS that many, for a B of no more columns. With TEAMS a piece is the work of a whole workgroup. With OVERLAP
// launches overlap: where its entries begin and the first of them a lane reads while the launch before still runs.

#include "params.h"
#include "../include/epilogue.cuh"
#ifdef OVERLAP
#include "../include/launches.cuh"
#else
__device__ __forceinline__ void launches_before() {}
__device__ __forceinline__ void launches_after() {}
#endif

typedef unsigned int u32;

#ifndef BLOCKS
#define BLOCKS 8 // of 128 on a multiprocessor: 64 registers, enough to have four rows of B in flight
#endif

#if ELEM == F32
#ifdef COLUMNS
#define VEC COLUMNS
#else
#define VEC 4
#endif
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

// Of a row of B, what a lane reads.
#if VEC == 1
typedef u32 Columns;
#elif VEC == 2
typedef uint2 Columns;
#else
typedef uint4 Columns;
#endif

// load returns what a lane reads of a row of B, or zeros. (Predicated by hand: around branches the compiler would wait
// for each load before the next.)
__device__ __forceinline__ Columns load(const Columns *b, bool in) {
    Columns q;
#if VEC == 1
    asm volatile("{.reg .pred in; setp.ne.u32 in, %2, 0; mov.u32 %0, 0; @in ld.global.nc.u32 %0, [%1];}" : "=r"(q) : "l"(b), "r"((u32)in));
#elif VEC == 2
    asm volatile("{.reg .pred in; setp.ne.u32 in, %3, 0; mov.u32 %0, 0; mov.u32 %1, 0; @in ld.global.nc.v2.u32 {%0, %1}, [%2];}"
                 : "=r"(q.x), "=r"(q.y) : "l"(b), "r"((u32)in));
#else
    asm volatile("{.reg .pred in; setp.ne.u32 in, %5, 0;\n\t"
                 "mov.u32 %0, 0; mov.u32 %1, 0; mov.u32 %2, 0; mov.u32 %3, 0;\n\t"
                 "@in ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];}"
                 : "=r"(q.x), "=r"(q.y), "=r"(q.z), "=r"(q.w)
                 : "l"(b), "r"((u32)in));
#endif
    return q;
}

// accumulate adds v times the columns in q.
__device__ __forceinline__ void accumulate(float (&acc)[VEC], float v, const Columns &q) {
#if VEC == 1
    acc[0] = fmaf(v, __uint_as_float(q), acc[0]);
#elif VEC == 2
    acc[0] = fmaf(v, __uint_as_float(q.x), acc[0]), acc[1] = fmaf(v, __uint_as_float(q.y), acc[1]);
#else
#pragma unroll
    for (int i = 0; i < 4; i++) {
#if ELEM == F32
        acc[i] = fmaf(v, __uint_as_float(word(q, i)), acc[i]);
#else
        acc[2 * i] = fmaf(v, widen_lo<ELEM>(word(q, i)), acc[2 * i]);
        acc[2 * i + 1] = fmaf(v, widen_hi<ELEM>(word(q, i)), acc[2 * i + 1]);
#endif
    }
#endif
}

// entries adds up the entries from begin to end that are the group's: every along-th four of them,
// counted from multiples of four, so that columns and values come in whole vectors. The next four
// are fetched before the rows of B of these. Entries of the neighbouring rows count as zero times
// zero. What it reads of A first it reads before the launches before this one are done.
__device__ __forceinline__ void entries(float (&acc)[VEC], u32 begin, u32 end, u32 group, u32 along, const uint4 *__restrict__ colidx,
                                        const Values *__restrict__ values, const Columns *__restrict__ b, const Params &p) {
    u32 k = (begin & ~3u) + 4 * group, step = 4 * along, ld = p.ldb / VEC;
    uint4 cols;
    Values vals;
    if (k < end) {
        cols = __ldg(colidx + k / 4);
        vals = __ldg(values + k / 4);
    }
    launches_before();
    launches_after();
    if (k >= end) return;
    while (true) {
        u32 next = k + step;
        uint4 next_cols;
        Values next_vals;
        if (next < end) {
            next_cols = __ldg(colidx + next / 4);
            next_vals = __ldg(values + next / 4);
        }
        Columns q[4];
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
#if VEC < 4
#pragma unroll
        for (int j = 0; j < VEC; j++) acc[j] += part[(size_t)i * p.ldp + j];
#else
#pragma unroll
        for (int j = 0; j < VEC; j += 4) {
            float4 x = *(const float4 *)(part + (size_t)i * p.ldp + j);
            acc[j] += x.x;
            acc[j + 1] += x.y;
            acc[j + 2] += x.z;
            acc[j + 3] += x.w;
        }
#endif
}

// store_f32 writes alpha·acc + beta·c for the count columns from c on.
__device__ __forceinline__ void store_f32(float *c, const float (&acc)[VEC], u32 count, const Params &p) {
#if VEC >= 4
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
#endif
#pragma unroll
    for (int j = 0; j < VEC; j++)
        if (j < count) c[j] = p.beta != 0 ? fmaf(p.beta, c[j], p.alpha * acc[j]) : p.alpha * acc[j];
}

// store_half is store_f32 for a C of 16-bit elements.
__device__ __forceinline__ void store_half(unsigned short *c, const float (&acc)[VEC], u32 count, const Params &p) {
#if VEC < 4
#pragma unroll
    for (int j = 0; j < VEC; j++) {
        if (j >= count) return;
        float x = p.alpha * acc[j];
        if (p.beta != 0) x = fmaf(p.beta, p.store == F16 ? widen_lo<F16>(c[j]) : widen_lo<BF16>(c[j]), x);
        c[j] = (unsigned short)narrow(x, 0, p.store);
    }
#else
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
#endif
}

// join adds the sums of the warp's groups of lanes, of d lanes or more.
__device__ __forceinline__ void join(float (&acc)[VEC], u32 d, u32 lanes) {
    for (; d < lanes; d *= 2)
#pragma unroll
        for (int j = 0; j < VEC; j++) acc[j] += __shfl_xor_sync(ALL, acc[j], d);
}

// leave writes sums to the workspace.
__device__ __forceinline__ void leave(float *part, const float (&acc)[VEC]) {
#if VEC < 4
#pragma unroll
    for (int j = 0; j < VEC; j++) part[j] = acc[j];
#else
#pragma unroll
    for (int j = 0; j < VEC; j += 4) *(float4 *)(part + j) = make_float4(acc[j], acc[j + 1], acc[j + 2], acc[j + 3]);
#endif
}

// store writes a row's sums from column col on.
__device__ __forceinline__ void store(void *c, const float *bias, const float (&acc)[VEC], u32 row, u32 col, const Params &p) {
    size_t at = (size_t)row * p.ldc + col;
    u32 count = min(p.n - col, (u32)VEC);
    if (p.store == F32)
        store_f32((float *)c + at, acc, count, p);
    else if (!has_epilogue(p.store))
        store_half((unsigned short *)c + at, acc, count, p);
    else
#if VEC < 4
        store_quad(c, bias, p.store, row, col, min(p.n, col + VEC), p.ldc, p.beta, make_float4(p.alpha * acc[0], p.alpha * acc[VEC - 1], 0, 0));
#else
#pragma unroll
        for (int j = 0; j < VEC; j += 4)
            store_quad(c, bias, p.store, row, col + j, p.n, p.ldc, p.beta,
                       make_float4(p.alpha * acc[j], p.alpha * acc[j + 1], p.alpha * acc[j + 2], p.alpha * acc[j + 3]));
#endif
}

#ifdef TEAMS
#define PIECE_WORDS 4 // begin, end, row, slot of the workspace or ALL: it is the whole row
#define WARPS 4

// team does one piece with all warps of the workgroup.
__device__ __forceinline__ void team(const uint4 *__restrict__ colidx, const Values *__restrict__ values, const uint4 *piece,
                                     const Columns *__restrict__ b, const float *__restrict__ bias, void *__restrict__ c, float *part, const Params &p) {
    __shared__ float others[WARPS - 1][32 * VEC];
    u32 group = threadIdx.x >> (__ffs(p.across) - 1), lane = threadIdx.x & (p.across - 1), warp = threadIdx.x / 32;
    u32 col = (blockIdx.y * p.across + lane) * VEC;
    uint4 w = __ldg(piece);
    float acc[VEC];
#pragma unroll
    for (int j = 0; j < VEC; j++) acc[j] = 0;
    entries(acc, w.x, col < p.n ? w.y : w.x, group, 32 * WARPS >> (__ffs(p.across) - 1), colidx, values, b + col / VEC, p);
    join(acc, p.across, 32);
    if (warp > 0 && threadIdx.x % 32 < p.across) leave(others[warp - 1] + lane * VEC, acc);
    __syncthreads();
    if (threadIdx.x >= p.across || col >= p.n) return;
#pragma unroll
    for (int i = 0; i < WARPS - 1; i++)
#pragma unroll
        for (int j = 0; j < VEC; j++) acc[j] += others[i][lane * VEC + j];
    if (w.w != ALL)
        leave(part + (size_t)w.w * p.ldp + col, acc);
    else
        store(c, bias, acc, w.z, col, p);
}
#else
#define PIECE_WORDS 2 // begin, end
#endif

extern "C" __global__ void __launch_bounds__(128, BLOCKS)
csr(const u32 *__restrict__ rowptr, const uint4 *__restrict__ colidx, const Values *__restrict__ values,
    const u32 *__restrict__ heavy, const Columns *__restrict__ b, const float *__restrict__ bias, void *__restrict__ c, float *part,
    const Params p) {
    u32 group = threadIdx.x >> (__ffs(p.across) - 1); // of the workgroup's
    u32 lane = threadIdx.x & (p.across - 1);
    u32 block = blockIdx.x + blockIdx.z * p.width, before = p.pieces; // items before the rows
#ifdef TEAMS
    if (p.phase == 0) {
        if (block < p.pieces) {
            team(colidx, values, (const uint4 *)heavy + block, b, bias, c, part, p);
            return;
        }
        block -= p.pieces;
    }
    before = 0;
#endif
    u32 item = block * p.per + (group >> (__ffs(p.along) - 1));
    group &= p.along - 1; // of the item's
    u32 col = (blockIdx.y * p.across + lane) * VEC; // the lane's first column
    float acc[VEC];
#pragma unroll
    for (int j = 0; j < VEC; j++) acc[j] = 0;

    bool busy = item < p.items && col < p.n;
    bool piece = p.phase == 0 && item < before;
    u32 row = 0;
    if (busy && p.phase == 1) {
        const u32 *r = heavy + PIECE_WORDS * (size_t)p.pieces + 3 * (size_t)item;
        row = r[0];
        launches_before();
        launches_after();
        pieces(acc, r[1], r[2], group, part + col, p);
    } else if (busy) {
        row = item - before;
        u32 begin = piece ? heavy[2 * (size_t)item] : rowptr[row];
        u32 end = piece ? heavy[2 * (size_t)item + 1] : rowptr[row + 1];
        busy = piece || end - begin <= p.longest; // else it is done in pieces
        entries(acc, begin, busy ? end : begin, group, p.along, colidx, values, b + col / VEC, p);
    } else {
        launches_before();
        launches_after();
    }
    join(acc, p.across, p.across * p.along);

    if (!busy || group != 0) return;
    if (piece)
        leave(part + (size_t)item * p.ldp + col, acc);
    else
        store(c, bias, acc, row, col, p);
}
