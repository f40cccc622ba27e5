// Computes: new values of f64, or of any type for an array of f64, written to their slots of a packed array
// (values.go).
// Tile: four words of the array a thread; with a list (listed.cuh) four entries a thread.
// Data movement: straight through registers: coalesced writes, gathered reads.
// Bound by: memory bandwidth.

#define DOUBLE
#include "params.h"
#include "../include/f64.cuh"
#include "listed.cuh"

// bring writes entry n, if src holds it, to a slot of dst.
__device__ __forceinline__ void bring(const void *src, void *dst, u32 entry, size_t slot, const Params &p) {
    u32 i = entry - p.lo;
    if (i < p.count) narrowed(dst, slot, p.dtype, widened(src, (size_t)i * p.stride, p.stype));
}

extern "C" __global__ void __launch_bounds__(128) values(const void *__restrict__ src, const uint2 *__restrict__ groups,
                                                         const u32 *__restrict__ sources, void *dst, const Params p) {
    u32 block = blockIdx.x + blockIdx.z * p.width;
    if (p.listed > 0) {
        listed<double>(
            block * (128 * EACH) + threadIdx.x, (const u32 *)groups, sources, p,
            [&](u32 i) { return widened(src, (size_t)i * p.stride, p.stype); },
            [&](u32 slot, double x) { narrowed(dst, slot, p.dtype, x); });
        return;
    }
    u32 quad = block * 128 + threadIdx.x, per = p.dtype == F64 || p.dtype == F32 ? 4 : 8; // slots of a quad of words
    if (quad >= p.quads) return;
    u32 slot = per * quad;
    size_t at = (size_t)per * ((size_t)p.base + quad);
    if (p.slots > 0) { // entries lie in their order
        for (u32 k = 0; k < min(per, p.slots - slot); k++) bring(src, dst, p.first + slot + k, at + k, p);
        return;
    }
    uint2 group = groups[slot / 32];
    u32 next = group.y + __popc(group.x & ((1u << slot % 32) - 1));
    for (u32 held = group.x >> slot % 32 & ((1u << per) - 1), k = 0; held != 0; held >>= 1, k++)
        if (held & 1) bring(src, dst, sources[next++], at + k, p);
}
