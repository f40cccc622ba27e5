// Computes: C = alpha·A·B + beta·C, A (rows × cols) N:M sparse in single entries (EW, nmSPARSE §3.2), f32 on CUDA
// cores.
// Tile: a CTA computes (ROWS × COLS), a lane one row. Few columns have a schedule of their own (narrow.cuh).
// Data movement: a stage is as many groups as have at most DEPTH rows of B and SLOTS slots, at least one group. Its
// rows of B come by cp.async, chunk of columns after chunk; its slots are decoded on the way, slot after slot for all
// rows: the value, and which of the stage's rows of B it takes. Every row has the same slots in every group, so the
// lanes of a warp read rows of B within p.every neighbouring places at a time: different banks, or the same word (the
// paper's conflict-free broadcast). Places are 16 bytes of a row of B where p.every ≤ 8, 8 bytes where p.every ≤ 16,
// else 4.
// Bound by: FMA and the shared-memory reads that feed it.
// Constants: ENTRY, ROWS, COLS, WARP_COLS, DEPTH, SLOTS (≤ 32), NARROW_ROWS. Dynamic shared memory: 2·STAGE_BYTES.

#define ELEM 0
#include "nm.cuh"

#define GROUPS (ROWS / 32) // of warps, by rows
#define WARPS (GROUPS * (COLS / WARP_COLS))
#define THREADS (32 * WARPS)
#define A_PITCH (ROWS + 1) // slots of a stage lie so far apart
#define B_PITCH (DEPTH + 1) // chunks of a row of B
#define A_BYTES ((SLOTS * A_PITCH * 8 + 15) / 16 * 16)
#define B_BYTES ((COLS * 4 * B_PITCH + 15) / 16 * 16)
#define STAGE_BYTES (A_BYTES + B_BYTES)
#define NARROW_BYTES (2 * STAGE_BYTES)

#include "narrow.cuh"

// EACH neighbouring elements of a row of B.
template <int EACH> struct Chunk {
    float x[EACH];
};
template <> struct alignas(8) Chunk<2> {
    float x[2];
};
template <> struct alignas(16) Chunk<4> {
    float x[4];
};

template <int EACH>
__device__ __forceinline__ void wide(const float *values, const u32 *index, const u32 *mask, const float *b, Dest to,
                                     const Params &p, unsigned char *smem) {
    constexpr int CHUNK = 4 * EACH, CHUNKS = COLS / EACH, MINE = WARP_COLS / EACH;
    u32 t = threadIdx.x, lane = t & 31, warp = t >> 5;
    u32 first = (blockIdx.x + blockIdx.z * p.width) * ROWS, base = blockIdx.y * COLS;
    u32 count = p.groups * p.keep;
    u32 per = max(1, min(DEPTH / p.every, SLOTS / p.keep)); // groups of a stage
    u32 slots = per * p.keep, stages = (p.groups + per - 1) / per;

    // This thread decodes slot `mine` of one row in every THREADS >> log.
    u32 log = slots == 1 ? 0 : 32 - __clz(slots - 1);
    u32 mine = t & ((1u << log) - 1), mine_row = t >> log;
    u32 in_stage = mine / p.keep * p.every; // the group's first row of B

    auto load_stage = [&](u32 stage) {
        unsigned char *to = smem + (stage & 1) * STAGE_BYTES;
        u32 shared = shared_address(to) + A_BYTES;
        u32 rows = per * p.every, start = stage * rows;
        for (u32 i = t; i < rows * CHUNKS; i += THREADS) {
            u32 k = i / CHUNKS, j = i % CHUNKS;
            int in = start + k < p.cols;
            // Columns past the leading dimension are read from its end instead and never stored.
            const Elem *from = b + (in ? (u64)(start + k) * p.ldb : 0) + min(base + EACH * j, p.ldb - EACH);
            copy<CHUNK>(shared + (j * B_PITCH + k) * CHUNK, from, in ? CHUNK : 0);
        }
        copy_commit();
        u32 slot = stage * slots + mine;
        float2 *a = (float2 *)to; // value, and the row of B in the stage
#pragma unroll 4
        for (u32 r = mine_row; r < ROWS; r += THREADS >> log) {
            float2 s = make_float2(0, 0);
            if (mine < slots && slot < count && first + r < p.rows) {
                Places places(index, p, first + r);
                s = make_float2(values[(u64)(first + r) * count + slot],
                                __uint_as_float(in_stage + places.place(slot)));
            }
            if (mine < slots) a[mine * A_PITCH + r] = s;
        }
    };

    float acc[WARP_COLS] = {};
    u32 row = warp % GROUPS * 32 + lane, col = warp / GROUPS * WARP_COLS;
    load_stage(0);
    for (u32 stage = 0; stage < stages; stage++) {
        copy_wait<0>();
        __syncthreads();
        if (stage + 1 < stages) load_stage(stage + 1);
        const float2 *a = (const float2 *)(smem + (stage & 1) * STAGE_BYTES) + row;
        const Chunk<EACH> *rows =
            (const Chunk<EACH> *)(smem + (stage & 1) * STAGE_BYTES + A_BYTES) + col / EACH * B_PITCH;
#pragma unroll 2
        for (u32 s = 0; s < slots; s++) {
            float2 x = a[s * A_PITCH];
            const Chunk<EACH> *from = rows + __float_as_uint(x.y);
#pragma unroll
            for (int j = 0; j < MINE; j++) {
                Chunk<EACH> y = from[j * B_PITCH];
#pragma unroll
                for (int e = 0; e < EACH; e++) acc[j * EACH + e] = fmaf(x.x, y.x[e], acc[j * EACH + e]);
            }
        }
    }
    Out<Params> out(to, p);
#pragma unroll
    for (int j = 0; j < WARP_COLS; j += 4)
        out.store(first + row, base + col + j, make_float4(acc[j], acc[j + 1], acc[j + 2], acc[j + 3]),
                  Entries{values, index, mask, b, &p, 1});
}

extern "C" __global__ void __launch_bounds__(THREADS)
    ENTRY(const float *__restrict__ values, const u32 *__restrict__ index, const u32 *__restrict__ mask,
          const float *__restrict__ b, const float *__restrict__ bias, void *__restrict__ c,
          const __grid_constant__ Params p) {
    extern __shared__ __align__(16) unsigned char smem[];
    if (blockIdx.x + blockIdx.z * p.width >= p.blocks) return;
    if (is_narrow(p)) narrow(values, index, mask, b, {c, bias}, p, smem);
    else if (p.every <= 8) wide<4>(values, index, mask, b, {c, bias}, p, smem);
    else if (p.every <= 16) wide<2>(values, index, mask, b, {c, bias}, p, smem);
    else wide<1>(values, index, mask, b, {c, bias}, p, smem);
}
