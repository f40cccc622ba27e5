// Computes: C = alpha·A·B + beta·C, A (rows × cols) N:M sparse in single entries (EW), f16 or bf16 on tensor cores.
// Tile: a CTA computes (ROWS × WIDTH). A stage is as many groups as DEPTH columns of A hold. Few columns have a
// schedule of their own (narrow.cuh).
// Data movement: a warp clears its rows of the stage's tile of A in shared memory and scatters their values into it,
// while the stage before is multiplied as a dense one. nmSPARSE multiplies single entries on scalar cores; where tensor
// cores make products cheap, expanding A is faster.
// Bound by: dense tensor-core rate. A's memory traffic shrinks as N:M allows.
// Constants: ENTRY, ELEM (half.cuh), NARROW_ROWS. Dynamic shared memory: SHARED_BYTES.

#include "nm.cuh"

#define ROWS 128
#define DEPTH 64
#define WARPS 16
#define THREADS (32 * WARPS)
#define STAGES 3 // of B
#define MOST_COLS 128
#define A_BYTES (ROWS * DEPTH * 2) // of a tile; there are two
#define SLAB (DEPTH * 128) // bytes of 64 columns of B
#define SHARED_BYTES (2 * A_BYTES + STAGES * DEPTH * MOST_COLS * 2)
#define NARROW_BYTES SHARED_BYTES
#define SHARE (ROWS / WARPS) // rows that a warp puts together
#define TASKS (SHARE * DEPTH / 8 / 32) // of a lane: 8 slots each, at most

#include "narrow.cuh"

// Eight slots of a row on their way into the tile.
struct Task {
    alignas(16) u16 value[8];
    u64 places;
    int count;
};

__device__ __forceinline__ u32 a_at(u32 row, u32 k) { return row * 128 + ((k >> 3 ^ row) & 7) * 16 + (k & 7) * 2; }
__device__ __forceinline__ u32 b_at(u32 k, u32 c) { return (c >> 3) * SLAB + k * 128 + ((c ^ k) & 7) * 16; }

template <int WIDTH>
__device__ __forceinline__ void wide(const u16 *values, const u32 *index, const u32 *mask, const u16 *b, Dest to,
                                     const Params &p, unsigned char *smem) {
    constexpr int WARP_ROWS = WIDTH >= 128 ? 32 : 16, WARP_COLS = WIDTH >= 128 ? 32 : 16;
    constexpr int B_CHUNKS = WIDTH / 8, B_STEP = THREADS / B_CHUNKS < DEPTH ? THREADS / B_CHUNKS : DEPTH;
    constexpr u32 B_BYTES = (WIDTH + 63) / 64 * SLAB;
    u32 ring = shared_address(smem) + 2 * A_BYTES, t = threadIdx.x, lane = t & 31, warp = t >> 5;
    u32 first = (blockIdx.x + blockIdx.z * p.width) * ROWS, base = blockIdx.y * WIDTH;
    u32 count = p.groups * p.keep, per = DEPTH / p.every, depth = per * p.every, slots = per * p.keep; // of a stage
    u32 stages = (p.groups + per - 1) / per;

    const u16 *b_from = b + min(base + 8 * (t % B_CHUNKS), p.ldb - 8);
    u32 b_row = t / B_CHUNKS, b_to = b_at(b_row, t % B_CHUNKS);
    auto fetch = [&](u32 stage) {
        u32 to = ring + stage % STAGES * B_BYTES;
#pragma unroll
        for (int i = 0; i < DEPTH / B_STEP; i++) {
            u32 k = i * B_STEP + b_row, from = stage * depth + k;
            int in = k < depth && from < p.cols ? 16 : 0;
            if (b_row < B_STEP) copy<16>(to + b_to + i * B_STEP * 128, b_from + (in ? (u64)from * p.ldb : 0), in);
        }
    };

    // The slots of this warp's rows, eight to a task.
    u32 eights = (slots + 7) / 8, log = eights == 1 ? 0 : 32 - __clz(eights - 1);
    u32 bits = 32 - __clz(p.every - 1), words = (count * bits + 31) / 32;
    bool whole = (count & 7) == 0 && (slots & 7) == 0;
    Task task[TASKS];
    auto look = [&](u32 stage) {
#pragma unroll
        for (int i = 0; i < TASKS; i++) {
            u32 at = i * 32 + lane, eight = at & ((1u << log) - 1), row = first + warp * SHARE + (at >> log);
            u32 slot = stage * slots + 8 * eight;
            Task &x = task[i];
            x.count = at >> log < SHARE && row < p.rows && slot < count
                          ? min(8, min((int)(slots - 8 * eight), (int)(count - slot)))
                          : 0;
            if (x.count <= 0) continue;
            const u16 *from = values + (u64)row * count + slot;
            const u32 *is = index + (u64)row * words;
            u32 bit = slot * bits, w = bit >> 5;
            u32 w0 = is[w], w1 = is[min(w + 1, words - 1)], w2 = bits > 4 ? is[min(w + 2, words - 1)] : 0;
            x.places = (u64)__funnelshift_r(w1, w2, bit & 31) << 32 | __funnelshift_r(w0, w1, bit & 31);
            if (whole) {
                *(uint4 *)x.value = __ldg((const uint4 *)from);
            } else {
#pragma unroll
                for (int e = 0; e < 8; e++) x.value[e] = e < x.count ? from[e] : 0;
            }
        }
    };
    auto drop = [&](u32 stage) {
        unsigned char *to = smem + stage % 2 * A_BYTES;
#pragma unroll
        for (int i = 0; i < SHARE * 8 / 32; i++)
            *(uint4 *)(to + warp * SHARE * 128 + 16 * (i * 32 + lane)) = make_uint4(0, 0, 0, 0);
        __syncwarp();
#pragma unroll
        for (int i = 0; i < TASKS; i++) {
            Task &x = task[i];
            if (x.count <= 0) continue;
            u32 at = i * 32 + lane, slot = 8 * (at & ((1u << log) - 1)), row = warp * SHARE + (at >> log);
            u32 group = slot / p.keep * p.every, left = p.keep - slot % p.keep;
#pragma unroll
            for (int e = 0; e < 8; e++)
                if (e < x.count) {
                    *(u16 *)(to + a_at(row, group + ((u32)x.places & ((1u << bits) - 1)))) = x.value[e];
                    x.places >>= bits;
                    if (--left == 0) group += p.every, left = p.keep;
                }
        }
    };

    u32 wr = warp % (ROWS / WARP_ROWS) * WARP_ROWS, wc = warp / (ROWS / WARP_ROWS) * WARP_COLS;
    u32 m = lane >> 3, r = lane & 7;
    float acc[WARP_ROWS / 16][WARP_COLS / 8][4] = {};
    look(0);
    fetch(0);
    copy_commit();
    if (stages > 1) fetch(1);
    copy_commit();
    drop(0);
    if (stages > 1) look(1);
    for (u32 stage = 0; stage < stages; stage++) {
        copy_wait<1>();
        __syncthreads();
        if (stage + 2 < stages) fetch(stage + 2);
        copy_commit();
        if (stage + 1 < stages) {
            drop(stage + 1);
            if (stage + 2 < stages) look(stage + 2);
        }
        u32 a = shared_address(smem) + stage % 2 * A_BYTES, from = ring + stage % STAGES * B_BYTES;
#pragma unroll
        for (int k = 0; k < DEPTH; k += 16) {
            u32 x[WARP_ROWS / 16][4], y[WARP_COLS / 16][4];
#pragma unroll
            for (int i = 0; i < WARP_ROWS / 16; i++)
                ldmatrix(x[i], a + a_at(wr + 16 * i + 8 * (m & 1) + r, k + 8 * (m >> 1)));
#pragma unroll
            for (int j = 0; j < WARP_COLS / 16; j++)
                ldmatrix_trans(y[j], from + b_at(k + 8 * (m & 1) + r, wc / 8 + 2 * j + (m >> 1)));
#pragma unroll
            for (int i = 0; i < WARP_ROWS / 16; i++)
#pragma unroll
                for (int j = 0; j < WARP_COLS / 8; j++)
                    mma<ELEM>(acc[i][j], x[i], y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1]);
        }
    }
    copy_wait<0>();
    store_tiles(acc, to, p, first + wr, base + wc, Entries{values, index, mask, b, &p, 1});
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    ENTRY(const u16 *__restrict__ values, const u32 *__restrict__ index, const u32 *__restrict__ mask,
          const u16 *__restrict__ b, const float *__restrict__ bias, void *__restrict__ c,
          const __grid_constant__ Params p) {
    extern __shared__ __align__(1024) unsigned char smem[];
    if (blockIdx.x + blockIdx.z * p.width >= p.blocks) return;
    if (is_narrow(p)) narrow(values, index, mask, b, {c, bias}, p, smem);
    else if (p.n <= 32) wide<32>(values, index, mask, b, {c, bias}, p, smem);
    else wide<128>(values, index, mask, b, {c, bias}, p, smem);
}
