// How a 2:4 matrix is packed for sparse warpgroup instructions: see groupSlot in sparse24.go.

#pragma once
#include "nm.cuh"
#include "remainder.cuh"
#include "../include/hopper_sparse.cuh"
#include "../include/orders.cuh"

// The matrix is stored in tiles of 64 rows by 64 columns. Four tiles, of 256 rows, follow each other before the next
// columns.
#define PIECE_VALUES 4096 // bytes of a tile's values

#define DEPTH 64 // columns of A of a stage
#define SLAB (DEPTH * 128) // bytes of 64 columns of B

// pieces24 returns the number of tiles along a row, fours24 the number of vectors of four words of places for a lane.
__device__ __forceinline__ u32 pieces24(const Params &p) { return (p.groups + 15) / 16; }
__device__ __forceinline__ u32 fours24(const Params &p) { return (p.groups + 63) / 64; }

// EntriesGroup24 is Entries for this packing. The mask is that of the format.
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
            u16 value =
                values[((panel * pieces24(*p) + piece) * 4 + sub) * (PIECE_VALUES / 2) + in / 8 * 512 + r * 8 + in % 8];
            u32 word =
                index[(((panel * fours24(*p) + piece / 4) * 4 + sub) * 128 + r / 16 * 32 + r % 8 * 4 + in / 8) * 4 +
                      piece % 4];
            u32 place = word >> (16 * (r / 8 % 2) + in % 8 * 2) & 3;
            s.add(to_float(value), to_float(b[place_in_b(*p, slot / 2 * 4 + place, col)]));
        }
    }
};

// load_places loads the lane's places of four steps. (The compiler does not move it before earlier instructions.)
__device__ __forceinline__ void load_places(u32 (&x)[4], const uint4 *from) {
    asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "l"(from)
                 : "memory");
}

// multiply_pieces starts to add the products of TALL tiles, from address a on in shared memory, and a slab of B.
// x[i][at] has the places of tile i. TRANS is 0 if B is column-major.
template <int TRANS, int TALL, int N>
__device__ __forceinline__ void multiply_pieces(float (&acc)[TALL][N][4], u32 a, u32 b, const u32 (&x)[TALL][4],
                                                int at) {
    constexpr u32 HALF = TRANS ? SLAB / 2 : DEPTH; // bytes from one half of the columns of A to the other
    wgmma_fence();
#pragma unroll
    for (int i = 0; i < TALL; i++)
        wgmma_sparse<ELEM, 0, TRANS>(acc[i], rows_of_8(a + i * PIECE_VALUES), swizzled(b, SLAB), x[i][at]);
#pragma unroll
    for (int i = 0; i < TALL; i++)
        wgmma_sparse<ELEM, 1, TRANS>(acc[i], rows_of_8(a + i * PIECE_VALUES + PIECE_VALUES / 2),
                                     swizzled(b + HALF, SLAB), x[i][at]);
    wgmma_commit();
}

// four_steps does steps, the places of the four after next on their way: look(four, places) loads them, and step(k,
// places, at, those of the step before, at) multiplies. The instructions read registers as they run, so these are not
// loaded before step has waited for who reads them.
template <int TALL, class L, class S>
__device__ __forceinline__ void four_steps(u32 steps, u32 (&places)[2][TALL][4], L look, S step) {
    if (steps > 0) look(0, places[0]);
    auto four = [&](u32 k, u32(&x)[TALL][4], u32(&y)[TALL][4]) {
        if (k >= steps) return;
        step(k, x, 0, y, 3);
        if (k + 4 < steps) look(k / 4 + 1, y);
        if (k + 1 < steps) step(k + 1, x, 1, x, 0);
        if (k + 2 < steps) step(k + 2, x, 2, x, 1);
        if (k + 3 < steps) step(k + 3, x, 3, x, 2);
    };
#pragma unroll 1
    for (u32 k = 0; k < steps; k += 8) {
        four(k, places[0], places[1]);
        four(k + 4, places[1], places[0]);
    }
    wgmma_wait<0>();
#pragma unroll
    for (int i = 0; i < TALL; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) wgmma_held(places[0][i][j]), wgmma_held(places[1][i][j]);
}
