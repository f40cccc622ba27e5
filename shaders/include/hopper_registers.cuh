// wgmma of compute capability 9.0 with operand A in registers.

#pragma once
#include "hopper.cuh"

// wgmma_registers computes d += a·b for 64×N×16 by four warps, where N is 8 times d's first dimension. a has the layout
// of mma's operand A; warp w has rows 16w to 16w + 15. b has k rows of N columns (swizzled). It reads the registers of
// a while it runs: they must not be written before wgmma_wait.
#define WGMMA_OF(N, TYPE, A0, A1, A2, A3, B) \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" REGS_##N \
                 "}, " \
                 "{%" #A0 ",%" #A1 ",%" #A2 ",%" #A3 "}, %" #B ", 1, 1, 1, 1;" \
                 : SUMS_##N \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
#define WGMMA(N, A0, A1, A2, A3, B) \
    template <int T> __device__ __forceinline__ void wgmma_registers(float(&d)[N / 8][4], const u32(&a)[4], u64 b) { \
        if (T == BF16) WGMMA_OF(N, "bf16", A0, A1, A2, A3, B); \
        else WGMMA_OF(N, "f16", A0, A1, A2, A3, B); \
    }
// wgmma_held keeps a in its registers until here.
__device__ __forceinline__ void wgmma_held(const u32 (&a)[4]) {
    asm volatile("" ::"r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]) : "memory");
}

WGMMA(64, 32, 33, 34, 35, 36)
WGMMA(128, 64, 65, 66, 67, 68)
WGMMA(256, 128, 129, 130, 131, 132)
#undef WGMMA
#undef WGMMA_OF
