// Computes: new values of a prepared A as residues or digits in planes of bytes (package rfx of formats: Planes,
// Sparse24), after phase 0 of kernel.cu found the rows' ranges. What a Sparse24 has no place for is written as f64 into
// its remainder.
// Tile: an entry a thread.
// Data movement: straight through registers, a byte to each plane. A thread finds its row by bisection.
// Bound by: memory bandwidth: a sector is written for each byte.

#include "params.h"
#include "entries.cuh"
#include "../include/residues.cuh"

#define ROWS 256 // of a plane there are a multiple of this

// place returns that of an element in a plane.
__device__ __forceinline__ size_t place(u32 row, u32 col, u32 lines) {
    return ((size_t)(col / 128) * lines + row) * 128 + (col % 128 ^ row % 8 << 4);
}

// residue returns that of q times the inverse of the modulus' weight, given its digits' weights, balanced.
__device__ __forceinline__ int residue(long long digits, u32 lo, u32 hi, u32 m) {
    u32 x = __dp4a((int)digits, (int)lo, (int)(multiple(m, 1 << 17) + m / 2)); // at most 6·2^14 are added or subtracted
    x = __dp4a((int)(digits >> 32 & 0xffff), (int)hi, (int)x);
    return (int)modulo(x, m, reciprocal(m)) - (int)(m / 2);
}

extern "C" __global__ void __launch_bounds__(128)
    requantise(const void *__restrict__ values, const u32 *__restrict__ slots, u32 *rows, char *ints, const Params p) {
    u32 e = (blockIdx.x + blockIdx.z * p.width) * p.per + threadIdx.x;
    if (e >= p.n) return;
    u32 row = row_of(rows, e, p.count), lines = (p.count + ROWS - 1) / ROWS * ROWS;
    long long q = quantise(load(values, e, p.elem), unit(rows[2 * (size_t)row + 1], p.bits));
    constexpr long long HALVES = 0x808080808080ll;
    long long digits = (q + HALVES) ^ HALVES;
    size_t plane = (size_t)p.blocks * lines * 128;
    char *to = ints;
    if (p.tile > 0) { // 2:4
        u32 at = slots[e];
        if (at >> 31) {
            *(double *)(rows + p.tile + 4 * (size_t)(at & 0x7fffffffu) + 2) = (double)q;
            return;
        }
        to += at, plane /= 2;
    } else {
        to += place(row, rows[p.columns + e], lines);
    }
    if (p.weights == 0) { // two digits
        to[0] = (char)digits, to[plane] = (char)(digits >> 8);
        return;
    }
    const u32 *weights = rows + p.weights;
#pragma unroll
    for (int i = 0; i < MOST_MODULI; i++)
        if (i < p.planes) to[i * plane] = (char)residue(digits, weights[2 * i], weights[2 * i + 1], modulus(i));
}
