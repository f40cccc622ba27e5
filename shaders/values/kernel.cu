// Computes: new values of 16 or 32 bits, written to their slots of a packed array (values.go explains the map).
// Tile: four words of the array a thread; with a list (listed.cuh) four entries a thread.
// Data movement: straight through registers: coalesced writes, gathered reads.
// Bound by: memory bandwidth.

#include "params.h"
#include "../include/half.cuh"
#include "listed.cuh"

// round returns f32 bits as bits of a 16-bit type. NaN keeps the upper bits of its payload.
__device__ __forceinline__ u32 round16(u32 x, u32 type) {
    if ((x & 0x7fffffffu) > 0x7f800000u)
        return type == BF16 ? x >> 16 | 0x40u : (x >> 16 & 0x8000u) | 0x7e00u | (x >> 13 & 0x3ffu);
    return narrow(__uint_as_float(x), 0, type) & 0xffffu;
}

// fetch returns the bits of element i of src.
__device__ __forceinline__ u32 fetch(const void *src, u32 i, const Params &p) {
    size_t at = (size_t)i * p.stride;
    return p.stype == F32 ? ((const u32 *)src)[at] : ((const unsigned short *)src)[at];
}

// convert returns the bits of an element of src as one of dst.
__device__ __forceinline__ u32 convert(u32 x, const Params &p) {
    if (p.stype == p.dtype) return x;
    if (p.stype != F32) x = __float_as_uint(p.stype == F16 ? widen_lo<F16>(x) : widen_lo<BF16>(x));
    return p.dtype == F32 ? x : round16(x, p.dtype);
}

// quad writes four words of PER slots each.
template <int PER>
__device__ __forceinline__ void quad_of(u32 quad, const void *src, const uint2 *groups, const u32 *sources, u32 *dst,
                                        const Params &p) {
    const u32 all = (1u << 4 * PER) - 1;
    u32 slot = 4 * PER * quad;
    u32 held = all, next; // which slots hold entries, and the number of the first: of the entry, or in sources
    u32 *words = dst + 4 * ((size_t)p.base + quad);
    if (p.slots > 0) {
        if (p.slots - slot < 4 * PER) held = (1u << (p.slots - slot)) - 1;
        next = p.first + slot;
        u32 i = next - p.lo;
        if (p.full == 2 && p.stype == p.dtype && p.stride == 1 && held == all && i % (4 * PER) == 0) {
            *(uint4 *)words = ((const uint4 *)src)[i / (4 * PER)];
            return;
        }
    } else {
        uint2 group = groups[slot / 32];
        held = group.x >> slot % 32 & all;
        next = group.y + __popc(group.x & ((1u << slot % 32) - 1));
    }
    if (held == 0) return;
    u32 word[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        u32 mine = held >> PER * k & ((1u << PER) - 1);
        word[k] = p.full == 0 && mine != 0 ? words[k] : 0;
#pragma unroll
        for (int h = 0; h < PER; h++) {
            if ((mine >> h & 1) == 0) continue;
            u32 i = (p.slots > 0 ? next : sources[next]) - p.lo;
            next++;
            if (i >= p.count) continue;
            u32 x = convert(fetch(src, i, p), p);
            if (PER == 1) word[k] = x;
            else if (h == 0) word[k] = (word[k] & 0xffff0000u) | x;
            else word[k] = (word[k] & 0xffffu) | x << 16;
        }
    }
    if (p.full == 2) {
        *(uint4 *)words = make_uint4(word[0], word[1], word[2], word[3]);
        return;
    }
#pragma unroll
    for (int k = 0; k < 4; k++)
        if ((held >> PER * k & ((1u << PER) - 1)) != 0) words[k] = word[k];
}

extern "C" __global__ void __launch_bounds__(128) values(const void *__restrict__ src, const uint2 *__restrict__ groups,
                                                         const u32 *__restrict__ sources, u32 *dst, const Params p) {
    u32 block = blockIdx.x + blockIdx.z * p.width;
    if (p.listed > 0) {
        listed<u32>(
            block * (128 * EACH) + threadIdx.x, (const u32 *)groups, sources, p,
            [&](u32 i) { return fetch(src, i, p); },
            [&](u32 slot, u32 x) {
                u32 y = convert(x, p);
                if (p.dtype == F32) dst[slot] = y;
                else ((unsigned short *)dst)[slot] = (unsigned short)y;
            });
        return;
    }
    u32 quad = block * 128 + threadIdx.x;
    if (quad >= p.quads) return;
    if (p.dtype == F32) quad_of<1>(quad, src, groups, sources, dst, p);
    else quad_of<2>(quad, src, groups, sources, dst, p);
}
