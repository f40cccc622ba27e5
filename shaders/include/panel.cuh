// What kernels on panels of V rows that share columns have in common: the work list, the transposed multiply (SSpMM
// §III-B, §IV-B), and storing C. Needs ELEM (half.cuh), V, STEP and CHUNKS.

#pragma once
#include "params.h"
#include "result.cuh"
#include "elem.cuh"
#include "load.cuh"

#define HALVES (V / 8) // groups of 8 rows in a panel
#define QUAD (STEP / 4) // vectors of a step that one lane gathers

#define NO_SLOT 0xffffffffu

// Panel is the columns of a panel or of one split of it, numbered over all panels; the number from which the kernel
// finds the panel's rows of C; the first column of C that a warp computes; and the slot of the workspace for partial
// sums, or NO_SLOT if the sums go to C. A kernel's own file defines those of these functions that it uses:
//     bool locate(work, p, warp, cols, panel): finds a warp's panel, or split of one, and the first of its cols columns
//     u32 panel_at(rowmap, slot): the panel at a position of the order in which a staged kernel takes them
//     u32 row_of(rowmap, panel, r): the row of C that is row r of a panel; not less than p.rows if there is none
// work is the work list; rowmap is its words from p.places on.
struct Panel {
    u32 first, last, rows, base, slot;
};

// panel_of returns the panel of a record of the work list, of those of the launch's phase.
__device__ __forceinline__ Panel panel_of(const u32 *work, const Params &p, u32 number, u32 base) {
    uint4 r = __ldg((const uint4 *)work + p.start + number);
    return {r.x, r.y, r.z, base, r.w};
}

#if ELEM != F32
// step_mma is the instruction for one group of 16 columns: a = {cols g, k lo; cols g+8, k lo; cols g, k hi; cols g+8, k
// hi}; with k = 8 it has the first half.
__device__ __forceinline__ void step_mma(float (&d)[4], const u32 (&a)[QUAD], const u32 (&b)[STEP / 8]) {
#if STEP == 16
    mma<ELEM>(d, a, b[0], b[1]);
#else
    mma_k8<ELEM>(d, a[0], a[1], b[0]);
#endif
}

// Rows is a lane's share of the gathered rows of B of a step: QUAD rows × CHUNKS × 8 columns.
struct Rows {
    uint4 v[QUAD][CHUNKS];
};

// Shuffle in and multiply: acc[h][c][j] holds columns 2j, 2j+1 of the lane's 8, rows 2q, 2q+1 of half h.
__device__ __forceinline__ void multiply(float (&acc)[HALVES][CHUNKS][4][4], const Rows &r,
                                         const u32 (&a)[HALVES][STEP / 8]) {
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
            for (int h = 0; h < HALVES; h++) step_mma(acc[h][c][j], f, a[h]);
        }
}
#endif

// add_entry adds the product of the panels' value at an index and `other`, if the value is an entry.
__device__ __forceinline__ void add_entry(Special &s, const Elem *values, const u32 *mask, u64 at, Elem other) {
    if (mask[at >> 5] >> (at & 31) & 1) s.add(to_float(values[at]), to_float(other));
}

// Writes COUNT (a multiple of 4) neighbouring columns of one row: C = alpha·x + beta·C, with an epilogue.
template <int COUNT>
__device__ __forceinline__ void store_row(Dest to, const Params &p, u32 row, u32 col, float (&x)[COUNT]) {
    if (row >= p.rows || col >= p.n) return;
    if (has_epilogue(p.store)) {
#pragma unroll
        for (int i = 0; i < COUNT; i += 4)
            store_quad(to.c, to.bias, p.store, row, col + i, p.n, p.ldc, p.beta,
                       make_float4(p.alpha * x[i], p.alpha * x[i + 1], p.alpha * x[i + 2], p.alpha * x[i + 3]));
        return;
    }
    u64 at = (u64)row * p.ldc + col;
    bool whole = col + COUNT <= p.n;
    float *f = (float *)to.c + at;
    u16 *h = (u16 *)to.c + at;
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        x[i] *= p.alpha;
        if (p.beta != 0 && col + i < p.n)
            x[i] += p.beta * (p.store == F32 ? f[i] : p.store == F16 ? widen_lo<F16>(h[i]) : widen_lo<BF16>(h[i]));
    }
    if (p.store == F32) {
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
    for (int i = 0; i < COUNT / 2; i++) w[i] = narrow(x[2 * i], x[2 * i + 1], p.store);
    if (whole && (p.ldc & 3) == 0) {
#pragma unroll
        for (int i = 0; i < COUNT; i += 4) *(uint2 *)(h + i) = make_uint2(w[i / 2], w[i / 2 + 1]);
    } else {
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            if (col + i < p.n) h[i] = (u16)(w[i / 2] >> (16 * (i & 1)));
    }
}

// Repairs those of COUNT neighbouring columns of a panel's row that are not finite. recompute(row, col) returns an
// output computed from the entries alone.
template <int COUNT, class F>
__device__ __forceinline__ void mend(const Params &p, u32 row, u32 col, float (&x)[COUNT], F recompute) {
    u32 top = 0;
#pragma unroll
    for (int i = 0; i < COUNT; i++) top = max(top, __float_as_uint(x[i]) & 0x7fffffff);
    if (top < 0x7f800000) return;
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        if ((__float_as_uint(x[i]) & 0x7f800000) == 0x7f800000 && col + i < p.n) x[i] = recompute(row, col + i);
}

#if ELEM != F32
// Shuffle out a warp's result: f(row, col, x) for rows 2q and 2q+1 of each half of the panel, 8 columns a chunk, the
// first chunk at column base.
template <class F> __device__ __forceinline__ void each_row(float (&acc)[HALVES][CHUNKS][4][4], u32 base, F f) {
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
                f(row, col, x);
            }
        }
}

// store shuffles out and stores a warp's result. place(row) returns the row of C that is a row of the panel;
// recompute(row, col) returns an output of the panel computed from the entries alone.
template <class P, class F>
__device__ __forceinline__ void store(float (&acc)[HALVES][CHUNKS][4][4], Dest to, const Params &p, u32 base, P place,
                                      F recompute) {
    each_row(acc, base, [&](u32 row, u32 col, float(&x)[8]) {
        mend(p, row, col, x, recompute);
        store_row(to, p, place(row), col, x);
    });
}
#endif
