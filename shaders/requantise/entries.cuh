// Entries of A: their values as f32, and their rows.

#pragma once
#include "../include/half.cuh"
#include "../include/fixed.cuh"

typedef unsigned int u32;

// load returns the f32 bits of entry e.
__device__ __forceinline__ u32 load(const void *values, u32 e, u32 elem) {
    if (elem == F32) return ((const u32 *)values)[e];
    u32 h = ((const unsigned short *)values)[e];
    return __float_as_uint(elem == F16 ? widen_lo<F16>(h) : widen_lo<BF16>(h));
}

// row_of returns the row of entry e.
__device__ __forceinline__ u32 row_of(const u32 *rows, u32 e, u32 count) {
    u32 lo = 0, hi = count; // the row is in [lo, hi)
    while (hi - lo > 1) {
        u32 mid = lo + (hi - lo) / 2;
        if (rows[2 * (size_t)mid] <= e) lo = mid;
        else hi = mid;
    }
    return lo;
}
