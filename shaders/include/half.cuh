// Conversions between f32 and the 16-bit types, two values to a 32-bit word, the first in the lower
// half. Rounding is to nearest even, overflow gives an infinity, NaN stays NaN.

#pragma once

// Element types, as the tables number them in parameters and defines.
#define F32 0
#define F16 1
#define BF16 2

// widen_lo and widen_hi return the halves of a word of elements of type T.
template <int T> __device__ __forceinline__ float widen_lo(unsigned w) {
    if (T == BF16) return __uint_as_float(w << 16);
    float f;
    asm("{.reg .b16 lo, hi; mov.b32 {lo, hi}, %1; cvt.f32.f16 %0, lo;}" : "=f"(f) : "r"(w));
    return f;
}
template <int T> __device__ __forceinline__ float widen_hi(unsigned w) {
    if (T == BF16) return __uint_as_float(w & 0xffff0000u);
    float f;
    asm("{.reg .b16 lo, hi; mov.b32 {lo, hi}, %1; cvt.f32.f16 %0, hi;}" : "=f"(f) : "r"(w));
    return f;
}

// narrow rounds two values to a word of elements of type `type` (F16 or BF16).
__device__ __forceinline__ unsigned narrow(float lo, float hi, unsigned type) {
    unsigned w;
    if (type == F16) asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(hi), "f"(lo));
    else asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(w) : "f"(hi), "f"(lo));
    return w;
}
