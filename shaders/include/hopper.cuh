// wgmma of compute capability 9.0, and its descriptors of operands in shared memory.

#pragma once
#include "units.cuh"
#include "wgmma_sums.cuh"

// async_fence makes the writes to shared memory of this thread, and those that it has seen, visible to wgmma and TMA.
__device__ __forceinline__ void async_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> __device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}

// swizzled returns the descriptor of an operand in shared memory that has a row of 64 elements (128 bytes) for each k,
// whose 16-byte chunks are swizzled by k mod 8. The next 64 elements of each k are `slab` bytes further on.
__device__ __forceinline__ u64 swizzled(u32 at, u32 slab) {
    return (u64)((at & 0x3ffff) >> 4) | (u64)(slab >> 4) << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}

// across_of returns the descriptor of an operand that has a row of WIDE elements for each k (see bulk.cuh's TileMap).
// The next WIDE elements of each k are `slab` bytes further on.
template <int WIDE> __device__ __forceinline__ u64 across_of(u32 at, u32 slab) {
    if (WIDE == 64) return swizzled(at, slab);
    constexpr u64 EIGHT = 16 * WIDE >> 4, KIND = WIDE == 32 ? 2 : WIDE == 16 ? 3 : 0; // bytes of eight k
    return (u64)((at & 0x3ffff) >> 4) | (u64)((KIND ? slab : 16 * WIDE) >> 4) << 16 | EIGHT << 32 | KIND << 62;
}

// wgmma computes d += a·b for 64×128×16 by four warps; a and b have a row of the other dimension for each k.
template <int T> __device__ __forceinline__ void wgmma(float (&d)[16][4], u64 a, u64 b) {
    if (T == BF16)
        asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" REGS_128 "}, %64, %65, 1, 1, 1, 1, 1;"
                     : SUMS_128
                     : "l"(a), "l"(b));
    else
        asm volatile("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" REGS_128 "}, %64, %65, 1, 1, 1, 1, 1;"
                     : SUMS_128
                     : "l"(a), "l"(b));
}
