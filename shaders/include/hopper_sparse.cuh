// The sparse warpgroup matrix instruction of compute capability 9.0.

#pragma once
#include "hopper.cuh"

// rows_of_8 describes an operand of 64 rows in shared memory: pieces of 8 rows by 16 bytes (128 bytes), first along the rows.
__device__ __forceinline__ u64 rows_of_8(u32 at) { return (u64)((at & 0x3ffff) >> 4) | (u64)(1024 >> 4) << 16 | (u64)(128 >> 4) << 32; }

#define WGMMA_TILE(i) "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])
#define SUMS_16 WGMMA_TILE(0), WGMMA_TILE(1)
#define REGS_16 "{%0,%1,%2,%3,%4,%5,%6,%7}"
#define SUMS_32 SUMS_16, WGMMA_TILE(2), WGMMA_TILE(3)
#define REGS_32 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15}"
#define SUMS_64 WGMMA_TILE(0), WGMMA_TILE(1), WGMMA_TILE(2), WGMMA_TILE(3), WGMMA_TILE(4), WGMMA_TILE(5), WGMMA_TILE(6), WGMMA_TILE(7)
#define REGS_64 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}"
#define SUMS_128 WGMMA_TILE(0), WGMMA_TILE(1), WGMMA_TILE(2), WGMMA_TILE(3), WGMMA_TILE(4), WGMMA_TILE(5), WGMMA_TILE(6), WGMMA_TILE(7), \
    WGMMA_TILE(8), WGMMA_TILE(9), WGMMA_TILE(10), WGMMA_TILE(11), WGMMA_TILE(12), WGMMA_TILE(13), WGMMA_TILE(14), WGMMA_TILE(15)
#define REGS_128 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31," \
    "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}"
#define SUMS_256 WGMMA_TILE(0), WGMMA_TILE(1), WGMMA_TILE(2), WGMMA_TILE(3), WGMMA_TILE(4), WGMMA_TILE(5), WGMMA_TILE(6), WGMMA_TILE(7), \
    WGMMA_TILE(8), WGMMA_TILE(9), WGMMA_TILE(10), WGMMA_TILE(11), WGMMA_TILE(12), WGMMA_TILE(13), WGMMA_TILE(14), WGMMA_TILE(15), \
    WGMMA_TILE(16), WGMMA_TILE(17), WGMMA_TILE(18), WGMMA_TILE(19), WGMMA_TILE(20), WGMMA_TILE(21), WGMMA_TILE(22), WGMMA_TILE(23), \
    WGMMA_TILE(24), WGMMA_TILE(25), WGMMA_TILE(26), WGMMA_TILE(27), WGMMA_TILE(28), WGMMA_TILE(29), WGMMA_TILE(30), WGMMA_TILE(31)
#define REGS_256 "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31," \
    "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63," \
    "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95," \
    "%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125,%126,%127}"

// wgmma_sparse is d += a·b of 64×N×32 by four warps, N being 8 times d's first size, a 2:4 sparse (rows_of_8, half its
// columns), b as k rows of N (across_of). Places as for mma_sparse, warp w having rows 16w to 16w + 15; lanes 2·SELECT and
// 2·SELECT + 1 of each quad hold them.
#define WGMMA_SPARSE_OF(N, TYPE, A, B, E, S)                                                                                          \
    asm volatile("wgmma.mma_async.sp.sync.aligned.m64n" #N "k32.f32." TYPE "." TYPE " " REGS_##N ", %" #A ", %" #B ", %" #E ", %" #S \
                 ", 1, 1, 1, 0, 1;"                                                                                                   \
                 : SUMS_##N : "l"(a), "l"(b), "r"(places), "n"(SELECT))
#define WGMMA_SPARSE(N, A, B, E, S)                                                                                        \
    template <int T, int SELECT> __device__ __forceinline__ void wgmma_sparse(float (&d)[N / 8][4], u64 a, u64 b, u32 places) { \
        if (T == BF16) WGMMA_SPARSE_OF(N, "bf16", A, B, E, S);                                                             \
        else WGMMA_SPARSE_OF(N, "f16", A, B, E, S);                                                                        \
    }                                                                                                                      \
    __device__ __forceinline__ void wgmma_hold(float (&d)[N / 8][4]) { asm volatile("" : SUMS_##N::"memory"); }
// wgmma_hold is wgmma_pin for any N. wgmma_held keeps places where they are until the instruction has read them, which is
// when it is waited for.
__device__ __forceinline__ void wgmma_held(u32 places) { asm volatile("" ::"r"(places) : "memory"); }

WGMMA_SPARSE(16, 8, 9, 10, 11)
WGMMA_SPARSE(32, 16, 17, 18, 19)
WGMMA_SPARSE(64, 32, 33, 34, 35)
WGMMA_SPARSE(128, 64, 65, 66, 67)
WGMMA_SPARSE(256, 128, 129, 130, 131)
#undef SUMS_16
#undef REGS_16
#undef SUMS_32
#undef REGS_32
#undef SUMS_64
#undef REGS_64
#undef SUMS_128
#undef REGS_128
#undef SUMS_256
#undef REGS_256
#undef WGMMA_TILE
#undef WGMMA_SPARSE
#undef WGMMA_SPARSE_OF
