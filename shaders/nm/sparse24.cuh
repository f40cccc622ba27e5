// How a 2:4 matrix is packed for sparse tensor cores: see pack24 in sparse24.go.

#pragma once
#include "nm.cuh"
#include "remainder.cuh"

// steps24 is the steps of 32 columns that a row has, an even number.
__device__ __forceinline__ u32 steps24(const Params &p) { return (p.groups + 15) / 16 * 2; }

// Entries24 is Entries for this packing. The mask is the format's.
struct Entries24 {
    const u16 *values;
    const u32 *index, *mask;
    const u16 *b;
    const Params *p;

    __device__ __forceinline__ float operator()(u32 row, u32 col) const {
        Special s;
        terms(s, row, col);
        return s.result();
    }
    // terms adds the products of a row's entries and a column of B.
    __device__ __forceinline__ void terms(Special &s, u32 row, u32 col) const {
        u32 steps = steps24(*p), count = 2 * p->groups, g = row & 7, high = row >> 3 & 1;
        const u32 *bits = mask + (u64)row * ((count + 31) / 32);
        u64 block = (u64)(row / 16) * steps;
        for (u32 slot = 0; slot < count; slot++) {
            if (!(bits[slot >> 5] >> (slot & 31) & 1)) continue;
            u32 step = slot / 16, in = slot % 16; // the step's slots are the operand's columns
            u16 value = values[((block + step) * 32 + 4 * g + in % 8 / 2) * 8 + 4 * (in / 8) + 2 * high + in % 2];
            u32 word = index[(block / 2 + step / 2) * 32 + 4 * g + 2 * (step % 2) + in / 8];
            u32 place = word >> (16 * high + in % 8 * 2) & 3;
            s.add(to_float(value), to_float(b[(u64)(slot / 2 * 4 + place) * p->ldb + col]));
        }
    }
};
