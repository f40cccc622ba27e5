// How a sum becomes an element of C: the one rounding, alpha, beta and the epilogue. BITS is p.

#pragma once
#include "params.h"
#include "../include/half.cuh"
#include "../include/fixed.cuh"

typedef unsigned int u32;

// The fields of p.shape.
__device__ __forceinline__ u32 across_of(const Params &p) { return p.shape & 255u; }
__device__ __forceinline__ u32 along_of(const Params &p) { return p.shape >> 8 & 255u; }
__device__ __forceinline__ u32 phase_of(const Params &p) { return p.shape >> 16 & 255u; }
__device__ __forceinline__ u32 elem_of(const Params &p) { return p.shape >> 24; }

// element returns the f32 bits of an element of values or b.
__device__ __forceinline__ u32 element(const void *v, size_t i, const Params &p) {
    if (elem_of(p) == F32) return ((const u32 *)v)[i];
    u32 h = ((const unsigned short *)v)[i];
    return elem_of(p) == BF16 ? h << 16 : __float_as_uint(widen_lo<F16>(h));
}

#define SCALED 0x10000u // of the parameter `store`, see rfx.go

// epilogue returns relu(y + bias), or what of it the parameter `store` asks for (spec.Problem.StoreWord), for an output
// in that row and column.
__device__ __forceinline__ u32 epilogue(u32 y, u32 row, u32 j, const u32 *bias, const Params &p) {
    u32 kind = p.store >> 2 & 3;
    if (kind != 0) y = plus(y, bias[(size_t)(kind == 1 ? row : j) << (p.store >> 8 & 15)]);
    return p.store >> 4 & 15 ? relu(y) : y;
}

// put writes element (row, j) of C, given the rounded sum y and the ranges of the row and the column.
__device__ __forceinline__ void put(u32 row, u32 j, u32 y, u32 ra, u32 rb, const u32 *rows, const void *values,
                                    const void *b, const u32 *bias, u32 *c, const Params &p) {
    if (((ra | rb) & WILD) != 0) {
        const u32 *colidx = rows + p.columns;
        u32 kind = 0, end = rows[2 * (size_t)row + 2];
        for (u32 k = rows[2 * (size_t)row]; k < end; k++)
            kind |= product_class(element(values, k, p), element(b, (size_t)colidx[k] * p.ldb + j, p));
        if (kind != 0) y = class_value(kind);
    }
    c += (size_t)row * p.ldc + j;
    if (p.store != 0) {
        if ((p.store & SCALED) != 0) y = scale(p.alpha, y, p.beta, (p.beta & 0x7fffffffu) != 0 ? *c : 0);
        y = epilogue(y, row, j, bias, p);
    }
    *c = y;
}

// store writes element (row, j) of C, given the sum.
__device__ __noinline__ void store(u32 row, u32 j, i128 sum, const u32 *rows, const void *values, const void *b,
                                   const u32 *q, const u32 *bias, u32 *c, const Params &p) {
    u32 ra = rows[2 * (size_t)row + 1], rb = q[j];
    put(row, j, rounded(sum, unit(ra, BITS) + unit(rb, BITS)), ra, rb, rows, values, b, bias, c, p);
}
