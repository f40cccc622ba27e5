// Computes: s = pattern ⊙ (x·yᵀ) reproducibly for p = 15 and 23, where kernel.cu has brought the rows of x and y to
// integers, scaled by a number for each entry if asked.
// Tile: 128 consecutive entries in each pass of a CTA, 16 of a warp, four of each eight lanes, as in kernel sddmm.
// Data movement: integers by loads of 16 bytes. Sums of 64 bits, which no sum exceeds, are exchanged by shuffles until
// each two lanes have that of one entry, which one of them rounds.
// Bound by: gathers of rows, from L2 or through L1.

#include "params.h"
#include "../include/half.cuh"
#include "../include/fixed.cuh"
#include "element.cuh"

#define ALL 0xffffffffu
#define EACH 4   // entries of eight lanes
#define PASS 128 // entries of a pass

typedef long long i64;

// add returns sum plus the products of four integers.
__device__ __forceinline__ i64 add(i64 sum, uint4 a, uint4 b) {
    sum += (i64)(int)a.x * (int)b.x;
    sum += (i64)(int)a.y * (int)b.y;
    sum += (i64)(int)a.z * (int)b.z;
    return sum + (i64)(int)a.w * (int)b.w;
}

// gathered returns, in two lanes each, the sums over eight lanes of entry part / 2.
__device__ __forceinline__ i64 gathered(const i64 (&sum)[EACH], u32 part) {
    bool up = part & 4;
    i64 a = up ? sum[2] : sum[0], b = up ? sum[3] : sum[1];
    a += __shfl_xor_sync(ALL, up ? sum[0] : sum[2], 4);
    b += __shfl_xor_sync(ALL, up ? sum[1] : sum[3], 4);
    up = part & 2;
    i64 c = (up ? b : a) + __shfl_xor_sync(ALL, up ? a : b, 2);
    return c + __shfl_xor_sync(ALL, c, 1);
}

// class_of returns the class of the dot product of rows that have an element which is not finite.
__device__ __noinline__ u32 class_of(const void *x, const void *y, size_t row, size_t col, const Params &p) {
    u32 kind = 0;
    for (u32 k = 0; k < p.k; k++)
        kind |= product_class(element(x, row * p.ldx + k, p.elem), element(y, col * p.ldy + k, p.elem));
    return kind;
}

extern "C" __global__ void __launch_bounds__(256, 3)
    sddmmrfx(const u32 *__restrict__ rows, const u32 *__restrict__ cols, const void *__restrict__ x,
             const void *__restrict__ y, const u32 *__restrict__ factors, const u32 *__restrict__ ranges,
             u32 *__restrict__ s, const Params p) {
    const u32 part = threadIdx.x % 8, ld = p.ldq / 4;
    const uint4 *qx = (const uint4 *)(ranges + p.planes), *qy = qx + (size_t)p.base * ld;
    u32 first = (blockIdx.x + blockIdx.z * p.width) * p.passes * PASS + threadIdx.x / 8 * EACH; // entry of the lanes
    for (u32 pass = 0; pass < p.passes && first - first % 16 < p.items; pass++, first += PASS) {
        u32 r[EACH], c[EACH];
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            u32 at = min(first + e, p.items - 1);
            r[e] = __ldg(rows + at);
            c[e] = __ldg(cols + at);
        }
        bool same = r[0] == r[EACH - 1]; // rows ascend
        i64 sum[EACH] = {};
        for (u32 k = part; k < ld; k += 8) {
            uint4 a[EACH], b[EACH];
#pragma unroll
            for (int e = 0; e < EACH; e++) b[e] = __ldg(qy + (size_t)c[e] * ld + k);
            a[0] = __ldg(qx + (size_t)r[0] * ld + k);
#pragma unroll
            for (int e = 1; e < EACH; e++) {
                a[e] = a[0];
                if (!same) a[e] = __ldg(qx + (size_t)r[e] * ld + k);
            }
#pragma unroll
            for (int e = 0; e < EACH; e++) sum[e] = add(sum[e], a[e], b[e]);
        }
        __syncwarp();
        i64 total = gathered(sum, part);
        u32 entry = first + part / 2;
        if (part % 2 != 0 || entry >= p.items) continue;
        u32 row = rows[entry], col = cols[entry], rx = ranges[row], ry = ranges[p.base + col];
        u32 kind = ((rx | ry) & WILD) != 0 ? class_of(x, y, row, col, p) : 0;
        u32 out = kind != 0 ? class_value(kind) : rounded(total, unit(rx, p.bits) + unit(ry, p.bits));
        s[entry] = p.scaled ? scale(factors[entry], out, 0, 0) : out;
    }
}
