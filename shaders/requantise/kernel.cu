// Computes: new values of a prepared A in RFX-p's fixed point (requantise.go). Phase 0 finds the rows' ranges, phase 1
// writes the integers.
// Tile: phase 0 some lanes for each row, phase 1 four entries a thread.
// Data movement: straight through registers. Phase 1 finds an entry's row by bisection.
// Bound by: memory bandwidth.

#include "params.h"
#include "entries.cuh"

#define STRIPS 0xffffffffu // the parameter tile for strips, see requantise.go
#define PAIRS 0xfffffffeu // for pairs

extern "C" __global__ void __launch_bounds__(128)
    requantise(const void *__restrict__ values, const u32 *__restrict__ slots, u32 *rows, u32 *ints, const Params p) {
    __shared__ u32 found[128];
    u32 me = threadIdx.x, number = blockIdx.x + blockIdx.z * p.width;
    if (p.phase == 0) {
        u32 lane = me & (p.lanes - 1), row = number * p.per + me / p.lanes, r = 0;
        u32 *at = rows + 2 * (size_t)row;
        if (row < p.count) {
            u32 end = at[2];
            for (u32 e = at[0] + lane; e < end; e += p.lanes) r = join(r, range_of(load(values, e, p.elem)));
        }
        found[me] = r;
        for (u32 s = p.lanes / 2; s > 0; s /= 2) {
            __syncthreads();
            if (lane < s) found[me] = join(found[me], found[me + s]);
        }
        if (lane == 0 && row < p.count) at[1] = found[me];
        return;
    }
    u32 four = number * p.per + me;
    if (four >= p.fours) return;
    long long q[4];
    u32 row = 0, end = 0; // the row of the entries before end
#pragma unroll
    for (int k = 0; k < 4; k++) {
        q[k] = 0;
        u32 e = 4 * four + k;
        if (p.tile > 0 && p.tile < PAIRS) e = slots[e] - 1;
        if (e >= p.n) continue;
        if (e >= end || e < rows[2 * (size_t)row]) {
            row = row_of(rows, e, p.count);
            end = rows[2 * (size_t)row + 2];
        }
        q[k] = quantise(load(values, e, p.elem), unit(rows[2 * (size_t)row + 1], p.bits));
    }
    // Balanced digits of 8 bits from a byte on: in words 128 bytes apart (rfx.Strips), or two bytes apart (rfx.Pairs).
    if (p.tile >= PAIRS) {
#pragma unroll
        for (int k = 0; k < 4; k++) {
            if (4 * four + k >= p.n) return;
            const long long half = 0x808080808080;
            long long d = (q[k] + half) ^ half;
            u32 at = slots[4 * four + k];
            for (u32 j = 0; j < (p.bits + 1) / 8; j++, d >>= 8) {
                ((unsigned char *)ints)[at++] = (unsigned char)d;
                if (p.tile == PAIRS) at++;
                else if (at % 4 == 0) at += 124;
            }
        }
        return;
    }
    if (p.tile > 0) { // digits of 8 bits: see package rfx
        u32 bytes = (p.bits + 1) / 8, lower = 0x808080u >> 8 * (4 - bytes);
        u32 *to = ints + (size_t)(four / p.tile) * bytes * p.tile + four % p.tile;
        for (u32 j = 0; j < bytes; j++) {
            u32 word = 0;
#pragma unroll
            for (int k = 0; k < 4; k++) word |= ((((u32)q[k] + lower) ^ lower) >> 8 * j & 0xffu) << 8 * k;
            to[(size_t)j * p.tile] = word;
        }
        return;
    }
    if (p.bits == 15) {
        ((uint2 *)ints)[four] =
            make_uint2(((u32)q[0] & 0xffffu) | (u32)q[1] << 16, ((u32)q[2] & 0xffffu) | (u32)q[3] << 16);
    } else if (p.bits != 47) {
        ((uint4 *)ints)[four] = make_uint4((u32)q[0], (u32)q[1], (u32)q[2], (u32)q[3]);
    } else {
        u32 d[8]; // balanced digits of 24 bits, the lower first
#pragma unroll
        for (int k = 0; k < 4; k++) {
            int lo = (int)((u32)q[k] << 8) >> 8;
            d[2 * k] = (u32)lo;
            d[2 * k + 1] = (u32)(int)((q[k] - lo) >> 24);
        }
        ((uint4 *)ints)[2 * (size_t)four] = make_uint4(d[0], d[1], d[2], d[3]);
        ((uint4 *)ints)[2 * (size_t)four + 1] = make_uint4(d[4], d[5], d[6], d[7]);
    }
}
