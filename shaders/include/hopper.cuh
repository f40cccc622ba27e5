// What compute capability 9.0 adds: warpgroup matrix instructions.

#pragma once
#include "units.cuh"

// async_fence makes this thread's writes to shared memory, and those that it has seen, visible to the matrix units.
__device__ __forceinline__ void async_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> __device__ __forceinline__ void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"); }

// swizzled describes an operand in shared memory: k after k, 64 elements (128 bytes) of the other dimension each,
// 16-byte chunks exchanged by k mod 8; the next 64 elements are `slab` bytes on.
__device__ __forceinline__ u64 swizzled(u32 at, u32 slab) {
    return (u64)((at & 0x3ffff) >> 4) | (u64)(slab >> 4) << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}

// across_of describes an operand that lies across: k after k, WIDE elements each (see bulk.cuh's TileMap); the next WIDE
// are `slab` bytes on.
template <int WIDE> __device__ __forceinline__ u64 across_of(u32 at, u32 slab) {
    if (WIDE == 64) return swizzled(at, slab);
    constexpr u64 EIGHT = 16 * WIDE >> 4, KIND = WIDE == 32 ? 2 : WIDE == 16 ? 3 : 0; // bytes of eight k
    return (u64)((at & 0x3ffff) >> 4) | (u64)((KIND ? slab : 16 * WIDE) >> 4) << 16 | EIGHT << 32 | KIND << 62;
}

#define WGMMA_TILE(i) "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])
#define WGMMA_SUMS                                                                                                                       \
    WGMMA_TILE(0), WGMMA_TILE(1), WGMMA_TILE(2), WGMMA_TILE(3), WGMMA_TILE(4), WGMMA_TILE(5), WGMMA_TILE(6), WGMMA_TILE(7), WGMMA_TILE(8),   \
        WGMMA_TILE(9), WGMMA_TILE(10), WGMMA_TILE(11), WGMMA_TILE(12), WGMMA_TILE(13), WGMMA_TILE(14), WGMMA_TILE(15)
#define WGMMA_REGS                                                                                                                       \
    "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31,"             \
    "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63}"

// wgmma is d += a·b of 64×128×16 by four warps, a and b as k rows of the other dimension.
template <int T> __device__ __forceinline__ void wgmma(float (&d)[16][4], u64 a, u64 b) {
    if (T == BF16)
        asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 " WGMMA_REGS ", %64, %65, 1, 1, 1, 1, 1;" : WGMMA_SUMS : "l"(a), "l"(b));
    else
        asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 " WGMMA_REGS ", %64, %65, 1, 1, 1, 1, 1;" : WGMMA_SUMS : "l"(a), "l"(b));
}

// wgmma_pin keeps the compiler from moving other uses of sums past it: the instructions write them later on.
__device__ __forceinline__ void wgmma_pin(float (&d)[16][4]) {
    asm volatile("" : WGMMA_SUMS::"memory");
}
#undef WGMMA_TILE
#undef WGMMA_SUMS
#undef WGMMA_REGS
