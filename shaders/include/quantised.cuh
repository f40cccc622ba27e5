// Quantised values of A: 8-bit codes, and a scale for each row and SCALE_COLS columns. QUANT is S8 (a code is an
// integer plus 128) or E4M3. Elements of A are made from codes without their scales; partial sums are multiplied by the
// scales.

#pragma once
#include "units.cuh"

#define S8 1
#define E4M3 2
#define SCALE_COLS 128
#define ZERO_CODE (QUANT == S8 ? 0x80 : 0)

// UNIT is the element that the integer 1 becomes. (A subnormal bf16 times a power of two is the shortest conversion.)
#define UNIT (QUANT == S8 && ELEM == BF16 ? 0x1p-6f : 1.0f)

// two_levels returns the numbers that two e4m3 stand for, as f16.
__device__ __forceinline__ u32 two_levels(u16 codes) {
    u32 y;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(y) : "h"(codes));
    return y;
}

// elements returns two elements of A, in units of UNIT, from the codes in the lower (HIGH = 0) or upper half of x.
template <int HIGH> __device__ __forceinline__ u32 elements(u32 x) {
    u32 y;
#if QUANT == S8 && ELEM == F16
    y = __byte_perm(x, 0x64646464, HIGH ? 0x4342 : 0x4140); // 1024 + code
    asm("add.rn.f16x2 %0, %0, %1;" : "+r"(y) : "r"(0xe480e480)); // - 1152
#elif QUANT == S8
    y = __byte_perm(x, 0, HIGH ? 0x4342 : 0x4140); // code · 2⁻¹³³
    asm("fma.rn.bf16x2 %0, %0, %1, %2;" : "+r"(y) : "r"(0x7f007f00), "r"(0xc000c000)); // · 2¹²⁷ - 2
#else
    y = two_levels((u16)(HIGH ? x >> 16 : x));
#if ELEM == BF16
    y = __byte_perm(__float_as_uint(widen_lo<F16>(y)), __float_as_uint(widen_hi<F16>(y)), 0x7632);
#endif
#endif
    return y;
}

// level returns the number that a code stands for.
__device__ __forceinline__ float level(u32 code) {
    return QUANT == S8 ? (float)((int)code - 128) : widen_lo<F16>(two_levels((u16)code));
}
