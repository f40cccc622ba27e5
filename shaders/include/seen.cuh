// The range of some elements without the lowest bit, which quantising does not need.

#pragma once
#include "fixed.cuh"

typedef unsigned int u32;

// Seen is the largest magnitude of the finite ones of some elements, and whether there are others: the largest and the
// least of 2·x + STEP without the sign, where infinities and NaN alone wrap around, to less than STEP.
#define STEP 0x1000000u
struct Seen {
    u32 most = STEP, least = 0xffffffffu;

    __device__ __forceinline__ void see(u32 x) {
        u32 m = 2 * x + STEP;
        most = max(most, m), least = min(least, m);
    }
    // range returns 512 + E, or 0, and WILD. A normal number that exceeds 2039/1024 carries into its exponent.
    __device__ __forceinline__ u32 range() const {
        u32 m = (most - STEP) / 2, up = 0xffffffu - (2039u << 13);
        u32 e = m >= 0x800000u ? ((m + up) >> 23) + 385 : range_of(m) & 0x3ffu;
        return e | (least < STEP ? WILD : 0);
    }
    // join returns the range of two sets of elements together: their 16-bit halves do not meet.
    static __device__ __forceinline__ u32 join(u32 r, u32 s) { return __vmaxu2(r, s); }
};
