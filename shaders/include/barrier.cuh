// Barriers in shared memory, from compute capability 8.0 on. A barrier is given by its address.

#pragma once

typedef unsigned int u32;

__device__ __forceinline__ void barrier_init(u32 bar, u32 count) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}
__device__ __forceinline__ void barrier_arrive(u32 bar) {
    asm volatile("{ .reg .b64 t; mbarrier.arrive.shared.b64 t, [%0]; }" ::"r"(bar) : "memory");
}
__device__ __forceinline__ bool barrier_test(u32 bar, u32 parity) {
    u32 ready;
    asm volatile("{ .reg .pred p;\n mbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n selp.u32 %0, 1, 0, p; }"
                 : "=r"(ready)
                 : "r"(bar), "r"(parity)
                 : "memory");
    return ready;
}
