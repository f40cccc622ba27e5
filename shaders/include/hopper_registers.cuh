// Warpgroup matrix instructions of compute capability 9.0 whose first operand is in registers.

#pragma once
#include "hopper.cuh"

#define WGMMA_TILE(i) "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])
#define SUMS_64 WGMMA_TILE(0), WGMMA_TILE(1), WGMMA_TILE(2), WGMMA_TILE(3), WGMMA_TILE(4), WGMMA_TILE(5), WGMMA_TILE(6), WGMMA_TILE(7)
#define REGS_64 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}"
#define SUMS_128 SUMS_64, WGMMA_TILE(8), WGMMA_TILE(9), WGMMA_TILE(10), WGMMA_TILE(11), WGMMA_TILE(12), WGMMA_TILE(13), WGMMA_TILE(14), WGMMA_TILE(15)
#define REGS_128 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31," \
    "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}"
#define SUMS_256 SUMS_128, WGMMA_TILE(16), WGMMA_TILE(17), WGMMA_TILE(18), WGMMA_TILE(19), WGMMA_TILE(20), WGMMA_TILE(21), WGMMA_TILE(22), \
    WGMMA_TILE(23), WGMMA_TILE(24), WGMMA_TILE(25), WGMMA_TILE(26), WGMMA_TILE(27), WGMMA_TILE(28), WGMMA_TILE(29), WGMMA_TILE(30), WGMMA_TILE(31)
#define REGS_256 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31," \
    "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63," \
    "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95," \
    "%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127}"

// wgmma_registers is d += a·b of 64×N×16 by four warps, N being 8 times d's first size: a as mma's first operand, warp w having
// rows 16w to 16w + 15, and b as k rows of N (swizzled). It reads the registers of a as it runs: they are not to be written before it
// is waited for.
#define WGMMA_OF(N, TYPE, A0, A1, A2, A3, B)                                                                                               \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " " REGS_##N ", {%" #A0 ",%" #A1 ",%" #A2 ",%" #A3 "}, %" #B \
                 ", 1, 1, 1, 1;"                                                                                                           \
                 : SUMS_##N : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b))
#define WGMMA(N, A0, A1, A2, A3, B)                                                                                       \
    template <int T> __device__ __forceinline__ void wgmma_registers(float (&d)[N / 8][4], const u32 (&a)[4], u64 b) {        \
        if (T == BF16) WGMMA_OF(N, "bf16", A0, A1, A2, A3, B);                                                            \
        else WGMMA_OF(N, "f16", A0, A1, A2, A3, B);                                                                       \
    }                                                                                                                     \
    __device__ __forceinline__ void wgmma_hold(float (&d)[N / 8][4]) { asm volatile("" : SUMS_##N::"memory"); }
// wgmma_hold keeps the compiler from moving other uses of sums past it: the instructions write them later on. wgmma_held keeps a
// in its registers until here.
__device__ __forceinline__ void wgmma_held(const u32 (&a)[4]) { asm volatile("" ::"r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]) : "memory"); }

WGMMA(64, 32, 33, 34, 35, 36)
WGMMA(128, 64, 65, 66, 67, 68)
WGMMA(256, 128, 129, 130, 131, 132)
#undef SUMS_64
#undef REGS_64
#undef SUMS_128
#undef REGS_128
#undef SUMS_256
#undef REGS_256
#undef WGMMA_TILE
#undef WGMMA
#undef WGMMA_OF
