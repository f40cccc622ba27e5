// Computes: s = pattern ⊙ (x·yᵀ) for x and y of f32 or f64, scaled by a number for each entry if asked; x and y
// row-major; sums in the operands' type.
// Tile: 128 consecutive entries in each pass of a CTA, 16 of a warp, four of each eight lanes. A lane has every eighth
// 16 bytes of the rows, and a partial sum of each of the four entries.
// Data movement: rows of x and y by loads of 16 bytes, through L1: passes follow each other in the pattern, so that
// rows of y which neighbouring rows share are found there. A row of x is loaded once for four entries of the same row.
// Partial sums are exchanged by shuffles until each two lanes have the sum of one entry.
// Bound by: gathers of rows of y, from L2 or through L1.
// Constants: DOUBLE, for f64.

#include "params.h"
#include "entries.cuh"
#ifdef DOUBLE
typedef double Sum;
#define WIDTH 2  // elements of 16 bytes
#define BLOCKS 3 // CTAs of a multiprocessor
#else
typedef float Sum;
#define WIDTH 4
#define BLOCKS 4
#endif
#define EACH 4   // entries of eight lanes
#define PASS 128 // entries of a pass

// add returns sum plus the products of 16 bytes.
__device__ __forceinline__ Sum add(Sum sum, uint4 a, uint4 b) {
#ifdef DOUBLE
    sum = fma(__hiloint2double(a.y, a.x), __hiloint2double(b.y, b.x), sum);
    return fma(__hiloint2double(a.w, a.z), __hiloint2double(b.w, b.z), sum);
#else
    sum = fmaf(__uint_as_float(a.x), __uint_as_float(b.x), sum);
    sum = fmaf(__uint_as_float(a.y), __uint_as_float(b.y), sum);
    sum = fmaf(__uint_as_float(a.z), __uint_as_float(b.z), sum);
    return fmaf(__uint_as_float(a.w), __uint_as_float(b.w), sum);
#endif
}

// gathered returns, in two lanes each, the sums over eight lanes of entry part / 2.
__device__ __forceinline__ Sum gathered(const Sum (&sum)[EACH], u32 part) {
    bool up = part & 4;
    Sum a = up ? sum[2] : sum[0], b = up ? sum[3] : sum[1];
    a += __shfl_xor_sync(ALL, up ? sum[0] : sum[2], 4);
    b += __shfl_xor_sync(ALL, up ? sum[1] : sum[3], 4);
    up = part & 2;
    Sum c = (up ? b : a) + __shfl_xor_sync(ALL, up ? a : b, 2);
    return c + __shfl_xor_sync(ALL, c, 1);
}

extern "C" __global__ void __launch_bounds__(256, BLOCKS)
    sddmm(const u32 *__restrict__ rows, const u32 *__restrict__ cols, const uint4 *__restrict__ x,
          const uint4 *__restrict__ y, const Sum *__restrict__ scale, Sum *__restrict__ s, const Params p) {
    const u32 part = threadIdx.x % 8, ldx = p.ldx / WIDTH, ldy = p.ldy / WIDTH;
    u32 first = (blockIdx.x + blockIdx.z * p.width) * p.passes * PASS + threadIdx.x / 8 * EACH; // entry of the lanes
    for (u32 pass = 0; pass < p.passes && first - first % 16 < p.entries; pass++, first += PASS) {
        u32 r[EACH], c[EACH];
        entries<EACH>(r, rows, first, p.entries);
        entries<EACH>(c, cols, first, p.entries);
        bool same = r[0] == r[EACH - 1]; // rows ascend
        Sum sum[EACH] = {};
        for (u32 k = part; k * WIDTH < p.k; k += 8) {
            uint4 a[EACH], b[EACH];
#pragma unroll
            for (int e = 0; e < EACH; e++) b[e] = __ldg(y + (size_t)c[e] * ldy + k);
            a[0] = __ldg(x + (size_t)r[0] * ldx + k);
#pragma unroll
            for (int e = 1; e < EACH; e++) {
                a[e] = a[0];
                if (!same) a[e] = __ldg(x + (size_t)r[e] * ldx + k);
            }
            u32 left = p.k - k * WIDTH;
            if (left < WIDTH) {
#pragma unroll
                for (int e = 0; e < EACH; e++) {
                    a[e] = leading<WIDTH>(a[e], left);
                    b[e] = leading<WIDTH>(b[e], left);
                }
            }
#pragma unroll
            for (int e = 0; e < EACH; e++) sum[e] = add(sum[e], a[e], b[e]);
        }
        __syncwarp();
        Sum out = gathered(sum, part);
        u32 entry = first + part / 2;
        if (part % 2 == 0 && entry < p.entries) s[entry] = p.scaled ? out * scale[entry] : out;
    }
}
