// MMA in tf32: f32 operands are rounded to 11 significant bits.

#pragma once
#include "units.cuh"

// tf32 rounds x to nearest. (The instruction itself would cut off the low bits.)
__device__ __forceinline__ u32 tf32(u32 x) {
    u32 r;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(__uint_as_float(x)));
    return r;
}

// mma8 computes d += a·b for 16×8×8, with sums in f32.
__device__ __forceinline__ void mma8(float (&d)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
