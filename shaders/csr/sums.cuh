// The sums of a lane in f32: CHUNKS times four or eight columns of a row of C, for kernel.cu and skewed.cu. With AHEAD
// a lane loads its next entries before the rows of B of the current ones. Constants: ELEM (half.cuh), AHEAD, CHUNKS.

#pragma once
#include "rows.cuh"
#include "../include/epilogue.cuh"

#ifndef CHUNKS
#define CHUNKS 1
#endif

#if ELEM == F32
#define VEC 4
#else
#define VEC 8
#endif

// Sums holds a lane's partial sums of one row of C: VEC columns from col on, and from each next(p) columns further on.
struct Sums {
#if ELEM == F32
    typedef float4 Values; // of four entries of A
#else
    typedef uint2 Values;
#endif
    typedef uint4 Columns; // VEC elements of a row of B
    typedef float Sum;
    static const int SHARED = 32 * CHUNKS * VEC; // sums of a warp

    float x[CHUNKS][VEC];
    u32 col;

    __device__ __forceinline__ Sums(u32 lane, const Params &p) : col((blockIdx.y * p.across * CHUNKS + lane) * VEC) {
#pragma unroll
        for (int c = 0; c < CHUNKS; c++)
#pragma unroll
            for (int j = 0; j < VEC; j++) x[c][j] = 0;
    }
    __device__ __forceinline__ bool inside(const Params &p) const { return col < p.n; }
    // at returns the first column of a chunk.
    __device__ __forceinline__ u32 at(int chunk, const Params &p) const { return col + chunk * VEC * p.across; }

    // value returns the value of entry i of four.
    static __device__ __forceinline__ float value(const Values &v, int i) {
#if ELEM == F32
        return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
#else
        u32 w = i < 2 ? v.x : v.y;
        return i & 1 ? widen_hi<ELEM>(w) : widen_lo<ELEM>(w);
#endif
    }

    // accumulate adds an entry's value, v, times a chunk of its row of B, q, to y.
    static __device__ __forceinline__ void accumulate(float (&y)[VEC], float v, const Columns &q) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
#if ELEM == F32
            y[i] = fmaf(v, __uint_as_float(word(q, i)), y[i]);
#else
            y[2 * i] = fmaf(v, widen_lo<ELEM>(word(q, i)), y[2 * i]);
            y[2 * i + 1] = fmaf(v, widen_hi<ELEM>(word(q, i)), y[2 * i + 1]);
#endif
        }
    }

    // entries adds the products of a lane group's share of the entries begin to end - 1. The first four entries are
    // aligned down to a multiple of four, so that each load of column indices or values is one whole vector. Group g
    // takes fours g, g + along, g + 2·along, and so on. Entries in a vector that belong to a neighbouring row are
    // replaced by zeros. With AHEAD the loop loads the next four entries before the rows of B of the current four. The
    // first four are loaded before launches_before, while the previous launch may still run.
    __device__ __forceinline__ void entries(u32 begin, u32 end, u32 group, u32 along, const uint4 *__restrict__ colidx,
                                            const Values *__restrict__ values, const Columns *__restrict__ b,
                                            const Params &p) {
        u32 k = (begin & ~3u) + 4 * group, step = 4 * along, ld = p.ldb / VEC;
        b += col / VEC;
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
#ifdef AHEAD
            uint4 next_cols;
            Values next_vals;
            if (next < end) {
                next_cols = __ldg(colidx + next / 4);
                next_vals = __ldg(values + next / 4);
            }
#endif
            Columns q[4][CHUNKS];
            float v[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                bool in = k + i >= begin && k + i < end;
                v[i] = in ? value(vals, i) : 0.0f;
                const Columns *row = b + (size_t)word(cols, i) * ld;
#pragma unroll
                for (int c = 0; c < CHUNKS; c++) q[i][c] = load(row + c * p.across, in && at(c, p) < p.n);
            }
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int c = 0; c < CHUNKS; c++) accumulate(x[c], v[i], q[i][c]);
            if (next >= end) return;
            k = next;
#ifdef AHEAD
            cols = next_cols;
            vals = next_vals;
#else
            cols = __ldg(colidx + k / 4);
            vals = __ldg(values + k / 4);
#endif
        }
    }

    // slots adds the partial sums in rows first to last - 1 of the workspace, every along-th row from its group's on.
    __device__ __forceinline__ void slots(u32 first, u32 last, u32 group, const float *part, const Params &p) {
#pragma unroll 4
        for (u32 i = first + group; i < last; i += p.along)
#pragma unroll
            for (int c = 0; c < CHUNKS; c++)
                if (c == 0 || at(c, p) < p.n) take(x[c], part + (size_t)i * p.ldp + at(c, p));
    }

    // join adds the sums of the lane groups, which have d lanes each, among `lanes` neighbouring lanes of the warp.
    __device__ __forceinline__ void join(u32 d, u32 lanes) {
        for (; d < lanes; d *= 2)
#pragma unroll
            for (int c = 0; c < CHUNKS; c++)
#pragma unroll
                for (int j = 0; j < VEC; j++) x[c][j] += __shfl_xor_sync(ALL, x[c][j], d);
    }

    // put writes sums next to each other. take reads sums that put wrote, and adds them.
    static __device__ __forceinline__ void put(float *to, const float (&y)[VEC]) {
#pragma unroll
        for (int j = 0; j < VEC; j += 4) *(float4 *)(to + j) = make_float4(y[j], y[j + 1], y[j + 2], y[j + 3]);
    }
    static __device__ __forceinline__ void take(float (&x)[VEC], const float *from) {
#pragma unroll
        for (int j = 0; j < VEC; j += 4) {
            float4 y = *(const float4 *)(from + j);
            x[j] += y.x;
            x[j + 1] += y.y;
            x[j + 2] += y.z;
            x[j + 3] += y.w;
        }
    }
    // share writes the sums to the shared memory of this warp, and add adds the sums of another warp.
    __device__ __forceinline__ void share(float *warp, u32 lane) const {
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) put(warp + (32 * c + lane) * VEC, x[c]);
    }
    __device__ __forceinline__ void add(const float *warp, u32 lane) {
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) take(x[c], warp + (32 * c + lane) * VEC);
    }
    // store_partial writes the sums to a row of the workspace.
    __device__ __forceinline__ void store_partial(float *part, const Params &p) const {
#pragma unroll
        for (int c = 0; c < CHUNKS; c++)
            if (c == 0 || at(c, p) < p.n) put(part + at(c, p), x[c]);
    }

    // store writes the sums to C: alpha·x + beta·c, with the epilogue if there is one. It is B that is to stay in the
    // cache.
    __device__ __forceinline__ void store(void *c, const float *bias, u32 row, const Params &p) const {
        if (p.store == F32 && p.beta == 0 && p.ldc % 4 == 0 && at(CHUNKS - 1, p) + VEC <= p.n) { // nearly always
            float *to = (float *)c + (size_t)row * p.ldc + col;
#pragma unroll
            for (int i = 0; i < CHUNKS; i++, to += VEC * p.across)
#pragma unroll
                for (int j = 0; j < VEC; j += 4)
                    __stcs((float4 *)(to + j), make_float4(p.alpha * x[i][j], p.alpha * x[i][j + 1],
                                                           p.alpha * x[i][j + 2], p.alpha * x[i][j + 3]));
            return;
        }
#pragma unroll
        for (int i = 0; i < CHUNKS; i++)
            if (i == 0 || at(i, p) < p.n) store_chunk(x[i], c, bias, row, at(i, p), p);
    }
    static __device__ __forceinline__ void store_chunk(const float (&x)[VEC], void *c, const float *bias, u32 row,
                                                       u32 col, const Params &p) {
        size_t at = (size_t)row * p.ldc + col;
        u32 count = min(p.n - col, (u32)VEC);
        if (p.store == F32) store_f32(x, (float *)c + at, count, p);
        else if (!has_epilogue(p.store)) store_half(x, (unsigned short *)c + at, count, p);
        else
#pragma unroll
            for (int j = 0; j < VEC; j += 4)
                store_quad(c, bias, p.store, row, col + j, p.n, p.ldc, p.beta,
                           make_float4(p.alpha * x[j], p.alpha * x[j + 1], p.alpha * x[j + 2], p.alpha * x[j + 3]));
    }

    // store_f32 writes alpha·x + beta·c for the first `count` columns.
    static __device__ __forceinline__ void store_f32(const float (&x)[VEC], float *c, u32 count, const Params &p) {
        if (count == VEC && p.ldc % 4 == 0) {
#pragma unroll
            for (int j = 0; j < VEC; j += 4) {
                float4 y = make_float4(p.alpha * x[j], p.alpha * x[j + 1], p.alpha * x[j + 2], p.alpha * x[j + 3]);
                if (p.beta != 0) {
                    float4 z = *(float4 *)(c + j);
                    y = make_float4(fmaf(p.beta, z.x, y.x), fmaf(p.beta, z.y, y.y), fmaf(p.beta, z.z, y.z),
                                    fmaf(p.beta, z.w, y.w));
                }
                *(float4 *)(c + j) = y;
            }
            return;
        }
#pragma unroll
        for (int j = 0; j < VEC; j++)
            if (j < count) c[j] = p.beta != 0 ? fmaf(p.beta, c[j], p.alpha * x[j]) : p.alpha * x[j];
    }

    // store_half is store_f32 for a C of 16-bit elements.
    static __device__ __forceinline__ void store_half(const float (&x)[VEC], unsigned short *c, u32 count,
                                                      const Params &p) {
        u32 y[VEC / 2];
#pragma unroll
        for (int j = 0; j < VEC; j += 2) {
            float lo = p.alpha * x[j], hi = p.alpha * x[j + 1];
            if (p.beta != 0) {
                u32 z = j < count ? c[j] : 0;
                if (j + 1 < count) z |= (u32)c[j + 1] << 16;
                lo = fmaf(p.beta, p.store == F16 ? widen_lo<F16>(z) : widen_lo<BF16>(z), lo);
                hi = fmaf(p.beta, p.store == F16 ? widen_hi<F16>(z) : widen_hi<BF16>(z), hi);
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
};
