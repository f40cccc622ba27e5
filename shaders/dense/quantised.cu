// Computes: C (rows × n) = alpha·A·B + beta·C, A dense with values of 8 bits and scales (formats.Quantised), B of f16
// or bf16, sums in f32, by wgmma on compute capability 9.0.
// Tile: a CTA computes (ROWS × COLS), a consumer warpgroup (64 × COLS). Clusters take one work tile after another, or
// share the last tiles' steps equally (stream-K, stream_k.cuh).
// Data movement: as hopper.cu, but A's codes go from shared memory to registers, where they are widened to operand A. A
// stage is SCALE_COLS columns of A, whose partial sums are multiplied by their scales and added to totals. B is
// row-major.
// Bound by: the bytes of A for few columns, else the conversion of codes.
//
// A is stored in tiles (64 × SCALE_COLS) of BLOCK bytes; the tiles of the same rows follow each other. In a tile, chunk
// c of thread l of a warpgroup is 16 bytes at 2048·c + 16·l. It has k from 32·c to 32·c + 31; warp w has rows 16·w to
// 16·w + 15. With l mod 32 = 4·g + q, each 8 bytes of a chunk are for 16 of these k: for rows g and g + 8 alternately k
// = 2q and 2q + 1, then 2q + 8 and 2q + 9. Behind all tiles are the scales, 64 for each tile.
//
// Constants: ENTRY, ELEM (half.cuh), QUANT (quantised.cuh), ROWS = 128, COLS (8, 16, 32, 64 or 128), STAGES,
// CLUSTER_ROWS, BAND, MOST_BLOCKS. Dynamic shared memory: STAGES stages of STAGE_BYTES, and 512 bytes.

#include "stream_k.cuh"
#include "wgmma.cuh"
#include "../include/bulk.cuh"
#include "../include/launches.cuh"
#include "../include/quantised.cuh"

#define THREADS 384
#define DEPTH SCALE_COLS // values of k in a stage
#define BLOCK (64 * DEPTH) // bytes of a tile of A
#define L_BYTES (ROWS / 64 * BLOCK)
#define SLAB (DEPTH * 128) // bytes of 64 columns of B
#define WIDE (COLS < 64 ? COLS : 64) // columns of a slab of B
#define R_SLAB (DEPTH * 2 * WIDE)
#define R_BYTES (COLS / WIDE * R_SLAB)
#define ACROSS (COLS < 16 ? 2 : COLS / 8) // fragments of 8 columns in a tile, at least two
#define CHAINS (COLS <= 32 ? 2 : 1) // accumulators that take turns, because an instruction waits for the one before
// PREFETCH: codes are converted while those before are multiplied. With 128 columns there are no registers for that.
#define PREFETCH (COLS < 128)
#define STAGE_BYTES (L_BYTES + R_BYTES)

#define SUM_BYTES (128 * ACROSS * 16) // of a warpgroup

static_assert(16 * STAGES + 16 <= 256, "barriers and, from 256 on, a tensor map behind the stages");
static_assert(2 * SUM_BYTES <= STAGES * STAGE_BYTES, "sums land where stages were");

static_assert(2 * MOST_BLOCKS <= MOST_SPLIT_SLOTS, "each group of four warps adds up by itself");

// Each CTA's tensor map of B. (Launches of one module run one after the other.)
__device__ TileMap maps[MOST_BLOCKS];

// Weights finds the elements of A: tiles and scales.
struct Weights {
    const unsigned char *blocks;
    u32 groups, steps; // tiles along the rows, and along the columns
    const float *scales;

    __device__ __forceinline__ Weights(const void *a, const Params &p)
        : blocks((const unsigned char *)a), groups((p.rows + 63) / 64), steps(p.cols / DEPTH + (p.cols % DEPTH != 0)),
          scales((const float *)(blocks + (u64)groups * steps * BLOCK)) {}
    // block returns the number of the tile that has a row and a step.
    __device__ __forceinline__ u64 block(u32 row, u32 step) const {
        return (u64)min(row / 64, groups - 1) * steps + step;
    }
    __device__ __forceinline__ float scale(u32 row, u32 step) const {
        return __ldg(scales + block(row, step) * 64 + row % 64);
    }
    __device__ __forceinline__ u32 code(u32 row, u32 k) const {
        u32 r = row % 64, at = k % 16, lane = r / 16 * 32 + r % 8 * 4 + at / 2 % 4;
        return blocks[block(row, k / DEPTH) * BLOCK + k % DEPTH / 32 * 2048 + lane * 16 + k / 16 % 2 * 8 + at / 8 * 4 +
                      r / 8 % 2 * 2 + k % 2];
    }
};

// QuantisedRecompute computes an output again from the entries of A alone: see gemm.cuh's Recompute.
struct QuantisedRecompute {
    Weights a;
    const Elem *b;
    const u32 *stored;
    const Params *p;

    __device__ __noinline__ float operator()(u32 row, u32 col) const {
        const u32 *bits = stored + (u64)row * p->words;
        Special s;
        for (u32 k = 0; k < p->cols; k++)
            if (p->words == 0 || bits[k >> 5] >> (k & 31) & 1)
                s.add(level(a.code(row, k)) * a.scale(row, k / DEPTH), to_float(b[(u64)k * p->ldb + col]));
        return s.result();
    }
};

// Work is a CTA's place in the grid, and its work tiles.
struct Work {
    u32 rank; // of the CTA in its cluster
    u32 high, wide; // C in cluster tiles: rows, columns
    StreamK schedule;
    const Params &p;

    __device__ __forceinline__ Work(const Params &p)
        : rank(blockIdx.x % CLUSTER_ROWS), high((p.rows + ROWS * CLUSTER_ROWS - 1) / (ROWS * CLUSTER_ROWS)),
          wide((p.n + COLS - 1) / COLS), schedule(blockIdx.x / CLUSTER_ROWS, gridDim.x / CLUSTER_ROWS, high * wide,
                                                  p.cols / DEPTH + (p.cols % DEPTH != 0), p),
          p(p) {}
    // at finds the first row and column of the CTA's tile.
    __device__ __forceinline__ void at(const WorkTile &x, u32 &row, u32 &col) const {
        u32 band = x.tile / (high * BAND), in = x.tile % (high * BAND), of = min(wide - band * BAND, BAND);
        row = (in / of * CLUSTER_ROWS + rank) * ROWS, col = (band * BAND + in % of) * COLS;
    }
};

// Pipeline finds the stage buffers in shared memory, and for each a barrier "full" for its copies and "empty" for its
// readers.
struct Pipeline {
    u32 stages, full, empty;

    __device__ __forceinline__ Pipeline(u32 at)
        : stages(at), full(at + STAGES * STAGE_BYTES), empty(full + 8 * STAGES) {}
    __device__ __forceinline__ void start() const {
        for (u32 s = 0; s < STAGES; s++) {
            barrier_init(full + 8 * s, 1);
            barrier_init(empty + 8 * s, 2 * CLUSTER_ROWS);
        }
        barrier_fence();
    }
};

// copy_all: body of the two producer threads, of A if LEFT, else of B. The first also sets how many bytes a stage's
// barrier expects. A stage is free when all consumer warpgroups of the cluster have read it. Slabs of B past the matrix
// are not loaded, because their results are not stored. Each CTA multicasts its share of B.
template <bool LEFT>
__device__ __forceinline__ void copy_all(const Pipeline &pipeline, const Work &w, const Weights &a,
                                         const TileMap *map) {
    constexpr u32 SHARE = DEPTH / CLUSTER_ROWS, BYTES = 2 * WIDE;
    u32 stage = 0, parity = 1;
    for (u32 i = 0; i < w.schedule.count; i++) {
        WorkTile x = w.schedule.work_tile(i, w.p);
        u32 row, col;
        w.at(x, row, col);
        u32 slabs = col < w.p.n ? min(COLS / WIDE, (w.p.n - col + WIDE - 1) / WIDE) : 0;
        for (u32 k = x.first; k < x.last; k++) {
            u32 to = pipeline.stages + stage * STAGE_BYTES, bar = pipeline.full + 8 * stage;
            barrier_wait(pipeline.empty + 8 * stage, parity);
            if (LEFT) {
                barrier_expect(bar, L_BYTES + slabs * R_SLAB);
                for (u32 g = 0; g < ROWS / 64; g++)
                    bulk_copy_here(to + g * BLOCK, a.blocks + a.block(row + 64 * g, k) * BLOCK, BLOCK, bar);
            } else
                for (u32 s = 0; s < slabs; s++) {
                    u32 at = to + L_BYTES + s * SLAB + w.rank * SHARE * BYTES, first = k * DEPTH + w.rank * SHARE;
                    if (CLUSTER_ROWS == 1) tile_copy_here(at, map, first, col + 64 * s, bar);
                    else tile_copy(at, map, first, col + 64 * s, bar, (1 << CLUSTER_ROWS) - 1);
                }
            if (++stage == STAGES) stage = 0, parity ^= 1;
        }
    }
}

// PipelineState is a warpgroup's position in the pipeline: a stage, and the parity of its barriers to wait for.
struct PipelineState {
    u32 stage, parity;
};

__device__ __forceinline__ uint4 shared_chunk(u32 at) {
    uint4 x;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "r"(at)
                 : "memory");
    return x;
}

// Left is a warpgroup's rows of a stage of A as operand A, and the scales of the lane's two rows.
struct Left {
    u32 x[DEPTH / 16][4];
    float scale[2];

    // take converts the codes at address `bytes`.
    __device__ __forceinline__ void take(u32 bytes, const Weights &a, u32 row, u32 step) {
        scale[0] = a.scale(row, step), scale[1] = a.scale(row + 8, step);
#pragma unroll
        for (u32 c = 0; c < DEPTH / 32; c++) {
            uint4 y = shared_chunk(bytes + 2048 * c);
            u32 words[4] = {y.x, y.y, y.z, y.w};
#pragma unroll
            for (u32 i = 0; i < 8; i++)
                x[2 * c + i / 4][i % 4] = i % 2 ? elements<1>(words[i / 2]) : elements<0>(words[i / 2]);
        }
    }
};

// sum adds the products of a work tile to a warpgroup's totals. `row` is the warpgroup's first row.
__device__ __forceinline__ void sum(float (&total)[COLS / 8][4], const Pipeline &pipeline, PipelineState &at,
                                    const WorkTile &x, const Weights &a, u32 row, u32 group) {
    u32 lane = threadIdx.x % 128, mine = row + lane / 32 * 16 + lane % 32 / 4,
        bytes = pipeline.stages + group * BLOCK + 16 * lane, before = 0;
    u64 r = across_of<WIDE>(pipeline.stages + L_BYTES, SLAB);
    Left left[2];
    auto take = [&](Left &l, u32 k) {
        barrier_wait(pipeline.full + 8 * at.stage, at.parity);
        l.take(bytes + at.stage * STAGE_BYTES, a, mine, k);
        before = at.stage;
        if (++at.stage == STAGES) at.stage = 0, at.parity ^= 1;
    };
    auto multiply = [&](const Left &l, Left &next, u32 k) {
        u32 stage = before;
        u64 from = r + stage * (STAGE_BYTES >> 4); // descriptors count units of 16 bytes
        float acc[CHAINS][COLS / 8][4];
        wgmma_fence();
#pragma unroll
        for (u32 e = 0; e < CHAINS; e++) wgmma_left<ELEM, 0>(acc[e], l.x[e], from + e * (32 * WIDE >> 4));
#pragma unroll
        for (u32 e = CHAINS; e < DEPTH / 16; e++)
            wgmma_left<ELEM, 1>(acc[e % CHAINS], l.x[e], from + e * (32 * WIDE >> 4));
        wgmma_commit();
        if (PREFETCH && k + 1 < x.last) take(next, k + 1);
        wgmma_wait<0>();
#pragma unroll
        for (u32 c = 0; c < CHAINS; c++) wgmma_hold(acc[c]);
        if (lane < CLUSTER_ROWS)
            barrier_arrive(pipeline.empty + 8 * stage, lane); // the stage is free: one thread arrives at each CTA
#pragma unroll
        for (u32 c = 0; c < CHAINS; c++)
#pragma unroll
            for (int j = 0; j < COLS / 8; j++)
#pragma unroll
                for (int e = 0; e < 4; e++) total[j][e] = fmaf(l.scale[e / 2] * (1 / UNIT), acc[c][j][e], total[j][e]);
    };
    if (PREFETCH) take(left[0], x.first);
#pragma unroll 1
    for (u32 k = x.first; k < x.last; k += PREFETCH ? 2 : 1) {
        if (!PREFETCH) take(left[0], k);
        multiply(left[0], left[1], k);
        if (PREFETCH && k + 1 < x.last) multiply(left[1], left[0], k + 1);
    }
}

// multiply: body of consumer warpgroup `group` (0 or 1).
__device__ __forceinline__ void multiply(const Pipeline &pipeline, const Work &w, const Weights &a, u32 group, Dest to,
                                         float *work, QuantisedRecompute recompute) {
    PipelineState at = {0, 0};
    launches_before();
#pragma unroll 1
    for (u32 i = 0; i < w.schedule.count; i++) {
        WorkTile x = w.schedule.work_tile(i, w.p);
        u32 row, col;
        w.at(x, row, col);
        float total[1][ACROSS][4] = {};
        if (x.first < x.last) sum(*(float(*)[COLS / 8][4]) total[0], pipeline, at, x, a, row + 64 * group, group);
        if (i + 1 == w.schedule.count && threadIdx.x == 128) launches_after();
        row += group * 64 + threadIdx.x % 128 / 32 * 16;
        auto store = [&](const Params &p) {
            auto slot = [&](u32 i) { return (i * CLUSTER_ROWS + w.rank) * 2 + group; };
            store_work_tile<128, 256>(total, w.schedule, x, to, p, row, col, slot, group + 1, work,
                                      Landing(pipeline.stages, pipeline.empty + 8 * STAGES, group, SUM_BYTES),
                                      recompute);
        };
        store_columns(w.p, col, store);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) __cluster_dims__(CLUSTER_ROWS, 1, 1)
    ENTRY(const Elem *__restrict__ a_, const u32 *__restrict__ stored, const Elem *__restrict__ b,
          const float *__restrict__ bias, void *__restrict__ c, float *__restrict__ work,
          const __grid_constant__ Params p) {
    extern __shared__ __align__(1024) unsigned char smem[];
    Weights a(a_, p);
    Pipeline pipeline(shared_address(smem));
    Work w(p);
    TileMap *map = maps + blockIdx.x, *scratch = (TileMap *)(smem + STAGES * STAGE_BYTES + 256);
    if (threadIdx.x < 32)
        tile_map<ELEM, WIDE>(map, scratch, b, max(p.cols, 1), p.ldb, (u64)p.ldb * 2, DEPTH / CLUSTER_ROWS);
    else if (threadIdx.x == 64) {
        barrier_init(pipeline.empty + 8 * STAGES, 1), barrier_init(pipeline.empty + 8 * STAGES + 8, 1); // see Landing
        pipeline.start();
    }
    cluster_sync();
    u32 group = threadIdx.x / 128;
    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) copy_all<true>(pipeline, w, a, map);
        else if (threadIdx.x == 32) {
            tile_map_acquire(map);
            launches_before();
            copy_all<false>(pipeline, w, a, map);
        }
        __syncwarp();
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        multiply(pipeline, w, a, group - 1, {c, bias}, work, QuantisedRecompute{a, b, stored, &p});
        __syncwarp();
    }
    cluster_sync(); // no CTA exits while others still copy to it or arrive at its barriers
}
