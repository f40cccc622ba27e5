// Computes: s = pattern ⊙ (x·yᵀ) reproducibly in fixed point (RFX-p), scaled by a number for each entry if asked; x and
// y row-major (sddmmrfx.go). Phases 0 and 1 find the ranges of the rows of x and y.
// Tile: eight lanes a row in phases 0 and 1, an entry in phase 2.
// Data movement: elements straight to registers, where they become integers; sums meet by shuffles.
// Bound by: integer arithmetic.

#include "params.h"
#include "../include/half.cuh"
#include "../include/fixed.cuh"

typedef unsigned int u32;

#define ALL 0xffffffffu
#define LANES 8

// element returns the f32 bits of element i of m.
__device__ __forceinline__ u32 element(const void *m, size_t i, u32 elem) {
    if (elem == F32) return ((const u32 *)m)[i];
    u32 h = ((const unsigned short *)m)[i];
    return elem == BF16 ? h << 16 : __float_as_uint(widen_lo<F16>(h));
}

// find_range writes the range of a row of m, if the item is one.
__device__ __forceinline__ void find_range(u32 *to, const void *m, u32 row, u32 ld, bool in, const Params &p) {
    u32 part = threadIdx.x % LANES, r = 0;
    if (in)
        for (u32 k = part; k < p.k; k += LANES) r = join(r, range_of(element(m, (size_t)row * ld + k, p.elem)));
    for (u32 d = LANES / 2; d > 0; d /= 2) r = join(r, __shfl_xor_sync(ALL, r, d));
    if (in && part == 0) to[row] = r;
}

extern "C" __global__ void __launch_bounds__(128)
    sddmmrfx(const u32 *__restrict__ rows, const u32 *__restrict__ cols, const void *__restrict__ x,
             const void *__restrict__ y, const u32 *__restrict__ factors, u32 *ranges, u32 *s, const Params p) {
    u32 part = threadIdx.x % LANES;
    u32 item = (blockIdx.x + blockIdx.z * p.width) * (128 / LANES) + threadIdx.x / LANES;
    bool in = item < p.items;
    if (p.phase == 0) find_range(ranges, x, item, p.ldx, in, p);
    if (p.phase == 1) find_range(ranges + p.base, y, item, p.ldy, in, p);
    if (p.phase != 2) return;
    int lx = 0, ly = 0;
    u32 kind = 0;
    i128 sum = 0;
    if (in) {
        u32 row = rows[item], col = cols[item], rx = ranges[row], ry = ranges[p.base + col];
        bool wild = ((rx | ry) & WILD) != 0;
        lx = unit(rx, p.bits);
        ly = unit(ry, p.bits);
        for (u32 k = part; k < p.k; k += LANES) {
            u32 a = element(x, (size_t)row * p.ldx + k, p.elem), b = element(y, (size_t)col * p.ldy + k, p.elem);
            sum += (i128)quantise(a, lx) * quantise(b, ly);
            if (wild) kind |= product_class(a, b);
        }
    }
    for (u32 d = LANES / 2; d > 0; d /= 2) {
        long long hi = __shfl_xor_sync(ALL, (long long)(sum >> 64), d), lo = __shfl_xor_sync(ALL, (long long)sum, d);
        sum += (i128)hi << 64 | (unsigned long long)lo;
        kind |= __shfl_xor_sync(ALL, kind, d);
    }
    if (!in || part != 0) return;
    u32 out = kind != 0 ? class_value(kind) : rounded(sum, lx + ly);
    s[item] = p.scaled ? scale(factors[item], out, 0, 0) : out;
}
