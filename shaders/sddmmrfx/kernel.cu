// Computes: s = pattern ⊙ (x·yᵀ) reproducibly in fixed point (RFX-p), scaled by a number for each entry if asked; x and
// y row-major (sddmmrfx.go). Phase 0 finds the ranges of the rows of x and y, and brings them to integers if asked.
// Tile: eight lanes a row in phase 0, an entry in phase 2.
// Data movement: in phase 0 four elements a lane, twice if they become integers. In phase 2 elements straight to
// registers, where they become integers; sums meet by shuffles.
// Bound by: memory in phase 0, integer arithmetic in phase 2.

#include "params.h"
#include "../include/half.cuh"
#include "../include/fixed.cuh"
#include "element.cuh"

#define ALL 0xffffffffu
#define LANES 8

// kept returns four elements of a row from k on, with zeros behind the row's end.
__device__ __forceinline__ uint4 kept(const void *m, size_t row, u32 ld, u32 k, const Params &p) {
    uint4 v = four(m, row * ld + k, p.elem);
    return make_uint4(v.x, k + 1 < p.k ? v.y : 0, k + 2 < p.k ? v.z : 0, k + 3 < p.k ? v.w : 0);
}

// prepare writes the range of a row of m, if the item is one, and its integers.
__device__ __forceinline__ void prepare(u32 *range, int4 *to, const void *m, u32 row, u32 ld, bool in,
                                        const Params &p) {
    u32 part = threadIdx.x % LANES * 4, r = 0;
    if (in)
        for (u32 k = part; k < p.k; k += 4 * LANES) {
            uint4 v = kept(m, row, ld, k, p);
            r = join(join(r, range_of(v.x)), join(range_of(v.y), join(range_of(v.z), range_of(v.w))));
        }
    for (u32 d = LANES / 2; d > 0; d /= 2) r = join(r, __shfl_xor_sync(ALL, r, d));
    if (!in) return;
    if (part == 0) *range = r;
    if (p.planes == 0) return;
    int l = unit(r, p.bits);
    for (u32 k = part; k < p.k; k += 4 * LANES) {
        uint4 v = kept(m, row, ld, k, p);
        to[k / 4] = make_int4(quantise(v.x, l), quantise(v.y, l), quantise(v.z, l), quantise(v.w, l));
    }
}

extern "C" __global__ void __launch_bounds__(128)
    sddmmrfx(const u32 *__restrict__ rows, const u32 *__restrict__ cols, const void *__restrict__ x,
             const void *__restrict__ y, const u32 *__restrict__ factors, u32 *ranges, u32 *s, const Params p) {
    u32 part = threadIdx.x % LANES;
    u32 item = (blockIdx.x + blockIdx.z * p.width) * (128 / LANES) + threadIdx.x / LANES;
    bool in = item < p.items;
    if (p.phase == 0) {
        int4 *to = (int4 *)(ranges + p.planes) + (size_t)item * (p.ldq / 4);
        bool of_x = item < p.base;
        prepare(ranges + item, to, of_x ? x : y, of_x ? item : item - p.base, of_x ? p.ldx : p.ldy, in, p);
        return;
    }
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
