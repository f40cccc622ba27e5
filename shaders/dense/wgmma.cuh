// Warpgroup matrix instructions with 8 to 256 columns, operands lying along the sum or across it.

#pragma once
#include "../include/hopper.cuh"

// wgmma_sum is d += l·r of 64×N×16 by four warps, N being 8 times d's first size. LT and RT tell that an operand lies across:
// k after k (hopper.cuh's swizzled). Else it lies along: line after line of 64 places k, described likewise, without a slab.
#define TILE(i) "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])
#define SUMS_8 TILE(0)
#define SUMS_16 TILE(0), TILE(1)
#define SUMS_32 TILE(0), TILE(1), TILE(2), TILE(3)
#define SUMS_64 SUMS_32, TILE(4), TILE(5), TILE(6), TILE(7)
#define SUMS_96 SUMS_64, TILE(8), TILE(9), TILE(10), TILE(11)
#define SUMS_112 SUMS_96, TILE(12), TILE(13)
#define SUMS_128 SUMS_64, TILE(8), TILE(9), TILE(10), TILE(11), TILE(12), TILE(13), TILE(14), TILE(15)
#define SUMS_160 SUMS_128, TILE(16), TILE(17), TILE(18), TILE(19)
#define SUMS_168 SUMS_160, TILE(20)
#define SUMS_192 SUMS_160, TILE(20), TILE(21), TILE(22), TILE(23)
#define SUMS_224 SUMS_192, TILE(24), TILE(25), TILE(26), TILE(27)
#define SUMS_256                                                                                                                  \
    SUMS_128, TILE(16), TILE(17), TILE(18), TILE(19), TILE(20), TILE(21), TILE(22), TILE(23), TILE(24), TILE(25), TILE(26), TILE(27), \
        TILE(28), TILE(29), TILE(30), TILE(31)
#define REGS_8 "%0,%1,%2,%3"
#define REGS_16 "%0,%1,%2,%3,%4,%5,%6,%7"
#define REGS_32 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define REGS_64 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define REGS_96 REGS_64 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47"
#define REGS_112 REGS_96 ",%48,%49,%50,%51,%52,%53,%54,%55"
#define REGS_128                                                                                                                       \
    REGS_64 ",%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61," \
            "%62,%63"
#define REGS_160 REGS_128 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79"
#define REGS_168 REGS_160 ",%80,%81,%82,%83"
#define REGS_192 REGS_160 ",%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define REGS_224 REGS_192 ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111"
#define REGS_256                                                                                                                          \
    REGS_128 ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,"    \
             "%94,%95,%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119," \
             "%120,%121,%122,%123,%124,%125,%126,%127"
#define WGMMA_OF(N, TYPE, L, R, LT_, RT_)                                                                                                \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" REGS_##N "}, %" #L ", %" #R ", 1, 1, 1, %" #LT_ ", %" #RT_ ";" \
                 : SUMS_##N : "l"(l), "l"(r), "n"(LT), "n"(RT))
#define WGMMA_LEFT_OF(N, TYPE, A0, A1, A2, A3, R, ADD_)                                                                                                    \
    asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." TYPE "." TYPE " {" REGS_##N "}, {%" #A0 ",%" #A1 ",%" #A2 ",%" #A3 "}, %" #R ", %" #ADD_ ", 1, 1, 1;" \
                 : SUMS_##N : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(r), "n"(ADD))
// wgmma_left is wgmma_sum with l in registers, as mma's first operand, warp w having rows 16w to 16w + 15, and r across. It reads the
// registers of a as it runs: they are not to be written before it is waited for. Without ADD it is d = l·r.
#define WGMMA_LEFT(N, A0, A1, A2, A3, R, ADD_)                                                                                   \
    template <int T, int ADD> __device__ __forceinline__ void wgmma_left(float (&d)[N / 8][4], const u32 (&a)[4], u64 r) {          \
        if (T == BF16) WGMMA_LEFT_OF(N, "bf16", A0, A1, A2, A3, R, ADD_);                                                        \
        else WGMMA_LEFT_OF(N, "f16", A0, A1, A2, A3, R, ADD_);                                                                   \
    }
#define WGMMA(N, L, R, LT_, RT_)                                                                                          \
    template <int T, int LT, int RT> __device__ __forceinline__ void wgmma_sum(float (&d)[N / 8][4], u64 l, u64 r) {       \
        if (T == BF16) WGMMA_OF(N, "bf16", L, R, LT_, RT_);                                                                \
        else WGMMA_OF(N, "f16", L, R, LT_, RT_);                                                                           \
    }                                                                                                                     \
    __device__ __forceinline__ void wgmma_hold(float (&d)[N / 8][4]) { asm volatile("" : SUMS_##N::"memory"); }
// wgmma_hold keeps the compiler from moving other uses of sums past it: the instructions write them later on.

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
#undef TILE
#undef SUMS_8
#undef SUMS_16
#undef SUMS_32
#undef SUMS_64
#undef SUMS_96
#undef SUMS_112
#undef SUMS_128
#undef SUMS_160
#undef SUMS_168
#undef SUMS_192
#undef SUMS_224
#undef SUMS_256
#undef REGS_8
#undef REGS_16
#undef REGS_32
#undef REGS_64
#undef REGS_96
#undef REGS_112
#undef REGS_128
#undef REGS_160
#undef REGS_168
#undef REGS_192
#undef REGS_224
#undef REGS_256
#undef WGMMA_OF
#undef WGMMA
#undef WGMMA_LEFT_OF
#undef WGMMA_LEFT
