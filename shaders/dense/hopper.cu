// Computes: C (M×N) = alpha·A·B + beta·C, all dense, f16 or bf16, sums in f32, by wgmma on compute capability 9.0. The
// kernel sees it as L·R (gemm.cuh): L is A and R is B, or, for a column-major C, L is Bᵀ and R is Aᵀ.
// Tile: a CTA computes (ROWS × COLS) of L·R, a consumer warpgroup (64 × COLS). A cluster computes CLUSTER_ROWS ×
// CLUSTER_COLS neighbouring tiles. Clusters are persistent: each takes one work tile after another (work_tiles.cuh).
// Tiles are ordered in bands, each BAND cluster tiles wide, and row by row within a band, so that clusters that run at
// the same time find the same rows of L and columns of R in the L2 cache. The last tiles may be split along K.
// Data movement: two producer threads, one for each operand, issue TMA copies into STAGES stage buffers (hopper.cuh).
// Each CTA of a cluster loads a share and multicasts it. While consumers store a tile, producers load the next tile's
// first stages. A launch may begin while the previous one stores its last tiles, and then loads A before it waits.
// Bound by: tensor cores if C is large, memory bandwidth if B has few columns.
//
// With TRANSPOSED = 1 the kernel computes Cᵀ = Bᵀ·Aᵀ and stores it to a row-major C. Rows of A are then the N of the
// MMA shape, so that COLS, the tile's rows of A, may be any multiple of 8, chosen to give each multiprocessor a tile.
// Tiles are not split.
//
// Tiles of few columns may be stored to a column-major C.
//
// Constants: ENTRY (the kernel's name), those of hopper.cuh, BAND, MOST_BLOCKS (the most CTAs of a launch). Dynamic
// shared memory: STAGES × STAGE_BYTES, and 512 bytes for the barriers.

#if COLS <= 64 && !defined(TRANSPOSED)
#define COLUMNS_OF_C // see split_k.cuh
#endif
#include "hopper.cuh"

#define THREADS (128 + 128 * GROUPS)
#define ACROSS (COLS < 16 ? 2 : COLS / 8) // fragments of 8 columns in a tile, at least two
#define CLUSTER MULTICAST

static_assert(16 * STAGES <= 512, "barriers behind the stages");

static_assert(TRANSPOSED || GROUPS * MOST_BLOCKS <= MOST_SPLIT_SLOTS, "each group of four warps adds up by itself");

// Work is a CTA's place in the grid, and the size of the problem.
struct Work {
    u32 rank, down, across; // the CTA's number in its cluster, and the row and column of its tile there
    u32 cluster, clusters;  // the cluster's number, and how many there are
    u32 high, wide, work_tiles, steps; // C in cluster tiles: rows, columns; work tiles; steps of DEPTH along K
    const Params &p;

    __device__ __forceinline__ Work(const Params &p) : p(p) {
        rank = blockIdx.x % CLUSTER, down = rank % CLUSTER_ROWS, across = rank / CLUSTER_ROWS;
        cluster = blockIdx.x / CLUSTER, clusters = gridDim.x / CLUSTER;
        high = (p.rows + ROWS * CLUSTER_ROWS - 1) / (ROWS * CLUSTER_ROWS);
        wide = (p.n + COLS * CLUSTER_COLS - 1) / (COLS * CLUSTER_COLS);
        steps = p.cols / DEPTH + (p.cols % DEPTH != 0);
        work_tiles = p.whole + (high * wide - p.whole) * p.splits;
    }
    __device__ __forceinline__ WorkTile work_tile(u32 i) const { return work_tile_at(i, steps, p); }
    // at finds the first row and column of the CTA's tile.
    __device__ __forceinline__ void at(const WorkTile &x, u32 &row, u32 &col) const {
        u32 band = x.tile / (high * BAND), in = x.tile % (high * BAND), of = min(wide - band * BAND, BAND);
        row = (in / of * CLUSTER_ROWS + down) * ROWS, col = ((band * BAND + in % of) * CLUSTER_COLS + across) * COLS;
    }
};

// copy_all: body of a producer thread, of L if LEFT, else of R. `along` says whether its operand is K-major, r_along
// whether R is. The producer of L also sets how many bytes of both operands a stage's barrier expects. A stage is free
// when all consumer warpgroups of the cluster have read it. There is a loop for each layout, because its instructions
// between a stage's release and the next copy into it delay the pipeline.
template <bool LEFT>
__device__ __forceinline__ void copy_all(const Pipeline &pipeline, const Work &w, const TileMap *map, bool along,
                                         bool r_along) {
    PipelineState at = {0, 1}; // with parity 1 the first wait for each empty stage returns at once
    // The mask of the CTAs that need the same lines: of R those in this column of tiles, of L those in this row.
    u16 blocks = ((1 << CLUSTER_ROWS) - 1) << CLUSTER_ROWS * w.across;
    if (LEFT) {
        blocks = 0;
        for (int i = 0; i < CLUSTER_COLS; i++) blocks |= 1 << (i * CLUSTER_ROWS + w.down);
    }
    for (u32 i = w.cluster; i < w.work_tiles; i += w.clusters) {
        WorkTile x = w.work_tile(i);
        u32 row, col;
        w.at(x, row, col);
        u32 all = slabs_of(w.p, col), bytes = L_BYTES + r_bytes(all, r_along);
        auto each = [&](bool along, u32 slabs) __attribute__((always_inline)) {
#pragma unroll 1
            for (u32 k = x.first; k < x.last; k++) {
                u32 to = pipeline.stages + at.stage * STAGE_BYTES, bar = pipeline.full + 8 * at.stage;
                barrier_wait(pipeline.empty + 8 * at.stage, at.parity);
                if (LEFT) {
                    barrier_expect(bar, bytes);
                    issue_copies<ROWS, CLUSTER_COLS>(to, map, along, row, k * DEPTH, GROUPS, w.across, bar, blocks);
                } else
                    issue_copies<COLS, CLUSTER_ROWS>(to + L_BYTES, map, along, col, k * DEPTH, slabs, w.down, bar,
                                                     blocks);
                at.next();
            }
        };
        if (along) each(true, SLABS);
        else if (LEFT || all == SLABS) each(false, SLABS);
        else each(false, all);
    }
}

// store_whole stores 16 rows of a tile whose sum is not split.
template <class F>
__device__ __forceinline__ void store_whole(float (&acc)[1][ACROSS][4], Dest to, const Params &p, u32 row, u32 col,
                                            F recompute) {
#ifdef COLUMNS_OF_C
    if (by_columns_c(p.store)) return store_columns<16>(acc[0], to, p, row, col, p.n, recompute);
#endif
    if (!store_plain<16>(acc, to, p, row, col, p.n)) store_in_batches<16>(acc, to, p, row, col, p.n, recompute);
}

// multiply: body of consumer warpgroup `group`.
__device__ __forceinline__ void multiply(const Pipeline &pipeline, const Work &w, u32 group, bool l_along, bool r_along,
                                         Dest to, float *work, Recompute recompute) {
    PipelineState at = {0, 0};
    launches_before();
#pragma unroll 1
    for (u32 i = w.cluster; i < w.work_tiles; i += w.clusters) {
        WorkTile x = w.work_tile(i);
        float acc[1][ACROSS][4] = {};
        float(&sums)[COLS / 8][4] = *(float(*)[COLS / 8][4]) acc[0];
        u32 row, col, down = group * 64 + threadIdx.x % 128 / 32 * 16;
        w.at(x, row, col);
        bool rows = !TRANSPOSED; // C's rows are contiguous
#ifdef COLUMNS_OF_C
        rows = !by_columns_c(w.p.store);
#endif
        if (rows) fetch_before<16, COLS>(to, w.p, row + down, col);
        sum(sums, pipeline, at, x.first, x.last, group, l_along, r_along);
        if (i + w.clusters >= w.work_tiles && threadIdx.x == 128) launches_after(); // the cluster's last work tile
        w.at(x, row, col); // again, so that no register holds them during sum
        row += down;
        if (TRANSPOSED) {
            store_transposed(acc[0], to, w.p, row, col, recompute);
            continue;
        }
        auto store = [&](const Params &p) {
            if (x.is_split)
                store_split_k<128>(acc, to, p, p.splits, row, col, (x.slot * CLUSTER + w.rank) * 2 + group, x.split,
                                   group + 1, work, recompute);
            else store_whole(acc, to, p, row, col, recompute);
        };
        store_columns(w.p, col, store);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) __cluster_dims__(CLUSTER, 1, 1)
    ENTRY(const Elem *__restrict__ a, const u32 *__restrict__ stored, const Elem *__restrict__ b,
          const float *__restrict__ bias, void *__restrict__ c, float *__restrict__ work,
          const __grid_constant__ Params p, const __grid_constant__ TileMap l_map,
          const __grid_constant__ TileMap r_map) {
    extern __shared__ __align__(1024) unsigned char smem[];
    Operand l = left(a, b, p), r = right(a, b, p);
    Pipeline pipeline(shared_address(smem), 0);
    Work w(p);
    if (threadIdx.x == 0) prefetch(&l_map);
    else if (threadIdx.x == 32) prefetch(&r_map);
    else if (threadIdx.x == 64) pipeline.start();
    cluster_sync();
    u32 group = threadIdx.x / 128;
    if (group == 0) {
        if (!TRANSPOSED) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) {
            if (p.order & C_COLUMNS) launches_before(); // L is B, which the launch before may write
            copy_all<true>(pipeline, w, &l_map, l.along, r.along);
        } else if (threadIdx.x == 32) {
            if (!(p.order & C_COLUMNS)) launches_before();
            copy_all<false>(pipeline, w, &r_map, r.along, r.along);
        }
        __syncwarp();
    } else {
        if (!TRANSPOSED) asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        multiply(pipeline, w, group - 1, l.along, r.along, {c, bias}, work, Recompute{a, b, stored, &p});
        __syncwarp();
    }
    cluster_sync(); // no CTA exits while others still copy to it or arrive at its barriers
}
