// What kernels on panels of V rows that share columns have in common: number conversions, the transposed
// multiply (SSpMM §III-B, §IV-B), and the epilogue. Needs ELEM (half.cuh), V, STEP and CHUNKS.

#pragma once
#include "zparams.h"
#include "half.cuh"

typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned long long u64;

#define HALVES (V / 8)   // groups of 8 rows in a panel
#define QUAD (STEP / 4)  // vectors of a step that one lane gathers

__device__ __forceinline__ u32 shared_address(const void *p) { return (u32)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void copy16(u32 dst, const void *src, int bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst), "l"(src), "r"(bytes));
}
__device__ __forceinline__ void copy4(u32 dst, const void *src, int bytes) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(dst), "l"(src), "r"(bytes));
}
__device__ __forceinline__ void copy_commit() { asm volatile("cp.async.commit_group;"); }
template <int N> __device__ __forceinline__ void copy_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

#if ELEM == F32
typedef float Elem;
__device__ __forceinline__ float to_float(float x) { return x; }
#else
typedef u16 Elem;
__device__ __forceinline__ float to_float(u16 x) { return widen_lo<ELEM>(x); }
#endif

// A panel's columns, counted over all, what its kernel knows its rows by, and the first column of C that a
// warp computes. A kernel's own file defines, as far as it uses them,
//     bool locate(ptr, rowmap, p, warp, cols, panel): finds a warp's panel and the first of its cols columns
//     u32 panel_at(rowmap, slot): the panel that comes at a place of the order in which a staged kernel takes them
//     u32 row_of(rowmap, panel, r): the row of C that row r of a panel is; not less than p.rows if there is none
// of the format's pointers and its array of rows.
struct Panel {
    u32 first, last, rows, base;
};

__device__ __forceinline__ u32 word(const uint4 &v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }

#if ELEM != F32
// mma of one 16-column group: a = {cols g, k lo; cols g+8, k lo; cols g, k hi; cols g+8, k hi}.
__device__ __forceinline__ void mma(float (&d)[4], const u32 *a, const u32 *b) {
#if STEP == 16
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32."
#if ELEM == BF16
        "bf16.bf16"
#else
        "f16.f16"
#endif
        ".f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32."
#if ELEM == BF16
        "bf16.bf16"
#else
        "f16.f16"
#endif
        ".f32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(b[0]));
#endif
}

// One lane's share of the gathered rows of B of a step: QUAD rows × CHUNKS × 8 columns.
struct Rows { uint4 v[QUAD][CHUNKS]; };

// Shuffle in and multiply: acc[h][c][j] holds columns 2j, 2j+1 of the lane's 8, rows 2q, 2q+1 of half h.
__device__ __forceinline__ void multiply(float (&acc)[HALVES][CHUNKS][4][4], const Rows &r, const u32 (&a)[HALVES][STEP / 8]) {
#pragma unroll
    for (int c = 0; c < CHUNKS; c++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            u32 f[QUAD];
#pragma unroll
            for (int i = 0; i < QUAD; i += 2) {
                f[i] = __byte_perm(word(r.v[i][c], j), word(r.v[i + 1][c], j), 0x5410);
                f[i + 1] = __byte_perm(word(r.v[i][c], j), word(r.v[i + 1][c], j), 0x7632);
            }
#pragma unroll
            for (int h = 0; h < HALVES; h++) mma(acc[h][c][j], f, a[h]);
        }
}
#endif

// The value of one output from a panel's real entries alone, taken when the matrix unit's result is
// not finite: a structural zero must not touch B, and the class of the result must not depend on the
// order of summation.
struct Special {
    float sum = 0;
    u32 seen = 0; // 1: +Inf, 2: -Inf, 4: NaN, from operands that are not finite

    __device__ __forceinline__ void add(const Elem *values, const u32 *mask, u64 at, Elem other) {
        if (!(mask[at >> 5] >> (at & 31) & 1)) return;
        float x = to_float(values[at]), y = to_float(other), t = x * y;
        if ((__float_as_uint(x) & 0x7f800000) == 0x7f800000 || (__float_as_uint(y) & 0x7f800000) == 0x7f800000)
            seen |= t != t ? 4 : t > 0 ? 1 : 2;
        else
            sum += t;
    }
    __device__ __forceinline__ float result() const {
        if (seen & 4 || seen == 3) return __uint_as_float(0x7fffffff);
        return seen == 1 ? __uint_as_float(0x7f800000) : seen == 2 ? __uint_as_float(0xff800000) : sum;
    }
};

// Writes COUNT (a multiple of 4) neighbouring columns of one row: C = alpha·x + beta·C.
template <int COUNT> __device__ __forceinline__ void store_row(void *c, const Params &p, u32 row, u32 col, float (&x)[COUNT]) {
    if (row >= p.rows || col >= p.n) return;
    u64 at = (u64)row * p.ldc + col;
    bool whole = col + COUNT <= p.n;
    float *f = (float *)c + at;
    u16 *h = (u16 *)c + at;
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        x[i] *= p.alpha;
        if (p.beta != 0 && col + i < p.n)
            x[i] += p.beta * (p.ctype == F32 ? f[i] : p.ctype == F16 ? widen_lo<F16>(h[i]) : widen_lo<BF16>(h[i]));
    }
    if (p.ctype == F32) {
        if (whole && (p.ldc & 3) == 0) {
#pragma unroll
            for (int i = 0; i < COUNT; i += 4) *(float4 *)(f + i) = make_float4(x[i], x[i + 1], x[i + 2], x[i + 3]);
        } else {
#pragma unroll
            for (int i = 0; i < COUNT; i++)
                if (col + i < p.n) f[i] = x[i];
        }
        return;
    }
    u32 w[COUNT / 2];
#pragma unroll
    for (int i = 0; i < COUNT / 2; i++) w[i] = narrow(x[2 * i], x[2 * i + 1], p.ctype);
    if (whole && (p.ldc & 3) == 0) {
#pragma unroll
        for (int i = 0; i < COUNT; i += 4) *(uint2 *)(h + i) = make_uint2(w[i / 2], w[i / 2 + 1]);
    } else {
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            if (col + i < p.n) h[i] = (u16)(w[i / 2] >> (16 * (i & 1)));
    }
}

// Replaces what is not finite among COUNT neighbouring columns of a panel's row: recompute(row, col)
// gives an output from the real entries.
template <int COUNT, class F> __device__ __forceinline__ void mend(const Params &p, u32 row, u32 col, float (&x)[COUNT], F recompute) {
    u32 top = 0;
#pragma unroll
    for (int i = 0; i < COUNT; i++) top = max(top, __float_as_uint(x[i]) & 0x7fffffff);
    if (top < 0x7f800000) return;
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        if ((__float_as_uint(x[i]) & 0x7f800000) == 0x7f800000 && col + i < p.n) x[i] = recompute(row, col + i);
}

#if ELEM != F32
// Shuffle out and store a warp's result: rows 2q and 2q+1 of each half, 8 columns a chunk, the first
// chunk at column base. place(row) is the row of C that a row of the panel is; recompute(row, col) gives an
// output of the panel whose accumulator is not finite.
template <class P, class F>
__device__ __forceinline__ void store(float (&acc)[HALVES][CHUNKS][4][4], void *c, const Params &p, u32 base, P place, F recompute) {
    u32 g = (threadIdx.x & 31) >> 2, q = threadIdx.x & 3;
#pragma unroll
    for (int h = 0; h < HALVES; h++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            u32 row = 8 * h + 2 * q + e;
#pragma unroll
            for (int i = 0; i < CHUNKS; i++) {
                float x[8];
                u32 col = base + 64 * i + 8 * g;
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    x[2 * j] = acc[h][i][j][e];
                    x[2 * j + 1] = acc[h][i][j][2 + e];
                }
                mend(p, row, col, x, recompute);
                store_row(c, p, place(row), col, x);
            }
        }
}
#endif
