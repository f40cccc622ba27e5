// What the N:M kernels share: elements, slots, and rows of entries. Needs ELEM (half.cuh).
//
// Parameters: a panel has p.groups groups that keep p.keep of p.every units each, 2^p.wide columns wide.

#pragma once
#include "params.h"
#include "../include/result.cuh"
#include "../include/elem.cuh"

// A panel's places: p.keep·p.groups slots of `bits` bits.
struct Places {
    const u32 *words;
    u32 last; // word
    u32 bits;

    __device__ __forceinline__ Places(const u32 *index, const Params &p, u32 panel) {
        bits = 32 - __clz(p.every - 1);
        u32 count = (p.groups * p.keep * bits + 31) / 32;
        words = index + (u64)panel * count;
        last = count - 1;
    }
    // raw returns the words that hold a slot's place, place reads it from them.
    __device__ __forceinline__ uint2 raw(u32 slot) const {
        u32 at = slot * bits >> 5;
        return make_uint2(words[min(at, last)], words[min(at + 1, last)]);
    }
    __device__ __forceinline__ u32 place(u32 slot, uint2 w) const {
        return __funnelshift_r(w.x, w.y, slot * bits & 31) & ((1u << bits) - 1);
    }
    __device__ __forceinline__ u32 place(u32 slot) const { return place(slot, raw(slot)); }
};

// column returns the matrix's column of condensed column k, whose unit is at the given place.
__device__ __forceinline__ u32 column(const Params &p, u32 k, u32 place) {
    u32 slot = k >> p.wide;
    return ((slot / p.keep * p.every + place) << p.wide) + (k & ((1u << p.wide) - 1));
}

// Entries gives an output from its row's entries alone, from the arrays as the format has them, for panels of v rows.
struct Entries {
    const Elem *values;
    const u32 *index, *mask;
    const Elem *b;
    const Params *p;
    u32 v;

    __device__ __forceinline__ float operator()(u32 row, u32 col) const {
        u32 panel = row / v, r = row % v, count = p->groups * p->keep << p->wide;
        Places places(index, *p, panel);
        const u32 *bits = mask + (u64)panel * ((count * v + 31) / 32);
        Special s;
        for (u32 k = 0; k < count; k++) {
            u32 at = k * v + r;
            if (!(bits[at >> 5] >> (at & 31) & 1)) continue;
            u32 from = column(*p, k, places.place(k >> p->wide));
            s.add(to_float(values[(u64)panel * count * v + at]), to_float(b[(u64)from * p->ldb + col]));
        }
        return s.result();
    }
};
