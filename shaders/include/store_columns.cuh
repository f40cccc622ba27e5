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

// store_columns_halves is store_columns for the common case: C has elements of 16 bits and is not read, pairs of rows
// are words, all rows are in C, there is no epilogue, and all sums are finite. Else it stores nothing and returns
// false.
template <int STRIDE, int N, class P>
__device__ __forceinline__ bool store_columns_halves(const float (&acc)[N][4], Dest to, const P &p, u32 row, u32 col,
                                                     u32 end) {
    u32 type = store_type(p.store), lane = threadIdx.x & 31, c = lane >> 2;
    if (type == F32 || (p.store & 0xffc) != 0 || p.beta != 0 || (p.ldc & 1) != 0 || row + 16 > p.rows) return false;
    if (!all_finite(acc)) return false;
    u16 *at = (u16 *)to.c + (u64)(col + c) * p.ldc + row + 2 * (lane & 3);
#pragma unroll
    for (int j = 0; j < N; j++) {
        u32 from = STRIDE * (j / 2) + 8 * (j % 2);
        u32 lo = transpose8(narrow(__fmul_rn(p.alpha, acc[j][0]), __fmul_rn(p.alpha, acc[j][1]), type)),
            hi = transpose8(narrow(__fmul_rn(p.alpha, acc[j][2]), __fmul_rn(p.alpha, acc[j][3]), type));
        if (col + from + c >= end) continue;
        *(u32 *)(at + (u64)from * p.ldc) = lo;
        *(u32 *)(at + (u64)from * p.ldc + 8) = hi;
    }
    return true;
}

// store_columns stores a warp's 16 rows of sums. They are pairs of tiles of 8 columns, STRIDE columns apart; columns
// from `end` on, which is not past C, are not stored.
template <int STRIDE, int N, class P, class F>
__device__ __forceinline__ void store_columns(const float (&acc)[N][4], Dest to, const P &p, u32 row, u32 col, u32 end,
                                              F recompute) {
    if (store_columns_halves<STRIDE>(acc, to, p, row, col, end)) return;
#pragma unroll
    for (int j = 0; j < N; j += 2) {
        Eight two = {};
#pragma unroll
        for (int i = 0; i < 2 && j + i < N; i++)
#pragma unroll
            for (int e = 0; e < 4; e++) two.x[i][e] = acc[j + i][e];
        u32 from = col + STRIDE * (j / 2);
        if (row < p.rows && from < end)
            store_across(two, to, &p, p.rows, min(end, from + 8 * (N - j)), p.ldc, p.store, p.alpha, p.beta, row, from,
                         &recompute);
    }
}
