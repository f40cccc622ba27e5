// What the CUDA kernels share: the operands L and R of a product. Needs ELEM (half.cuh).
//
// A kernel computes tiles of L·R and stores them row by row. L is A and R is B. For a column-major C, which is a
// row-major Cᵀ = Bᵀ·Aᵀ, L is Bᵀ and R is Aᵀ. L·R has p.rows rows and p.n columns, and p.cols is the length of the sums.

#pragma once
#include "params.h"
#include "../include/result.cuh"
#include "../include/elem.cuh"

#define B_COLUMNS 1 // bits of p.order
#define C_COLUMNS 2

// Operand is L as its rows, or R as its columns. Line i is row or column i, and has p.cols elements.
struct Operand {
    const Elem *x;
    u32 ld, lines;
    bool along; // K-major: elements of a line are neighbours in memory; else MN-major

    __device__ __forceinline__ const Elem *at(u32 i, u32 k) const {
        return x + (along ? (u64)i * ld + k : (u64)k * ld + i);
    }
};

__device__ __forceinline__ Operand left(const Elem *a, const Elem *b, const Params &p) {
    if (p.order & C_COLUMNS) return {b, p.ldb, p.rows, (p.order & B_COLUMNS) != 0};
    return {a, p.lda, p.rows, true};
}

__device__ __forceinline__ Operand right(const Elem *a, const Elem *b, const Params &p) {
    if (p.order & C_COLUMNS) return {a, p.lda, p.n, true};
    return {b, p.ldb, p.n, (p.order & B_COLUMNS) != 0};
}

// Recompute computes an output again from the entries of A alone, one after the other: the finite repair (result.cuh's
// Special). Bits of `stored` tell entries from zeros that were filled in. p.words is the words of a row of these; if it
// is 0, all elements are entries.
struct Recompute {
    const Elem *a, *b;
    const u32 *stored;
    const Params *p;

    __device__ __noinline__ float operator()(u32 row, u32 col) const {
        Operand l = left(a, b, *p), r = right(a, b, *p);
        const u32 *bits = stored + (u64)(p->order & C_COLUMNS ? col : row) * p->words;
        Special s;
        for (u32 k = 0; k < p->cols; k++)
            if (p->words == 0 || bits[k >> 5] >> (k & 31) & 1) s.add(to_float(*l.at(row, k)), to_float(*r.at(col, k)));
        return s.result();
    }
};
