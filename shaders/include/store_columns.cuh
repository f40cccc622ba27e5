// Storing tiles of sums to a column-major C. The results are those of store_tiles, bit for bit.

#pragma once
#include "orders.cuh"
#include "store_batches.cuh"

// transpose8 transposes an 8×8 matrix of 16-bit elements: lane 4i + q has elements 2q and 2q + 1 of row i.
__device__ __forceinline__ u32 transpose8(u32 x) {
    u32 y;
    asm("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
    return y;
}

// store_column_words stores a warp's 16 rows of sums times alpha as elements of 16-bit type T: a lane stores two
// neighbouring rows of a column together. `at` is the address for its first column and rows.
template <int T, int STRIDE, int N>
__device__ __forceinline__ void store_column_words(const float (&acc)[N][4], u16 *at, u32 ldc, float alpha) {
#pragma unroll
    for (int j = 0; j < N; j++) {
        u16 *c = at + (u64)ldc * (STRIDE * (j / 2) + 8 * (j % 2));
#pragma unroll
        for (int h = 0; h < 2; h++)
            *(u32 *)(c + 8 * h) =
                transpose8(narrow(__fmul_rn(alpha, acc[j][2 * h]), __fmul_rn(alpha, acc[j][2 * h + 1]), T));
    }
}

// store_columns_plain is store_columns for the common case: C has elements of 16 bits, is not read, has all of the rows
// and columns and pairs of rows that are words, there is no epilogue, and all sums are finite. Else it stores nothing
// and returns false.
template <int STRIDE, int N, class P>
__device__ __forceinline__ bool store_columns_plain(const float (&acc)[N][4], Dest to, const P &p, u32 row, u32 col,
                                                    u32 end) {
    u32 type = store_type(p.store), c = threadIdx.x % 32 / 4;
    if (type == F32 || (p.store & 0xffc) != 0 || p.beta != 0 || (p.ldc & 1) != 0 || row + 16 > p.rows ||
        col + STRIDE * ((N - 1) / 2) + (N % 2 ? 8 : 16) > end)
        return false;
    if (!all_finite(acc)) return false;
    u16 *at = (u16 *)to.c + (u64)(col + c) * p.ldc + row + 2 * (threadIdx.x & 3);
    if (type == F16) store_column_words<F16, STRIDE>(acc, at, p.ldc, p.alpha);
    else store_column_words<BF16, STRIDE>(acc, at, p.ldc, p.alpha);
    return true;
}

// store_two stores two tiles of sums. Columns from `end` on, which is not past C, are not stored. Its common case is
// that of store_columns_plain with fewer columns. It is a call, because the code of all sums of a tile would take
// longer to fetch than to run.
template <class P, class F>
static __device__ __noinline__ void store_two(Eight s, Dest to, const P *p, u32 row, u32 col, u32 end,
                                              const F *recompute) {
    u32 store = p->store, type = store_type(store), lane = threadIdx.x & 31, c = lane >> 2;
    if (type == F32 || (store & 0xffc) != 0 || p->beta != 0 || (p->ldc & 1) != 0 || row + 16 > p->rows ||
        !all_finite(s.x))
        return store_across(s, to, p, p->rows, end, p->ldc, store, p->alpha, p->beta, row, col, recompute);
    u16 *at = (u16 *)to.c + (u64)(col + c) * p->ldc + row + 2 * (lane & 3);
#pragma unroll
    for (int j = 0; j < 2; j++, at += (u64)8 * p->ldc) {
        u32 lo = transpose8(narrow(__fmul_rn(p->alpha, s.x[j][0]), __fmul_rn(p->alpha, s.x[j][1]), type)),
            hi = transpose8(narrow(__fmul_rn(p->alpha, s.x[j][2]), __fmul_rn(p->alpha, s.x[j][3]), type));
        if (col + 8 * j + c >= end) continue;
        *(u32 *)at = lo;
        *(u32 *)(at + 8) = hi;
    }
}

// store_columns stores a warp's 16 rows of sums. They are pairs of tiles of 8 columns, STRIDE columns apart; columns
// from `end` on, which is not past C, are not stored.
template <int STRIDE, int N, class P, class F>
__device__ __forceinline__ void store_columns(const float (&acc)[N][4], Dest to, const P &p, u32 row, u32 col, u32 end,
                                              F recompute) {
    if (store_columns_plain<STRIDE>(acc, to, p, row, col, end)) return;
#pragma unroll
    for (int j = 0; j < N; j += 2) {
        Eight two = {};
#pragma unroll
        for (int i = 0; i < 2 && j + i < N; i++)
#pragma unroll
            for (int e = 0; e < 4; e++) two.x[i][e] = acc[j + i][e];
        u32 from = col + STRIDE * (j / 2);
        if (row < p.rows && from < end) store_two(two, to, &p, row, from, min(end, from + 8 * (N - j)), &recompute);
    }
}
