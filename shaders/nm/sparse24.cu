// Computes: C = alpha·A·B + beta·C, A (rows × cols) 2:4 sparse, f16 or bf16, on the sparse tensor cores of compute
// capability 8.0 (mma.sp.m16n8k32).
// Tile: a CTA computes (ROWS × COLS), a warp (WARP_ROWS × WARP_COLS), in stages of DEPTH rows of B.
// Data movement: values are packed in the order of the instruction's operand A (16 × 32), so that a lane's are one
// 16-byte load; metadata of two steps is a word of each lane (the first in lanes 0 and 1 of a quad, the second in lanes
// 2 and 3). B, values and metadata of a stage come by cp.async, STAGES deep; B is read by ldmatrix, and lies in shared
// memory as in vector.cu.
// Bound by: the sparse tensor cores for wide C, L2 to shared memory else.
// Constants: ENTRY, ELEM (half.cuh), ROWS, COLS, DEPTH (a multiple of 64), STAGES, WARP_ROWS and WARP_COLS (multiples
// of 16). Dynamic shared memory: STAGES·STAGE_BYTES.

#include "sparse24.cuh"

#define WARPS ((ROWS / WARP_ROWS) * (COLS / WARP_COLS))
#define THREADS (32 * WARPS)
#define STEPS (DEPTH / 32)
#define SLAB (DEPTH * 128) // bytes of 64 columns of B, or of fewer
#define A_BYTES (ROWS * DEPTH) // half the places, two bytes each
#define META_BYTES (ROWS * DEPTH / 8)
#define B_CHUNKS (COLS / 8) // of a row
#define B_STEP (THREADS / B_CHUNKS) // rows that the block copies at once
#define STAGE_BYTES (A_BYTES + META_BYTES + (COLS + 63) / 64 * SLAB)

static_assert(B_STEP % 8 == 0 && DEPTH % B_STEP == 0, "the block copies rows of B in turns");
static_assert(A_BYTES / 16 % THREADS == 0, "the block copies values in turns");

__device__ __forceinline__ u32 b_at(u32 k, u32 c) { return (c >> 3) * SLAB + k * 128 + ((c ^ k) & 7) * 16; }

extern "C" __global__ void __launch_bounds__(THREADS)
    ENTRY(const u16 *__restrict__ values, const u32 *__restrict__ index, const u32 *__restrict__ mask,
          REMAINDER_ARGS const u16 *__restrict__ b, const float *__restrict__ bias, void *__restrict__ c,
          const __grid_constant__ Params p) {
    extern __shared__ __align__(1024) unsigned char smem[];
    u32 ring = shared_address(smem), t = threadIdx.x, lane = t & 31, warp = t >> 5;
    u32 panel = blockIdx.x + blockIdx.z * p.width, base = blockIdx.y * COLS;
    if (panel >= p.blocks) return;
    u32 steps = steps24(p), tiles = (p.cols + DEPTH - 1) / DEPTH;

    const u16 *b_from = b + min(base + 8 * (t % B_CHUNKS), p.ldb - 8);
    u32 b_row = t / B_CHUNKS, b_to = A_BYTES + META_BYTES + b_at(b_row, t % B_CHUNKS);
    auto fetch = [&](u32 tile, u32 stage) {
        u32 to = ring + stage * STAGE_BYTES;
        constexpr u32 EACH = STEPS * 32; // 16-byte chunks of values of 16 rows
#pragma unroll
        for (int i = 0; i < A_BYTES / 16 / THREADS; i++) {
            u32 j = i * THREADS + t, block = panel * (ROWS / 16) + j / EACH, at = tile * EACH + j % EACH;
            copy<16>(to + 16 * j, values + ((u64)block * steps * 32 + at) * 8, at < steps * 32 ? 16 : 0);
        }
        for (u32 j = t; j < META_BYTES / 16; j += THREADS) {
            u32 block = panel * (ROWS / 16) + j / (STEPS * 4), at = tile * STEPS * 4 + j % (STEPS * 4);
            copy<16>(to + A_BYTES + 16 * j, index + ((u64)block * steps * 4 + at) * 4, at < steps * 4 ? 16 : 0);
        }
#pragma unroll
        for (int i = 0; i < DEPTH / B_STEP; i++) {
            u32 k = tile * DEPTH + i * B_STEP + b_row;
            int in = k < p.cols ? 16 : 0;
            copy<16>(to + b_to + i * B_STEP * 128, b_from + (in ? (u64)k * p.ldb : 0), in);
        }
    };
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < tiles) fetch(s, s);
        copy_commit();
    }

    u32 wr = warp % (ROWS / WARP_ROWS) * WARP_ROWS, wc = warp / (ROWS / WARP_ROWS) * WARP_COLS;
    u32 b_load[WARP_COLS / 8];
#pragma unroll
    for (int j = 0; j < WARP_COLS / 8; j++) b_load[j] = A_BYTES + META_BYTES + b_at(lane, wc / 8 + j);

    float acc[WARP_ROWS / 16][WARP_COLS / 8][4] = {};
    u32 stage = 0;
    for (u32 tile = 0; tile < tiles; tile++) {
        copy_wait<STAGES - 2>();
        __syncthreads();
        if (tile + STAGES - 1 < tiles) fetch(tile + STAGES - 1, stage == 0 ? STAGES - 1 : stage - 1);
        copy_commit();
        u32 from = ring + stage * STAGE_BYTES;
        const unsigned char *a = smem + stage * STAGE_BYTES + wr / 16 * STEPS * 512 + 16 * lane;
        const unsigned char *meta = smem + stage * STAGE_BYTES + A_BYTES + wr / 16 * STEPS * 64 + 4 * lane;
#pragma unroll
        for (int k = 0; k < STEPS; k++) {
            u32 x[WARP_ROWS / 16][4], places[WARP_ROWS / 16];
#pragma unroll
            for (int i = 0; i < WARP_ROWS / 16; i++) {
                uint4 v = *(const uint4 *)(a + (i * STEPS + k) * 512);
                x[i][0] = v.x, x[i][1] = v.y, x[i][2] = v.z, x[i][3] = v.w;
                places[i] = *(const u32 *)(meta + (i * STEPS / 2 + k / 2) * 128);
            }
#pragma unroll
            for (int j = 0; j < WARP_COLS / 8; j++) {
                u32 y[4];
                ldmatrix_trans(y, from + b_load[j] + k * 32 * 128);
#pragma unroll
                for (int i = 0; i < WARP_ROWS / 16; i++) mma_sparse<ELEM>(acc[i][j], x[i], y, places[i], k & 1);
            }
        }
        stage = stage + 1 == STAGES ? 0 : stage + 1;
    }
    copy_wait<0>();
    __syncthreads(); // the stages are free
    REMAINDER more = REMAINDER_OF(ring + warp * REMAINDER_BYTES, b);
    auto gather = more.gather<WARP_ROWS / 16, 16, WARP_COLS / 8>(p);
    gather.look(panel * ROWS + wr);
    gather.find();
    gather.start(base + wc);
    gather.add(acc);
    store_tiles(acc, {c, bias}, p, panel * ROWS + wr, base + wc,
                more.entries(Entries24{values, index, mask, b, &p}, p));
}
