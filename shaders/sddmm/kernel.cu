// Computes: s = pattern ⊙ (x·yᵀ), scaled by a number for each entry if asked; x and y row-major; sums in f32, or f64.
// Tile: 32 consecutive entries a warp, eight for each eight lanes. A lane has every eighth 16 bytes of the rows, and a
// partial sum of each of the eight entries.
// Data movement: rows of y by loads of 16 bytes, eight of them in flight for each lane. A row of x is loaded once for
// eight entries of the same row. Partial sums are exchanged by shuffles until each lane has the sum of one entry.
// Bound by: gathers of rows of y from L2.
// Constants: ELEM, or DOUBLE.

#include "params.h"
#ifdef DOUBLE
typedef unsigned int u32;
typedef double Sum;
#define WIDTH 2 // elements of 16 bytes
#else
#include "../include/half.cuh"
typedef unsigned int u32;
typedef float Sum;
#define WIDTH (ELEM == F32 ? 4 : 8)
#endif
#define ALL 0xffffffffu
#define LANES 8 // that share entries; also the entries

// add returns sum plus the products of a word, or of two for f64.
__device__ __forceinline__ Sum add(Sum sum, uint4 a, uint4 b) {
    u32 x[4] = {a.x, a.y, a.z, a.w}, y[4] = {b.x, b.y, b.z, b.w};
#ifdef DOUBLE
#pragma unroll
    for (int i = 0; i < 4; i += 2)
        sum = fma(__hiloint2double(x[i + 1], x[i]), __hiloint2double(y[i + 1], y[i]), sum);
#else
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (ELEM == F32) {
            sum = fmaf(__uint_as_float(x[i]), __uint_as_float(y[i]), sum);
            continue;
        }
        sum = fmaf(widen_lo<ELEM>(x[i]), widen_lo<ELEM>(y[i]), sum);
        sum = fmaf(widen_hi<ELEM>(x[i]), widen_hi<ELEM>(y[i]), sum);
    }
#endif
    return sum;
}

// first returns 16 bytes with zeros in place of all elements but the first n.
__device__ __forceinline__ uint4 first(uint4 v, u32 n) {
    u32 w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        u32 bytes = n * (16 / WIDTH); // that stay
        if (4 * i >= bytes) w[i] = 0;
        else if (4 * i + 2 == bytes) w[i] &= 0xffff;
    }
    return make_uint4(w[0], w[1], w[2], w[3]);
}

extern "C" __global__ void __launch_bounds__(128)
    sddmm(const u32 *__restrict__ rows, const u32 *__restrict__ cols, const uint4 *__restrict__ x,
          const uint4 *__restrict__ y, const Sum *__restrict__ scale, Sum *__restrict__ s, const Params p) {
    u32 entry = (blockIdx.x + blockIdx.z * p.width) * 128 + threadIdx.x, part = threadIdx.x % LANES;
    u32 at = min(entry, p.entries - 1); // lanes past the last entry compute it again
    u32 row = rows[at], col = cols[at];
    u32 r[LANES], c[LANES];
    Sum sum[LANES];
#pragma unroll
    for (int e = 0; e < LANES; e++) {
        r[e] = __shfl_sync(ALL, row, e, LANES);
        c[e] = __shfl_sync(ALL, col, e, LANES);
        sum[e] = 0;
    }
    bool same = r[0] == r[LANES - 1]; // rows ascend
    u32 ldx = p.ldx / WIDTH, ldy = p.ldy / WIDTH;
    for (u32 k = part; k * WIDTH < p.k; k += LANES) {
        u32 left = p.k - k * WIDTH;
        uint4 a[LANES], b[LANES];
#pragma unroll
        for (int e = 0; e < LANES; e++) b[e] = __ldg(y + (size_t)c[e] * ldy + k);
        a[0] = __ldg(x + (size_t)r[0] * ldx + k);
#pragma unroll
        for (int e = 1; e < LANES; e++) {
            a[e] = a[0];
            if (!same) a[e] = __ldg(x + (size_t)r[e] * ldx + k);
        }
        if (left < WIDTH) {
#pragma unroll
            for (int e = 0; e < LANES; e++) {
                a[e] = first(a[e], left);
                b[e] = first(b[e], left);
            }
        }
#pragma unroll
        for (int e = 0; e < LANES; e++) sum[e] = add(sum[e], a[e], b[e]);
    }
    __syncwarp();
#pragma unroll
    for (int d = LANES / 2; d > 0; d /= 2) {
        bool upper = part & d;
#pragma unroll
        for (int i = 0; i < d; i++) {
            Sum keep = upper ? sum[i + d] : sum[i], give = upper ? sum[i] : sum[i + d];
            sum[i] = keep + __shfl_xor_sync(ALL, give, d);
        }
    }
    if (entry >= p.entries) return;
    s[entry] = p.scaled ? sum[0] * scale[entry] : sum[0];
}
