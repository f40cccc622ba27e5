// Computes: C (rows × n) = alpha·A·B + beta·C, dense, f32 on CUDA cores or tf32 on tensor cores (TF32).
// Tile: a CTA of 128 threads computes (64 × 64).
// Data movement: steps of 16 of k go through registers to shared memory, where both operands lie across: for each k,
// the elements of 64 lines are neighbours. The next step is loaded while one is multiplied.
// Bound by: FMA, or shared memory with TF32.
// Constants: ENTRY, ELEM (half.cuh), ROWS = COLS = 64, TF32.

#include "gemm.cuh"
#include "../include/tf32.cuh"

#define STEP 16
#define PITCH 72 // elements from one k to the next
#define LOADS 2 // loads of four elements by a thread for a step

// Share is the elements of a step of an operand that one thread loads.
struct Share {
    float4 v[LOADS];
};

// place_of and line_of return the k and the line, within the tile, of the first element of the thread's load i.
__device__ __forceinline__ u32 place_of(const Operand &x, int i) {
    u32 t = threadIdx.x + 128 * i;
    return x.along ? t / ROWS * 4 : t / (ROWS / 4);
}
__device__ __forceinline__ u32 line_of(const Operand &x, int i) {
    u32 t = threadIdx.x + 128 * i;
    return x.along ? t % ROWS : t % (ROWS / 4) * 4;
}

// fetch loads the thread's share of the step from k on, of the lines from i on. Elements past the operand's end are 0.
__device__ __forceinline__ void fetch(Share &s, const Operand &x, u32 i, u32 k, u32 cols) {
#pragma unroll
    for (int t = 0; t < LOADS; t++) {
        u32 line = i + line_of(x, t), place = k + place_of(x, t);
        float4 v = make_float4(0, 0, 0, 0);
        if (line < x.lines && place < cols) {
            v = __ldg((const float4 *)x.at(line, place));
            if (x.along) { // leading dimensions are multiples of 8: elements past a line can be read, but are not 0
                if (place + 1 >= cols) v.y = 0;
                if (place + 2 >= cols) v.z = 0;
                if (place + 3 >= cols) v.w = 0;
            }
        }
        s.v[t] = v;
    }
}

// put writes the share to shared memory.
__device__ __forceinline__ void put(float (&to)[STEP][PITCH], const Share &s, const Operand &x) {
#pragma unroll
    for (int t = 0; t < LOADS; t++) {
        u32 line = line_of(x, t), place = place_of(x, t);
        float4 v = s.v[t];
        if (!x.along) {
            *(float4 *)&to[place][line] = v;
            continue;
        }
        to[place][line] = v.x;
        to[place + 1][line] = v.y;
        to[place + 2][line] = v.z;
        to[place + 3][line] = v.w;
    }
}

#if TF32
// Sums of a warp's quarter of the tile, 32 × 32.
struct Sums {
    float acc[2][4][4] = {};
    u32 down, right;

    __device__ __forceinline__ Sums() : down(threadIdx.x >> 6 << 5), right(threadIdx.x & 32) {}
    __device__ __forceinline__ void step(const float (&x)[STEP][PITCH], const float (&y)[STEP][PITCH]) {
        u32 g = (threadIdx.x & 31) >> 2, q = threadIdx.x & 3;
#pragma unroll
        for (u32 k = 0; k < STEP; k += 8) {
            u32 v[2][4], w[4][2];
#pragma unroll
            for (int e = 0; e < 4; e++)
#pragma unroll
                for (int i = 0; i < 2; i++)
                    v[i][e] = tf32(__float_as_uint(x[k + q + e / 2 * 4][down + 16 * i + e % 2 * 8 + g]));
#pragma unroll
            for (int e = 0; e < 2; e++)
#pragma unroll
                for (int j = 0; j < 4; j++) w[j][e] = tf32(__float_as_uint(y[k + q + 4 * e][right + 8 * j + g]));
#pragma unroll
            for (int i = 0; i < 2; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) mma8(acc[i][j], v[i][0], v[i][1], v[i][2], v[i][3], w[j][0], w[j][1]);
        }
    }
    template <class F> __device__ __forceinline__ void store(Dest to, const Params &p, u32 row, u32 col, F recompute) {
        store_tiles<2, 4>(acc, to, p, row + down, col + right, recompute);
    }
};
#else
// Sums of a thread's 8 rows × 4 columns.
struct Sums {
    float acc[8][4] = {};
    u32 down, right;

    __device__ __forceinline__ Sums() : down(threadIdx.x / 16 * 8), right(threadIdx.x % 16 * 4) {}
    __device__ __forceinline__ void step(const float (&x)[STEP][PITCH], const float (&y)[STEP][PITCH]) {
#pragma unroll
        for (u32 k = 0; k < STEP; k++) {
            float4 lo = *(const float4 *)&x[k][down], hi = *(const float4 *)&x[k][down + 4],
                   w = *(const float4 *)&y[k][right];
            float v[8] = {lo.x, lo.y, lo.z, lo.w, hi.x, hi.y, hi.z, hi.w};
#pragma unroll
            for (int i = 0; i < 8; i++) {
                acc[i][0] = fmaf(v[i], w.x, acc[i][0]);
                acc[i][1] = fmaf(v[i], w.y, acc[i][1]);
                acc[i][2] = fmaf(v[i], w.z, acc[i][2]);
                acc[i][3] = fmaf(v[i], w.w, acc[i][3]);
            }
        }
    }
    template <class F> __device__ __forceinline__ void store(Dest to, const Params &p, u32 row, u32 col, F recompute) {
        Out<Params> out(to, p);
#pragma unroll
        for (int i = 0; i < 8; i++)
            out.store(row + down + i, col + right, make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]), recompute);
    }
};
#endif

extern "C" __global__ void __launch_bounds__(128)
    ENTRY(const float *__restrict__ a, const u32 *__restrict__ stored, const float *__restrict__ b,
          const float *__restrict__ bias, void *__restrict__ c, float *__restrict__, const __grid_constant__ Params p) {
    __shared__ __align__(16) float tiles[2][2][STEP][PITCH];
    u32 row = (blockIdx.x + blockIdx.z * p.width) / p.across * ROWS,
        col = (blockIdx.x + blockIdx.z * p.width) % p.across * COLS;
    if (row >= p.rows) return;
    Operand l = left(a, b, p), r = right(a, b, p);
    Sums sums;
    Share x, y;
    if (p.cols) fetch(x, l, row, 0, p.cols), fetch(y, r, col, 0, p.cols);
    for (u32 k = 0, half = 0; k < p.cols; k += STEP, half ^= 1) {
        put(tiles[half][0], x, l);
        put(tiles[half][1], y, r);
        __syncthreads(); // Nobody reads the other half any more: all did that before they came here.
        if (k + STEP < p.cols) fetch(x, l, row, k + STEP, p.cols), fetch(y, r, col, k + STEP, p.cols);
        sums.step(tiles[half][0], tiles[half][1]);
    }
    sums.store({c, bias}, p, row, col, Recompute{a, b, stored, &p});
}
