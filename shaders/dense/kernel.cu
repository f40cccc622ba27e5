// Dense × dense on tensor cores, f16 and bf16.
//
// Four warps compute a tile of 64×64, each a quarter of 32×32. Steps of 32 places k are copied to shared memory as the
// operands lie, STAGES - 1 steps ahead; ldmatrix transposes those whose lines lie across.
//
// Compile-time constants: ENTRY, ELEM (half.cuh), ROWS = COLS = 64, STAGES.

#include "gemm.cuh"

#define STEP 32
#define LINE 40  // elements from a line to the next in shared memory: rows of ldmatrix meet no bank twice
#define PLACE 72 // from a place k to the next
#define TILE (ROWS * LINE)

// bring starts to copy places k to k + STEP of lines i to i + ROWS. What lies past the operand's end becomes 0.
__device__ __forceinline__ void bring(u32 to, const Operand &x, u32 i, u32 k, u32 cols) {
#pragma unroll
    for (u32 t = threadIdx.x; t < ROWS * STEP / 8; t += 128) {
        u32 line = x.along ? t / (STEP / 8) : t % (ROWS / 8) * 8, place = x.along ? t % (STEP / 8) * 8 : t / (ROWS / 8);
        int count = 0;
        if (i + line < x.lines && k + place < cols) count = x.along ? min(cols - k - place, 8) : 8;
        copy<16>(to + 2 * (x.along ? line * LINE + place : place * PLACE + line), count ? x.at(i + line, k + place) : x.x, 2 * count);
    }
}

// fragment loads four 8×8 matrices, of which the lane names a row of the one at line i and place k.
__device__ __forceinline__ void fragment(u32 (&x)[4], u32 from, bool along, u32 i, u32 k) {
    u32 at = threadIdx.x & 7;
    if (along) ldmatrix(x, from + 2 * ((i + at) * LINE + k));
    else ldmatrix_trans(x, from + 2 * ((k + at) * PLACE + i));
}

extern "C" __global__ void __launch_bounds__(128)
    ENTRY(const Elem *__restrict__ a, const Elem *__restrict__ b, const float *__restrict__ bias, void *__restrict__ c,
          const __grid_constant__ Params p) {
    __shared__ __align__(16) u16 tiles[STAGES][2][TILE];
    u32 row, col;
    if (!tile_at(p, row, col)) return;
    Operand l = left(a, b, p), r = right(a, b, p);
    u32 warp = threadIdx.x >> 5, lane = threadIdx.x & 31, down = warp >> 1 << 5, right = (warp & 1) << 5;
    u32 lower = lane >> 1 & 8, upper = lane & 8; // offsets of the lane's matrix: 16 to 31, and 8 to 15 or 24 to 31
    u32 base = shared_address(tiles);
    auto start = [&](u32 step) {
        u32 k = step * STEP, to = base + step % STAGES * (4 * TILE);
        if (k < p.cols) {
            bring(to, l, row, k, p.cols);
            bring(to + 2 * TILE, r, col, k, p.cols);
        }
        copy_commit();
    };
    float acc[2][4][4] = {};
    for (u32 s = 0; s + 1 < STAGES; s++) start(s);
    u32 steps = p.cols / STEP + (p.cols % STEP != 0);
    for (u32 s = 0; s < steps; s++) {
        copy_wait<STAGES - 2>();
        __syncthreads(); // the step is there, and nobody reads the one before it any more
        start(s + STAGES - 1);
        u32 from = base + s % STAGES * (4 * TILE);
#pragma unroll
        for (u32 k = 0; k < STEP; k += 16) {
            u32 x[2][4], y[2][4];
#pragma unroll
            for (int i = 0; i < 2; i++) {
                fragment(x[i], from, l.along, down + 16 * i + upper, k + lower);
                fragment(y[i], from + 2 * TILE, r.along, right + 16 * i + lower, k + upper);
            }
#pragma unroll
            for (int i = 0; i < 2; i++)
#pragma unroll
                for (int j = 0; j < 4; j++) mma<ELEM>(acc[i][j], x[i], y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1]);
        }
    }
    store_tiles<2, 4>(acc, {c, bias}, p, row + down, col + right, Again{a, b, &p});
}
