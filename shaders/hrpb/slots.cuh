// Partial sums of split panels and strips, which are in slots of the workspace.

#pragma once
#include "../include/load.cuh"

__device__ __forceinline__ void add(float4 &x, const float4 &v) { x.x += v.x, x.y += v.y, x.z += v.z, x.w += v.w; }

// sum_slots adds up four columns, from col on, of one row of the slots, of TALL rows, of an entry w of the work list.
template <u32 TALL>
__device__ __forceinline__ float4 sum_slots(const Params &p, uint4 w, const float *part, u32 row, u32 col) {
    u32 slots = (w.z - w.y + p.longest - 1) / p.longest;
    const float4 *from = (const float4 *)(part + ((u64)w.w * TALL + row) * p.ldp + col);
    float4 x = make_float4(0, 0, 0, 0);
#pragma unroll 8
    for (u32 s = 0; s < slots; s++) add(x, from[(u64)s * (TALL / 4) * p.ldp]);
    return x;
}
