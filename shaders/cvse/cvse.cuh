// Where the CUDA kernels find their work: the warps of a CTA have neighbouring panels of the format's order and the
// same columns of C, so that they find each other's rows of B in L1.

#pragma once
#include "../include/panel.cuh"

__device__ __forceinline__ u32 panel_at(const u32 *order, u32 slot) { return order[slot]; }

__device__ __forceinline__ bool locate(const u32 *work, const Params &p, u32 warp, u32 cols, Panel &a) {
    u32 slot = (blockIdx.x + blockIdx.z * p.width) * WARPS + warp;
    if (slot >= p.panels) return false;
    a = panel_of(work, p, slot, blockIdx.y * cols);
    return true;
}

__device__ __forceinline__ u32 row_of(const u32 *, const Panel &a, u32 r) { return a.rows + r; }
