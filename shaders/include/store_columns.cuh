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

// store_two stores two tiles of sums. Columns from `end` on, which is not past C, are not stored. Its common case is a
// C with elements of 16 bits that is not read, whose pairs of rows are words, that has all rows, without an epilogue
// and with finite sums: then a lane stores two neighbouring rows of a column together. It is a call, because the code
// of all sums of a tile would take longer to fetch than to run.
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
