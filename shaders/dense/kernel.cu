// Computes: C (rows × n) = alpha·A·B + beta·C, dense, f16 or bf16, sums in f32, on the tensor cores of compute
// capability 8.0 (mma.m16n8k16).
// Tile: a CTA computes (ROWS × COLS), a warp (WARP_ROWS × WARP_COLS).
// Data movement: steps of 32 of k are loaded by cp.async, in the layout of the operands, STAGES - 1 steps ahead.
// ldmatrix transposes an operand that lies across.
// Bound by: tensor cores for large C, memory bandwidth for few columns.
// Constants: ENTRY, ELEM (half.cuh), ROWS, COLS, WARP_ROWS and WARP_COLS (multiples of 16), STAGES. Dynamic shared
// memory: STAGES · (ROWS + COLS) · 80 bytes.

#include "work_tiles.cuh"

#define STEP 32
#define LINE 40 // elements from a line to the next in shared memory: the rows of an ldmatrix are in different banks
#define PLACE(LINES) (LINES + 8) // elements from one k to the next, if the operand lies across
#define THREADS (ROWS / WARP_ROWS * (COLS / WARP_COLS) * 32)
#define STAGE ((ROWS + COLS) * LINE)
#define DOWN (WARP_ROWS / 16)
#define ACROSS (WARP_COLS / 8)

// load_stage starts to copy k to k + STEP of lines i to i + LINES. Elements past the operand's end become 0.
template <int LINES> __device__ __forceinline__ void load_stage(u32 to, const Operand &x, u32 i, u32 k, u32 cols) {
#pragma unroll
    for (u32 t = threadIdx.x; t < LINES * STEP / 8; t += THREADS) {
        u32 line = x.along ? t / (STEP / 8) : t % (LINES / 8) * 8,
            place = x.along ? t % (STEP / 8) * 8 : t / (LINES / 8);
        int count = 0;
        if (i + line < x.lines && k + place < cols) count = x.along ? min(cols - k - place, 8) : 8;
        copy<16>(to + 2 * (x.along ? line * LINE + place : place * PLACE(LINES) + line),
                 count ? x.at(i + line, k + place) : x.x, 2 * count);
    }
}

// fragment loads four 8×8 matrices. The lane gives the address of a row of one of them, which begins at line i and k.
template <int LINES> __device__ __forceinline__ void fragment(u32 (&x)[4], u32 from, bool along, u32 i, u32 k) {
    u32 at = threadIdx.x & 7;
    if (along) ldmatrix(x, from + 2 * ((i + at) * LINE + k));
    else ldmatrix_trans(x, from + 2 * ((k + at) * PLACE(LINES) + i));
}

extern "C" __global__ void __launch_bounds__(THREADS)
    ENTRY(const Elem *__restrict__ a, const u32 *__restrict__ stored, const Elem *__restrict__ b,
          const float *__restrict__ bias, void *__restrict__ c, float *__restrict__ work,
          const __grid_constant__ Params p) {
    extern __shared__ __align__(16) u16 tiles[];
    WorkTile work_tile = work_tile_at(blockIdx.x + blockIdx.z * p.width, p.cols / STEP + (p.cols % STEP != 0), p);
    u32 row = work_tile.tile / p.across * ROWS, col = work_tile.tile % p.across * COLS;
    if (row >= p.rows) return;
    Operand l = left(a, b, p), r = right(a, b, p);
    u32 warp = threadIdx.x >> 5, lane = threadIdx.x & 31, down = warp / (COLS / WARP_COLS) * WARP_ROWS,
        right = warp % (COLS / WARP_COLS) * WARP_COLS;
    u32 lower = lane >> 1 & 8, upper = lane & 8; // 8 in lanes 16 to 31; 8 in lanes 8 to 15 and 24 to 31
    u32 base = shared_address(tiles);
    auto start = [&](u32 step) {
        u32 k = step * STEP, to = base + step % STAGES * (2 * STAGE);
        if (step < work_tile.last) {
            load_stage<ROWS>(to, l, row, k, p.cols);
            load_stage<COLS>(to + 2 * ROWS * LINE, r, col, k, p.cols);
        }
        copy_commit();
    };
    float acc[DOWN][ACROSS][4] = {};
    for (u32 s = 0; s + 1 < STAGES; s++) start(work_tile.first + s);
    for (u32 s = work_tile.first; s < work_tile.last; s++) {
        copy_wait<STAGES - 2>();
        __syncthreads(); // the step is loaded, and nobody reads the one before it any more
        start(s + STAGES - 1);
        u32 from = base + s % STAGES * (2 * STAGE);
#pragma unroll
        for (u32 k = 0; k < STEP; k += 16) {
            u32 x[DOWN][4], y[ACROSS / 2][4];
#pragma unroll
            for (int i = 0; i < DOWN; i++) fragment<ROWS>(x[i], from, l.along, down + 16 * i + upper, k + lower);
#pragma unroll
            for (int j = 0; j < ACROSS / 2; j++)
                fragment<COLS>(y[j], from + 2 * ROWS * LINE, r.along, right + 16 * j + lower, k + upper);
#pragma unroll
            for (int i = 0; i < DOWN; i++)
#pragma unroll
                for (int j = 0; j < ACROSS; j++)
                    mma<ELEM>(acc[i][j], x[i], y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1]);
        }
    }
    Recompute recompute{a, b, stored, &p};
    if (work_tile.is_split)
        store_split_k<THREADS>(acc, {c, bias}, p, p.splits, row + down, col + right, work_tile.slot, work_tile.split, 0,
                               work, recompute);
    else store_tiles(acc, {c, bias}, p, row + down, col + right, recompute);
}
