// Where a warp's sums go in kernel.cu and kernel_f32.cu: to C, or to a slot of the workspace. Sums that another lane
// stores go through shared memory, SUM_PITCH bytes a row. TILES is the instructions along a row.

#pragma once
#include "hrpb.cuh"

// copy16 copies 16 bytes to shared memory through L1: neighbouring panels share columns.
__device__ __forceinline__ void copy16(u32 to, const void *from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

// check adds products of all sums to x: it is not finite if one of them is not.
__device__ __forceinline__ void check(float (&x)[4], const float (&acc)[TILES][4]) {
#pragma unroll
    for (int i = 0; i < TILES; i += 2)
#pragma unroll
        for (int e = 0; e < 4; e++) x[e] = fmaf(acc[i][e], acc[i + 1][e], x[e]);
}

// four is element e of four tiles from tile j on.
__device__ __forceinline__ float4 four(const float (&acc)[TILES][4], int j, int e) {
    return make_float4(acc[j][e], acc[j + 1][e], acc[j + 2][e], acc[j + 3][e]);
}
