// The sparse warpgroup matrix instruction of compute capability 9.0.

#pragma once
#include "hopper.cuh"

// rows_of_8 returns the descriptor of an operand of 64 rows in shared memory: tiles of 8 rows by 16 bytes (128 bytes
// each), along the rows first.
__device__ __forceinline__ u64 rows_of_8(u32 at) {
    return (u64)((at & 0x3ffff) >> 4) | (u64)(1024 >> 4) << 16 | (u64)(128 >> 4) << 32;
}

// wgmma_sparse computes d += a·b for 64×N×32 by four warps, where N is 8 times d's first dimension. a is 2:4 sparse
// (rows_of_8, half its columns), b has k rows of N columns (across_of) or, if TRANS is 0, N lines of k elements.
// Warp w has rows 16w to 16w + 15. Places are as for mma_sparse; lanes 2·SELECT and 2·SELECT + 1 of each quad of
// lanes give them.
#define WGMMA_SPARSE_OF(N, TYPE, A, B, E, S, T_) \
    asm volatile("wgmma.mma_async.sp.sync.aligned.m64n" #N "k32.f32." TYPE "." TYPE " {" REGS_##N \
                 "}, " \
                 "%" #A ", %" #B ", %" #E ", %" #S ", 1, 1, 1, 0, %" #T_ ";" \
                 : SUMS_##N \
                 : "l"(a), "l"(b), "r"(places), "n"(SELECT), "n"(TRANS))
#define WGMMA_SPARSE(N, A, B, E, S, T_) \
    template <int T, int SELECT, int TRANS> \
    __device__ __forceinline__ void wgmma_sparse(float(&d)[N / 8][4], u64 a, u64 b, u32 places) { \
        if (T == BF16) WGMMA_SPARSE_OF(N, "bf16", A, B, E, S, T_); \
        else WGMMA_SPARSE_OF(N, "f16", A, B, E, S, T_); \
    }
// wgmma_held keeps places in their registers until here. The instruction reads them until it is waited for.
__device__ __forceinline__ void wgmma_held(u32 places) { asm volatile("" ::"r"(places) : "memory"); }

WGMMA_SPARSE(16, 8, 9, 10, 11, 12)
WGMMA_SPARSE(32, 16, 17, 18, 19, 20)
WGMMA_SPARSE(64, 32, 33, 34, 35, 36)
WGMMA_SPARSE(128, 64, 65, 66, 67, 68)
WGMMA_SPARSE(256, 128, 129, 130, 131, 132)
#undef WGMMA_SPARSE
#undef WGMMA_SPARSE_OF
