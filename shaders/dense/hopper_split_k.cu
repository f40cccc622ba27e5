// Computes: C (rows × n) = alpha·A·B + beta·C, dense, f16 or bf16, sums in f32, by wgmma on compute capability 9.0,
// where C has few tiles.
// Tile: a CTA computes (ROWS × COLS) for all of K, or for one of SPLITS ranges of K (split-K). A cluster is either the
// SPLITS CTAs of one tile, which add partial sums in order through distributed shared memory, or CLUSTER_ROWS ×
// CLUSTER_COLS neighbouring tiles, which multicast what they share. A consumer warpgroup computes (64 × COLS).
// Data movement: two producer threads, one for each operand, issue TMA copies into STAGES stage buffers (hopper.cuh). A
// stage is empty from its release to its next copy. To keep that short there is a loop for each layout of an operand,
// in which the number of copies and their addresses are compile-time constants. A launch may begin while the one before
// still runs, and prefetches A.
// Bound by: memory bandwidth and latency.
// Constants: ENTRY, those of hopper.cuh, SPLITS (1 if CTAs multicast), EXCHANGE (bytes). Dynamic shared memory: STAGES
// stages of STAGE_BYTES, 256 bytes, and EXCHANGE.

#include "hopper.cuh"

#define MULTIPLY (128 * GROUPS) // consumer threads
#define THREADS (MULTIPLY + 64)
#define TILES (COLS / 8) // fragments of 8 columns in a tile
#define CLUSTER (SPLITS * MULTICAST)

static_assert(SPLITS == 1 || MULTICAST == 1, "blocks of a cluster have parts of a sum, or neighbouring tiles");
static_assert(CLUSTER_ROWS == 1, "tiles side by side are all that was tried");
static_assert(16 * STAGES + 8 <= 256, "barriers behind the stages");

using Sums = Exchange<TILES, SPLITS, MULTIPLY / 32>;
static_assert(Sums::BYTES == EXCHANGE, "the launch has as much shared memory");

// CTATile is the CTA's tile at (row, col), and the steps first to last - 1 of its sum that this CTA has.
struct CTATile {
    u32 split, down, across, row, col, first, last;

    __device__ __forceinline__ CTATile(const Params &p) {
        u32 tile = blockIdx.x / CLUSTER, rank = blockIdx.x % CLUSTER, steps = p.cols / DEPTH + (p.cols % DEPTH != 0);
        split = SPLITS > 1 ? rank : 0, down = SPLITS > 1 ? 0 : rank % CLUSTER_ROWS,
        across = SPLITS > 1 ? 0 : rank / CLUSTER_ROWS;
        row = (tile / p.across * CLUSTER_ROWS + down) * ROWS, col = (tile % p.across * CLUSTER_COLS + across) * COLS;
        first = (u32)((u64)steps * split / SPLITS), last = (u32)((u64)steps * (split + 1) / SPLITS);
    }
};

// copy_left: body of the producer thread of L, which also sets how many bytes of both operands a stage's barrier
// expects. copy_right: body of the producer thread of R.
__device__ __forceinline__ void copy_left(const Pipeline &pipeline, const CTATile &x, const TileMap *map, bool along,
                                          u32 bytes) {
    u16 blocks = 0;
    for (u32 i = 0; i < CLUSTER_COLS; i++) blocks |= 1 << (i * CLUSTER_ROWS + x.down);
    auto each = [&](bool along) __attribute__((always_inline)) {
        copies<STAGES>(pipeline.empty, x.first, x.last, [&](u32 s, u32 k) {
            barrier_expect(pipeline.full + 8 * s, bytes);
            issue_copies<ROWS, CLUSTER_COLS>(pipeline.stages + s * STAGE_BYTES, map, along, x.row, k * DEPTH, GROUPS,
                                             x.across, pipeline.full + 8 * s, blocks);
        });
    };
    if (along) each(true);
    else each(false);
}
__device__ __forceinline__ void copy_right(const Pipeline &pipeline, const CTATile &x, const TileMap *map, bool along,
                                           u32 slabs) {
    if (!along && slabs == 0)
        return; // The tile is past R: nothing would keep the pipeline from going on while this thread is late.
    u16 blocks = ((1 << CLUSTER_ROWS) - 1) << CLUSTER_ROWS * x.across;
    auto each = [&](bool along, u32 slabs) __attribute__((always_inline)) {
        copies<STAGES>(pipeline.empty, x.first, x.last, [&](u32 s, u32 k) {
            issue_copies<COLS, CLUSTER_ROWS>(pipeline.stages + s * STAGE_BYTES + L_BYTES, map, along, x.col, k * DEPTH,
                                             slabs, x.down, pipeline.full + 8 * s, blocks);
        });
    };
    if (along) each(true, 0);
    else if (slabs == SLABS) each(false, SLABS);
    else each(false, slabs);
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) __cluster_dims__(CLUSTER, 1, 1)
    ENTRY(const Elem *__restrict__ a, const u32 *__restrict__ stored, const Elem *__restrict__ b,
          const float *__restrict__ bias, void *__restrict__ c, float *__restrict__ work,
          const __grid_constant__ Params p, const __grid_constant__ TileMap l_map,
          const __grid_constant__ TileMap r_map) {
    extern __shared__ __align__(1024) unsigned char smem[];
    Operand l = left(a, b, p), r = right(a, b, p);
    CTATile x(p);
    Pipeline pipeline(shared_address(smem), x.split);
    Sums sums{pipeline.full + 256, pipeline.empty + 8 * STAGES, x.split};
    u32 warp = threadIdx.x / 32;
    bool transposed = p.order & C_COLUMNS; // L is B, and R is A
    if (threadIdx.x == MULTIPLY) {
        prefetch(&l_map);
        pipeline.start();
        if (SPLITS > 1) sums.start();
    } else if (threadIdx.x == MULTIPLY + 32) prefetch(&r_map);
    __syncthreads();
    if (CLUSTER > 1) cluster_arrive();
    if (MULTICAST > 1) cluster_wait();
    if (warp >= MULTIPLY / 32) {
        bool left = warp == MULTIPLY / 32;
        if (threadIdx.x % 32 == 0) {
            if (left == transposed) launches_before(), launches_after();
            u32 slabs = slabs_of(p, x.col);
            if (left) copy_left(pipeline, x, &l_map, l.along, L_BYTES + r_bytes(slabs, r.along));
            else copy_right(pipeline, x, &r_map, r.along, slabs);
        }
        __syncwarp();
        if (SPLITS > 1) cluster_wait();
    } else {
        float acc[TILES][4] = {};
        PipelineState at = {0, 0};
        if (!by_columns_c(p.store)) fetch_before<16, COLS>({c, bias}, p, x.row + 16 * warp, x.col);
        sum(acc, pipeline, at, x.first, x.last, warp / 4, l.along, r.along);
        launches_before();
        __syncwarp();
        if (SPLITS > 1) cluster_wait();
        add_and_store(acc, sums, warp, {c, bias}, p, x.row, x.col, Recompute{a, b, stored, &p});
    }
    if (MULTICAST > 1) cluster_sync(); // no CTA exits while others still copy to it or arrive at its barriers
}
