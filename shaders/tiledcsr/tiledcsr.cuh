// Where the CUDA kernels find their work: the warps of a CTA have the same group and neighbouring columns of C.

#pragma once
#include "../include/panel.cuh"

__device__ __forceinline__ u32 panel_at(const u32 *, u32 slot) { return slot; }

__device__ __forceinline__ bool locate(const u32 *work, const Params &p, u32 warp, u32 cols, Panel &a) {
    u32 i = blockIdx.x + blockIdx.z * p.width;
    u32 group = i / p.strip, block = blockIdx.y * p.strip + i % p.strip;
    u32 base = (block * WARPS + warp) * cols;
    if (group >= p.panels || base >= p.n) return false;
    a = panel_of(work, p, group, base);
    return true;
}

__device__ __forceinline__ u32 row_of(const u32 *rowidx, const Panel &a, u32 r) { return rowidx[a.rows + r]; }
