// wgmma with 8 to 256 columns and operands that lie along or across (hopper.cuh).

#pragma once
#include "../include/hopper.cuh"

// wgmma_sum computes d += l·r for 64×N×16 by four warps, where N is 8 times d's first dimension. LT and RT are 1 if l
// and r lie across: then a descriptor is of rows of constant k (swizzled in ../include/hopper.cuh). Else they lie
// along: it is of lines of 64 values of k each, made likewise, and the distance of slabs does not matter.
#define WGMMA_OF(N, TYPE, L, R, LT_, RT_) \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" REGS_##N \
                 "}, %" #L ", %" #R ", 1, 1, 1, %" #LT_ ", %" #RT_ ";" \
                 : SUMS_##N \
                 : "l"(l), "l"(r), "n"(LT), "n"(RT))
#define WGMMA_LEFT_OF(N, TYPE, A0, A1, A2, A3, R, ADD_) \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" REGS_##N \
                 "}, {%" #A0 ",%" #A1 ",%" #A2 ",%" #A3 "}, %" #R ", %" #ADD_ ", 1, 1, 1;" \
                 : SUMS_##N \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(r), "n"(ADD))
// wgmma_left is wgmma_sum with l in registers, in the layout of mma's operand A, where warp w has rows 16w to 16w + 15;
// r lies across. It reads the registers of a while it runs: they must not be written before wgmma_wait. Without ADD it
// computes d = l·r.
#define WGMMA_LEFT(N, A0, A1, A2, A3, R, ADD_) \
    template <int T, int ADD> \
    __device__ __forceinline__ void wgmma_left(float(&d)[N / 8][4], const u32(&a)[4], u64 r) { \
        if (T == BF16) WGMMA_LEFT_OF(N, "bf16", A0, A1, A2, A3, R, ADD_); \
        else WGMMA_LEFT_OF(N, "f16", A0, A1, A2, A3, R, ADD_); \
    }
#define WGMMA(N, L, R, LT_, RT_) \
    template <int T, int LT, int RT> __device__ __forceinline__ void wgmma_sum(float(&d)[N / 8][4], u64 l, u64 r) { \
        if (T == BF16) WGMMA_OF(N, "bf16", L, R, LT_, RT_); \
        else WGMMA_OF(N, "f16", L, R, LT_, RT_); \
    }

WGMMA(8, 4, 5, 6, 7)
WGMMA(16, 8, 9, 10, 11)
WGMMA(32, 16, 17, 18, 19)
WGMMA(64, 32, 33, 34, 35)
WGMMA(96, 48, 49, 50, 51)
WGMMA(112, 56, 57, 58, 59)
WGMMA(128, 64, 65, 66, 67)
WGMMA(160, 80, 81, 82, 83)
WGMMA(168, 84, 85, 86, 87)
WGMMA(192, 96, 97, 98, 99)
WGMMA(224, 112, 113, 114, 115)
WGMMA(256, 128, 129, 130, 131)
WGMMA_LEFT(8, 4, 5, 6, 7, 8, 9)
WGMMA_LEFT(16, 8, 9, 10, 11, 12, 13)
WGMMA_LEFT(32, 16, 17, 18, 19, 20, 21)
WGMMA_LEFT(64, 32, 33, 34, 35, 36, 37)
WGMMA_LEFT(128, 64, 65, 66, 67, 68, 69)
#undef WGMMA_OF
#undef WGMMA
#undef WGMMA_LEFT_OF
#undef WGMMA_LEFT
