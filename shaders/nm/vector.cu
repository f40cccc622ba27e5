// Computes: C = alpha·A·B + beta·C, A (rows × cols) N:M sparse in units of V rows (VW and BW, nmSPARSE §3.3), f16 or
// bf16 on tensor cores.
// Tile: a CTA computes a panel (V × COLS), a warp (WARP_ROWS × WARP_COLS); on compute capability 9.0 (HOPPER) four
// warps compute (64 × 128) by wgmma. The rows of a panel keep the same columns: it is a small dense matrix once the
// rows of B that it keeps are gathered.
// Data movement: those rows of B are gathered into shared memory by cp.async, DEPTH at a time, each once for all V
// rows, STAGES deep, with the panel's values next to them; both reach the tensor cores through ldmatrix. Rows are 128
// bytes whose 16-byte chunks are swizzled by the row's number mod 8: no bank conflicts. Each lane decodes places one
// step before they are needed, and the lanes that copy a row ask it for the row's number.
// Bound by: L2 to shared memory for gathered rows of B, tensor cores for tall panels.
// Constants: ENTRY, ELEM (half.cuh), V (a multiple of 16), COLS, DEPTH (a multiple of 32), STAGES, HOPPER, or WARP_ROWS
// and WARP_COLS (multiples of 16). Dynamic shared memory: STAGES·STAGE_BYTES.

#include "nm.cuh"

#if HOPPER
#include "../include/hopper.cuh"
#define WARPS ((V / 64) * (COLS / 128) * 4)
#define PREFETCH (STAGES - 2) // stages loaded before they are needed; one is still being read
#else
#define WARPS ((V / WARP_ROWS) * (COLS / WARP_COLS))
#define PREFETCH (STAGES - 1)
#endif
#define THREADS (32 * WARPS)
#define A_ROW (V * 2) // bytes of a condensed column
#define SLAB (DEPTH * 128) // bytes of 64 columns of B, or of 64 rows of A
#define A_BYTES (DEPTH * A_ROW)
#define STAGE_BYTES (A_BYTES + DEPTH * COLS * 2)
#define B_CHUNKS (COLS / 8) // of a row
#define A_CHUNKS (V / 8)
#define B_STEP (THREADS / B_CHUNKS) // rows that the block copies at once
#define A_STEP (THREADS / A_CHUNKS)

static_assert(B_STEP % 8 == 0 && 32 % B_STEP == 0 && DEPTH % B_STEP == 0, "the block copies rows of B in turns");
static_assert(A_STEP % 8 == 0 && DEPTH % A_STEP == 0, "the block copies condensed columns in turns");

// Where in a stage chunk c of row k lies. Rows of A are narrower where V is 32 or 16.
__device__ __forceinline__ u32 b_at(u32 k, u32 c) { return (c >> 3) * SLAB + k * 128 + ((c ^ k) & 7) * 16; }
__device__ __forceinline__ u32 a_at(u32 k, u32 c) {
    if (V >= 64) return b_at(k, c);
    if (V == 32) return k * 64 + ((c ^ k >> 1) & 3) * 16;
    return k * 32 + ((c ^ k >> 2) & 1) * 16;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    ENTRY(const u16 *__restrict__ values, const u32 *__restrict__ index, const u32 *__restrict__ mask,
          const u16 *__restrict__ b, const float *__restrict__ bias, void *__restrict__ c,
          const __grid_constant__ Params p) {
    extern __shared__ __align__(1024) unsigned char smem[];
    u32 ring = shared_address(smem), t = threadIdx.x, lane = t & 31, warp = t >> 5;
    u32 panel = blockIdx.x + blockIdx.z * p.width, base = blockIdx.y * COLS;
    if (panel >= p.blocks) return;
    u32 count = p.groups * p.keep << p.wide, tiles = (count + DEPTH - 1) / DEPTH;
    Places places(index, p, panel);

    // This thread's share of the copies. Columns past the leading dimension are read from its end instead and
    // never stored; condensed columns past the last are zeros.
    const u16 *b_from = b + min(base + 8 * (t % B_CHUNKS), p.ldb - 8);
    u32 b_row = t / B_CHUNKS, b_to = A_BYTES + b_at(b_row, t % B_CHUNKS);
    const u16 *a_from = values + (u64)panel * count * V + 8 * t;
    u32 a_row = t / A_CHUNKS, a_to = a_at(a_row, t % A_CHUNKS);
    uint2 raw[DEPTH / 32];
    auto look = [&](u32 tile) {
#pragma unroll
        for (int i = 0; i < DEPTH / 32; i++) raw[i] = places.raw(tile * DEPTH + 32 * i + lane >> p.wide);
    };
    auto fetch = [&](u32 tile, u32 stage) {
        u32 to = ring + stage * STAGE_BYTES, first = tile * DEPTH;
        u32 cols[DEPTH / 32];
#pragma unroll
        for (int i = 0; i < DEPTH / 32; i++) {
            u32 k = first + 32 * i + lane;
            // The last group may keep columns past the matrix; their values are 0.
            cols[i] = min(column(p, k, places.place(k >> p.wide, raw[i])), p.cols - 1);
        }
#pragma unroll
        for (int i = 0; i < DEPTH / B_STEP; i++) {
            u32 row = __shfl_sync(0xffffffff, cols[i * B_STEP / 32], i * B_STEP % 32 + b_row);
            copy<16>(to + b_to + i * B_STEP * 128, b_from + (u64)row * p.ldb,
                     first + i * B_STEP + b_row < count ? 16 : 0);
        }
#pragma unroll
        for (int i = 0; i < DEPTH / A_STEP; i++) {
            u32 k = first + i * A_STEP;
            int in = k + a_row < count ? 16 : 0;
            copy<16>(to + a_to + i * A_STEP * (V >= 64 ? 128 : A_ROW), in ? a_from + (u64)k * V : values, in);
        }
    };
    if (tiles > 0) look(0);
#pragma unroll
    for (int s = 0; s < PREFETCH; s++) {
        if (s < tiles) fetch(s, s);
        if (s + 1 < tiles) look(s + 1);
        copy_commit();
    }

    u32 stage = 0, next = PREFETCH;
    auto advance = [&](u32 tile) { // loads the next stage and moves on
        if (tile + PREFETCH < tiles) {
            fetch(tile + PREFETCH, next);
            look(tile + PREFETCH + 1);
        }
        copy_commit();
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        next = next + 1 == STAGES ? 0 : next + 1;
    };
#if HOPPER
    u32 group = warp / 4, wr = group % (V / 64) * 64, wc = group / (V / 64) * 128;
    float acc[1][16][4] = {};
    for (u32 tile = 0; tile < tiles; tile++) {
        copy_wait<PREFETCH - 1>();
        async_fence();
        __syncthreads();
        u32 from = ring + stage * STAGE_BYTES;
        wgmma_fence();
#pragma unroll
        for (int k = 0; k < DEPTH; k += 16)
            wgmma<ELEM>(acc[0], swizzled(from + wr / 64 * SLAB + k * 128, SLAB),
                        swizzled(from + A_BYTES + wc / 64 * SLAB + k * 128, SLAB));
        wgmma_commit();
        advance(tile);
        wgmma_wait<1>(); // so the stage before is free once all warps have met again
    }
    wgmma_wait<0>();
    wgmma_hold(acc[0]);
    wr += warp % 4 * 16;
#else
    // ldmatrix: matrices of 8 k by 8 rows or columns; for A in the order (k, rows), (k, rows + 8), (k + 8, rows),
    // (k + 8, rows + 8), for B (k, columns), (k + 8, columns), (k, columns + 8), (k + 8, columns + 8).
    u32 wr = warp % (V / WARP_ROWS) * WARP_ROWS, wc = warp / (V / WARP_ROWS) * WARP_COLS;
    u32 m = lane >> 3, r = lane & 7;
    u32 a_load[WARP_ROWS / 16], b_load[WARP_COLS / 16];
#pragma unroll
    for (int i = 0; i < WARP_ROWS / 16; i++) a_load[i] = a_at(8 * (m >> 1) + r, wr / 8 + 2 * i + (m & 1));
#pragma unroll
    for (int j = 0; j < WARP_COLS / 16; j++) b_load[j] = A_BYTES + b_at(8 * (m & 1) + r, wc / 8 + 2 * j + (m >> 1));

    float acc[WARP_ROWS / 16][WARP_COLS / 8][4] = {};
    for (u32 tile = 0; tile < tiles; tile++) {
        copy_wait<PREFETCH - 1>();
        __syncthreads();
        u32 from = ring + stage * STAGE_BYTES;
        advance(tile);
#pragma unroll
        for (int k = 0; k < DEPTH; k += 16) {
            u32 x[WARP_ROWS / 16][4], y[WARP_COLS / 16][4];
#pragma unroll
            for (int i = 0; i < WARP_ROWS / 16; i++)
                ldmatrix_trans(x[i], from + a_load[i] + k * (V >= 64 ? 128 : A_ROW));
#pragma unroll
            for (int j = 0; j < WARP_COLS / 16; j++) ldmatrix_trans(y[j], from + b_load[j] + k * 128);
#pragma unroll
            for (int i = 0; i < WARP_ROWS / 16; i++)
#pragma unroll
                for (int j = 0; j < WARP_COLS / 8; j++)
                    mma<ELEM>(acc[i][j], x[i], y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1]);
        }
    }
#endif
    copy_wait<0>();
    store_tiles(acc, {c, bias}, p, panel * V + wr, base + wc, Entries{values, index, mask, b, &p, V});
}
