// Computes: C = alpha·A·B + beta·C for few columns, A (rows × cols) 2:4 sparse, f16 or bf16, on the sparse tensor cores
// of compute capability 9.0 (wgmma.mma_async.sp).
// Tile: a cluster computes (128 × COLS). Split-K: each of its SPLITS CTAs sums a range of A's columns, and they add
// partial sums in order through distributed shared memory. Two consumer warpgroups multiply 64 rows each.
// Data movement: the matrix is packed as for group24.cu. Two producer threads copy A and B, STAGES deep. CTAs are so
// small that those of the next launch fit on the same multiprocessors: these begin early and prefetch A.
// Bound by: the bytes of A.
// Constants: ENTRY, ELEM (half.cuh), COLS (16, 32, 64 or 128), STAGES, SPLITS, RESIDENT (CTAs of a multiprocessor),
// EXCHANGE (bytes). Dynamic shared memory: STAGES stages of STAGE_BYTES, 256 bytes, and EXCHANGE.

#include "group24.cuh"
#include "../include/cluster_split_k.cuh"

#define MULTIPLY 256 // threads
#define THREADS (MULTIPLY + 64)
#define TALL 128 // rows of a tile
#define WIDE (COLS < 64 ? COLS : 64) // columns of a slab of B
#define B_SLAB (DEPTH * 2 * WIDE)
#define VALUES (2 * PIECE_VALUES)
#define STAGE_BYTES (VALUES + SLABS * B_SLAB)
#define TILES (COLS / 8)
#define SLABS (COLS / WIDE)

static_assert(16 * STAGES + 8 <= 256, "barriers behind the stages");

using Sums = Exchange<TILES, SPLITS, MULTIPLY / 32>;
static_assert(Sums::BYTES == EXCHANGE, "the launch has as much shared memory");

// What a block computes: a part of the sum, stages first to last - 1, of the tile at (row, col). Parts begin with a
// group of four stages, whose places lie together.
struct CTATile {
    u32 split, row, col, first, last;

    __device__ __forceinline__ CTATile(const Params &p) {
        u32 tile = blockIdx.x / SPLITS, fours = fours24(p);
        split = blockIdx.x % SPLITS;
        row = tile % p.blocks * TALL, col = tile / p.blocks * COLS;
        first = (u32)((u64)fours * split / SPLITS) * 4,
        last = min((u32)((u64)fours * (split + 1) / SPLITS) * 4, pieces24(p));
    }
    __device__ __forceinline__ u32 steps() const { return last - first; }
};

// Shared memory: stages, a barrier each for copies that have come and for stages that have been read.
struct Pipeline {
    u32 stages, full, empty;

    __device__ __forceinline__ Pipeline(u32 at)
        : stages(at), full(at + STAGES * STAGE_BYTES), empty(full + 8 * STAGES) {}
    __device__ __forceinline__ void start() const {
        for (u32 s = 0; s < STAGES; s++) barrier_init(full + 8 * s, 1), barrier_init(empty + 8 * s, 2);
        barrier_fence();
    }
};

// bulk_copy_here is bulk_copy for this block alone, which is faster.
__device__ __forceinline__ void bulk_copy_here(u32 to, const void *from, u32 bytes, u32 barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

// copy_values is the work of a thread, which says too how much is to come of both operands; copy_columns is another's,
// with a loop of its own for tiles that lie wholly inside B.
__device__ __forceinline__ void copy_values(const Pipeline &pipeline, const CTATile &x, const unsigned char *values,
                                            u32 slabs, const Params &p) {
    const unsigned char *from = values + ((u64)(x.row / 256) * pieces24(p) * 4 + x.row % 256 / 64) * PIECE_VALUES;
    copies<STAGES>(pipeline.empty, x.first, x.last, [&](u32 s, u32 k) {
        barrier_expect(pipeline.full + 8 * s, VALUES + slabs * B_SLAB);
        bulk_copy_here(pipeline.stages + s * STAGE_BYTES, from + (u64)k * (4 * PIECE_VALUES), VALUES,
                       pipeline.full + 8 * s);
    });
}
__device__ __forceinline__ void copy_columns(const Pipeline &pipeline, const CTATile &x, const TileMap *map,
                                             u32 slabs) {
    auto each = [&](u32 slabs) __attribute__((always_inline)) {
        copies<STAGES>(pipeline.empty, x.first, x.last, [&](u32 s, u32 k) {
            for (u32 j = 0; j < slabs; j++)
                tile_copy_here(pipeline.stages + s * STAGE_BYTES + VALUES + j * SLAB, map, k * DEPTH, x.col + 64 * j,
                               pipeline.full + 8 * s);
        });
    };
    if (slabs == SLABS) each(SLABS);
    else each(slabs);
}
// copy_lines is copy_columns for a column-major B: a stage has COLS lines of DEPTH elements.
__device__ __forceinline__ void copy_lines(const Pipeline &pipeline, const CTATile &x, const TileMap *map) {
    copies<STAGES>(pipeline.empty, x.first, x.last, [&](u32 s, u32 k) {
        tile_copy_here(pipeline.stages + s * STAGE_BYTES + VALUES, map, x.col, k * DEPTH, pipeline.full + 8 * s);
    });
}

// multiply is the work of group 0 or 1 of four warps. TRANS is 0 if B is column-major.
template <int TRANS>
__device__ __forceinline__ void multiply(float (&acc)[TILES][4], const Pipeline &pipeline, const CTATile &x,
                                         const uint4 *places, u32 group, const Params &p) {
    u32 lane = threadIdx.x % 128, stage = 0, parity = 0, before;
    const uint4 *from =
        places + (((u64)(x.row / 256) * fours24(p) + x.first / 4) * 4 + x.row % 256 / 64 + group) * 128 + lane;
    auto look = [&](u32 four, u32(&y)[1][4]) { load_places(y[0], from + (u64)four * 512); };
    auto step = [&](u32 k, u32(&y)[1][4], int at, u32(&z)[1][4], int last) {
        u32 a = pipeline.stages + stage * STAGE_BYTES + group * PIECE_VALUES,
            b = pipeline.stages + stage * STAGE_BYTES + VALUES;
        barrier_wait(pipeline.full + 8 * stage, parity);
        wgmma_fence();
        u64 lower = TRANS ? across_of<WIDE>(b, SLAB) : swizzled(b, SLAB),
            upper = TRANS ? across_of<WIDE>(b + DEPTH / 2 * 2 * WIDE, SLAB) : swizzled(b + DEPTH, SLAB);
        wgmma_sparse<ELEM, 0, TRANS>(acc, rows_of_8(a), lower, y[0][at]);
        wgmma_sparse<ELEM, 1, TRANS>(acc, rows_of_8(a + PIECE_VALUES / 2), upper, y[0][at]);
        wgmma_commit();
        if (k > 0) {
            wgmma_wait<1>(); // the step before is done
            wgmma_held(z[0][last]);
            if (lane == 0) barrier_arrive(pipeline.empty + 8 * before, x.split);
        }
        before = stage;
        if (++stage == STAGES) stage = 0, parity ^= 1;
    };
    u32 held[2][1][4];
    four_steps<1>(x.steps(), held, look, step);
    wgmma_hold(acc);
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT) __cluster_dims__(SPLITS, 1, 1)
    ENTRY(const u16 *__restrict__ values, const u32 *__restrict__ index, const u32 *__restrict__ mask,
          const u16 *__restrict__ b, const float *__restrict__ bias, void *__restrict__ c,
          const __grid_constant__ Params p, const __grid_constant__ TileMap map) {
    extern __shared__ __align__(1024) unsigned char smem[];
    CTATile x(p);
    Pipeline pipeline(shared_address(smem));
    Sums sums{pipeline.full + 256, pipeline.empty + 8 * STAGES, x.split};
    u32 warp = threadIdx.x / 32;
    if (threadIdx.x == MULTIPLY) {
        pipeline.start();
        if (SPLITS > 1) sums.start();
    } else if (threadIdx.x == MULTIPLY + 32) prefetch(&map);
    __syncthreads();
    if (SPLITS > 1) cluster_arrive();
    if (warp >= MULTIPLY / 32) {
        bool lines = by_columns_b(p.store);
        u32 slabs = lines ? SLABS : x.col < p.n ? min(SLABS, (p.n - x.col + WIDE - 1) / WIDE) : 0;
        if (threadIdx.x == MULTIPLY) copy_values(pipeline, x, (const unsigned char *)values, slabs, p);
        else if (threadIdx.x == MULTIPLY + 32) {
            launches_before();
            launches_after();
            if (lines) copy_lines(pipeline, x, &map);
            else copy_columns(pipeline, x, &map, slabs);
        }
        __syncwarp();
        if (SPLITS > 1) cluster_wait();
    } else {
        float acc[TILES][4] = {};
        if (by_columns_b(p.store)) multiply<0>(acc, pipeline, x, (const uint4 *)index, warp / 4, p);
        else multiply<1>(acc, pipeline, x, (const uint4 *)index, warp / 4, p);
        launches_before();
        EntriesGroup24 entries{values, index, mask, b, &p};
        __syncwarp();
        if (SPLITS > 1) cluster_wait();
        add_and_store(acc, sums, warp, {c, bias}, p, x.row, x.col, entries);
    }
}
