// How a 2:4 matrix is packed for sparse warpgroup instructions: see groupSlot in sparse24.go.

#pragma once
#include "nm.cuh"
#include "rest.cuh"

// A piece is 64 rows by 64 columns; four of them, of 256 rows, follow each other before the next columns.
#define PIECE_VALUES 4096 // bytes

// pieces24 is the pieces that a row has, fours24 the words of four places that a lane has.
__device__ __forceinline__ u32 pieces24(const Params &p) { return (p.groups + 15) / 16; }
__device__ __forceinline__ u32 fours24(const Params &p) { return (p.groups + 63) / 64; }

// EntriesGroup24 is Entries for this packing. The mask is the format's.
struct EntriesGroup24 {
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
        u32 count = 2 * p->groups, r = row % 64;
        const u32 *bits = mask + (u64)row * ((count + 31) / 32);
        u64 panel = row / 256, sub = row % 256 / 64;
        for (u32 slot = 0; slot < count; slot++) {
            if (!(bits[slot >> 5] >> (slot & 31) & 1)) continue;
            u32 piece = slot / 32, in = slot % 32;
            u16 value = values[((panel * pieces24(*p) + piece) * 4 + sub) * (PIECE_VALUES / 2) + in / 8 * 512 + r * 8 + in % 8];
            u32 word = index[(((panel * fours24(*p) + piece / 4) * 4 + sub) * 128 + r / 16 * 32 + r % 8 * 4 + in / 8) * 4 + piece % 4];
            u32 place = word >> (16 * (r / 8 % 2) + in % 8 * 2) & 3;
            s.add(to_float(value), to_float(b[(u64)(slot / 2 * 4 + place) * p->ldb + col]));
        }
    }
};
