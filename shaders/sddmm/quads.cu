// Computes: s = pattern ⊙ (x·yᵀ) for x and y of f16 or bf16, scaled by a number for each entry if asked; x and y
// row-major; sums in f32.
// Tile: 64 consecutive entries in each pass of a CTA, eight of a warp, one of each quad. An MMA of 16×8×16 multiplies
// eight rows of x, of the eight entries, and the eight rows of y: the diagonal of its result has the entries' sums.
// Data movement: a lane loads 16 bytes of a row of x and of y for two MMAs: their k are in another order than the
// elements, the same in x and y. The next pass's rows and columns are loaded a pass ahead. Passes follow each other in
// the pattern, so that rows of y which neighbouring rows share are found in L1.
// Bound by: gathers of rows of y, from L2 or through L1; short rows: latency.
// Constants: ELEM.

#include "params.h"
#include "../include/units.cuh"
#include "entries.cuh"

#define WIDTH 8 // elements of 16 bytes
#define STEP 32 // elements of a row that a quad multiplies at once
#define PASS 64 // entries of a pass

// multiply adds the products of 16 bytes of each row.
__device__ __forceinline__ void multiply(float (&sum)[4], uint4 a, uint4 b) {
    mma<ELEM>(sum, {a.x, 0, a.y, 0}, b.x, b.y);
    mma<ELEM>(sum, {a.z, 0, a.w, 0}, b.z, b.w);
}

extern "C" __global__ void __launch_bounds__(256, 6)
    sddmm(const u32 *__restrict__ rows, const u32 *__restrict__ cols, const uint4 *__restrict__ x,
          const uint4 *__restrict__ y, const float *__restrict__ scale, float *__restrict__ s, const Params p) {
    const u32 part = threadIdx.x % 4, quad = threadIdx.x % 32 / 4, ldx = p.ldx / WIDTH, ldy = p.ldy / WIDTH;
    u32 entry = (blockIdx.x + blockIdx.z * p.width) * p.passes * PASS + threadIdx.x / 4;
    u32 row[1], col[1], next_row[1], next_col[1];
    entries<1>(row, rows, entry, p.entries);
    entries<1>(col, cols, entry, p.entries);
    for (u32 pass = 0; pass < p.passes && entry - quad < p.entries; pass++, entry += PASS) {
        entries<1>(next_row, rows, entry + PASS, p.entries);
        entries<1>(next_col, cols, entry + PASS, p.entries);
        float sum[4] = {};
        const uint4 *from_x = x + (size_t)row[0] * ldx + part, *from_y = y + (size_t)col[0] * ldy + part;
        u32 k = 0;
        for (; k + STEP <= p.k; k += STEP, from_x += 4, from_y += 4) multiply(sum, __ldg(from_x), __ldg(from_y));
        if (k < p.k) {
            uint4 a = make_uint4(0, 0, 0, 0), b = a;
            if (k + part * WIDTH < p.k) {
                u32 left = min(p.k - k - part * WIDTH, WIDTH);
                a = leading<WIDTH>(__ldg(from_x), left);
                b = leading<WIDTH>(__ldg(from_y), left);
            }
            __syncwarp();
            multiply(sum, a, b);
        }
        if (part == quad / 2 && entry < p.entries) {
            float out = quad % 2 ? sum[1] : sum[0];
            s[entry] = p.scaled ? out * scale[entry] : out;
        }
        row[0] = next_row[0];
        col[0] = next_col[0];
    }
}
