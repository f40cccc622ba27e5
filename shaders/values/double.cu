// Brings new values of f64 to their places, or new values of any type to an array of f64. See values.go for the map and
// for how work is shared out.

#define DOUBLE
#include "params.h"
#include "../include/f64.cuh"

typedef unsigned int u32;

// bring writes entry n, if src holds it, to a slot of dst.
__device__ __forceinline__ void bring(const void *src, void *dst, u32 entry, size_t slot, const Params &p) {
    u32 i = entry - p.lo;
    if (i < p.count) narrowed(dst, slot, p.dtype, widened(src, (size_t)i * p.stride, p.stype));
}

// listed brings EACH entries to the slots that are listed for them, one behind the other of the workgroup's: all loads of
// a kind are under way at once.
__device__ __forceinline__ void listed(u32 first, const void *src, const u32 *slots, const u32 *sources, void *dst, const Params &p) {
    u32 slot[EACH], i[EACH];
    double x[EACH];
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        u32 n = first + 128 * k;
        bool in = n < p.listed;
        slot[k] = p.run ? p.first + n : in ? slots[n] : 0;
        i[k] = in ? sources[n] - p.lo : 0xffffffffu;
    }
#pragma unroll
    for (int k = 0; k < EACH; k++) x[k] = i[k] < p.count ? widened(src, (size_t)i[k] * p.stride, p.stype) : 0;
#pragma unroll
    for (int k = 0; k < EACH; k++)
        if (i[k] < p.count) narrowed(dst, slot[k], p.dtype, x[k]);
}

extern "C" __global__ void __launch_bounds__(128)
values(const void *__restrict__ src, const uint2 *__restrict__ groups, const u32 *__restrict__ sources, void *dst, const Params p) {
    u32 block = blockIdx.x + blockIdx.z * p.width;
    if (p.listed > 0) {
        listed(block * (128 * EACH) + threadIdx.x, src, (const u32 *)groups, sources, dst, p);
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
