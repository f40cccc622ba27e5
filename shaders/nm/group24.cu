// 2:4 × dense on the sparse tensor cores of compute capability 9.0 (wgmma.mma_async.sp), for many columns.
//
// The matrix is packed in pieces of 64 rows by 64 columns, whose values lie as the instruction wants them in shared memory, so
// that bulk copies bring them; their places go to registers. Tiles of B come through a tensor map, which each block makes for
// itself. One thread of a block does all the copying, STAGES ahead; two groups of four warps multiply half of the tile's
// rows each.
//
// BLOCKS_DOWN × BLOCKS_ACROSS blocks are a cluster, whose tiles are neighbours: what several of them need each brings a part of, for
// all. So what a stage takes from the L2 cache is VALUES / BLOCKS_ACROSS + B_BYTES / BLOCKS_DOWN. Clusters take tiles in turn; while
// one is written the next one's first stages are on their way.
//
// A tile has p.tall rows: ROWS, 128, or, for few columns, 64 (group24_few.cuh).
//
// Compile-time constants: ENTRY, ELEM (half.cuh), ROWS (128 or 256), COLS (64, 128 or 256), STAGES, BLOCKS_DOWN,
// BLOCKS_ACROSS, MOST_BLOCKS. Dynamic shared memory: SHARED_BYTES + 384.

#include "group24.cuh"
#include "../include/bulk.cuh"
#include "../include/hopper_sparse.cuh"

#define THREADS 384
#define DEPTH 64                 // columns of A of a stage
#define SLAB (DEPTH * 128)       // bytes of 64 columns of B
#define B_BYTES (COLS / 64 * SLAB)
#define CLUSTER (BLOCKS_DOWN * BLOCKS_ACROSS)
#define SHARED_BYTES (STAGES * (B_BYTES + ROWS / 64 * PIECE_VALUES)) // of stages; behind, barriers and a tensor map
#define MOST_STAGES 16

static_assert(SLAB / BLOCKS_DOWN % 1024 == 0 && B_BYTES % 1024 == 0, "tiles of B keep the exchange of chunks");

// Each block's tensor map of B. Launches of a module follow each other.
__device__ TileMap maps[MOST_BLOCKS];

// slabs_inside returns how many of 64 columns, of most from column col on, B has.
__device__ __forceinline__ u32 slabs_inside(const Params &p, u32 col, u32 most) { return col < p.n ? min(most, (p.n - col + 63) / 64) : 0; }

// load_places brings the places of four steps to a lane. (Not before what stands before it.)
__device__ __forceinline__ void load_places(u32 (&x)[4], const uint4 *from) {
    asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "l"(from) : "memory");
}

// four_steps does steps, the places of the four after next on their way: look(four, places) loads them, and step(k, places, at,
// those of the step before, at) multiplies. The instructions read registers as they run, so these are not loaded before
// step has waited for who reads them.
template <int TALL, class L, class S> __device__ __forceinline__ void four_steps(u32 steps, u32 (&places)[2][TALL][4], L look, S step) {
    if (steps > 0) look(0, places[0]);
    auto four = [&](u32 k, u32 (&x)[TALL][4], u32 (&y)[TALL][4]) {
        if (k >= steps) return;
        step(k, x, 0, y, 3);
        if (k + 4 < steps) look(k / 4 + 1, y);
        if (k + 1 < steps) step(k + 1, x, 1, x, 0);
        if (k + 2 < steps) step(k + 2, x, 2, x, 1);
        if (k + 3 < steps) step(k + 3, x, 3, x, 2);
    };
#pragma unroll 1
    for (u32 k = 0; k < steps; k += 8) {
        four(k, places[0], places[1]);
        four(k + 4, places[1], places[0]);
    }
    wgmma_wait<0>();
#pragma unroll
    for (int i = 0; i < TALL; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) wgmma_held(places[0][i][j]), wgmma_held(places[1][i][j]);
}

// A block's work with tiles of 128·TALL rows.
template <int TALL> struct Work {
    static constexpr u32 TILE_ROWS = 128 * TALL, VALUES = 2 * TALL * PIECE_VALUES, STAGE_BYTES = B_BYTES + VALUES;
    static constexpr u32 RING = SHARED_BYTES / STAGE_BYTES < MOST_STAGES ? SHARED_BYTES / STAGE_BYTES : MOST_STAGES;
    static_assert(RING >= 2, "a stage is brought while another is read");

    u32 ring, full, empty; // shared memory: stages, a barrier each for copies that have come and for stages that are read
    u32 down, across;      // of this block in its cluster
    u32 steps, high, tiles, cluster, clusters;

    __device__ __forceinline__ Work(u32 smem, const Params &p) : ring(smem), full(smem + SHARED_BYTES), empty(full + 8 * MOST_STAGES) {
        u32 rank = blockIdx.x % CLUSTER;
        down = rank % BLOCKS_DOWN, across = rank / BLOCKS_DOWN;
        steps = pieces24(p);
        high = (p.blocks + BLOCKS_DOWN - 1) / BLOCKS_DOWN;
        tiles = high * ((p.n + COLS * BLOCKS_ACROSS - 1) / (COLS * BLOCKS_ACROSS));
        cluster = blockIdx.x / CLUSTER, clusters = gridDim.x / CLUSTER;
    }
    __device__ __forceinline__ u32 row(u32 tile) const { return (tile % high * BLOCKS_DOWN + down) * TILE_ROWS; }
    __device__ __forceinline__ u32 col(u32 tile) const { return (tile / high * BLOCKS_ACROSS + across) * COLS; }

    // packed_row is row, or the last that is packed: a tile of the last cluster may lie past the matrix.
    __device__ __forceinline__ u32 packed_row(u32 tile, const Params &p) const { return min(row(tile), (p.rows + 255) / 256 * 256 - TILE_ROWS); }

    __device__ __forceinline__ void start() const {
        for (u32 s = 0; s < RING; s++) {
            barrier_init(full + 8 * s, 1);
            barrier_init(empty + 8 * s, 2 * CLUSTER);
        }
        barrier_fence();
    }

    // bring is one thread's work: all copies. A stage is free once all groups of the cluster have read it. Columns of B past
    // the matrix are left as they are: zeros would take long, and what is computed of them is never stored.
    __device__ __forceinline__ void bring(const unsigned char *values, const TileMap *map, const Params &p) const {
        u16 a_blocks = 0, b_blocks = ((1 << BLOCKS_DOWN) - 1) << BLOCKS_DOWN * across;
        for (int i = 0; i < BLOCKS_ACROSS; i++) a_blocks |= 1 << (i * BLOCKS_DOWN + down);
        u32 stage = 0, parity = 1;
        for (u32 tile = cluster; tile < tiles; tile += clusters) {
            u32 r = packed_row(tile, p), c = col(tile);
            const unsigned char *v = values + ((u64)(r / 256) * steps * 4 + r % 256 / 64) * PIECE_VALUES + across * (VALUES / BLOCKS_ACROSS);
            u32 slabs = slabs_inside(p, c, COLS / 64);
            for (u32 k = 0; k < steps; k++) {
                u32 to = ring + stage * STAGE_BYTES, bar = full + 8 * stage;
                barrier_wait(empty + 8 * stage, parity);
                barrier_expect(bar, slabs * SLAB + VALUES);
                for (u32 i = 0; i < slabs; i++)
                    tile_copy(to + i * SLAB + down * (SLAB / BLOCKS_DOWN), map, k * DEPTH + down * (DEPTH / BLOCKS_DOWN), c + 64 * i, bar, b_blocks);
                bulk_copy(to + B_BYTES + across * (VALUES / BLOCKS_ACROSS), v + (u64)k * (4 * PIECE_VALUES), VALUES / BLOCKS_ACROSS, bar, a_blocks);
                if (++stage == RING) stage = 0, parity ^= 1;
            }
        }
    }

    // multiply is the work of group 0 or 1 of four warps.
    template <class F> __device__ __forceinline__ void multiply(u32 group, const uint4 *places, Dest to, const Params &p, F recompute) const {
        u32 lane = threadIdx.x % 128, stage = 0, parity = 0, before;
        auto release = [&](u32 s) { // by a thread for each block
            if (lane < CLUSTER) barrier_arrive(empty + 8 * s, lane);
        };
#pragma unroll 1
        for (u32 tile = cluster; tile < tiles; tile += clusters) {
            float acc[TALL][1][COLS / 8][4] = {};
            u32 r = packed_row(tile, p);
            const uint4 *from = places + ((u64)(r / 256) * fours24(p) * 4 + r % 256 / 64 + group * TALL) * 128 + lane;
            auto look = [&](u32 four, u32 (&x)[TALL][4]) {
#pragma unroll
                for (int i = 0; i < TALL; i++) load_places(x[i], from + (u64)four * 512 + i * 128);
            };
            auto step = [&](u32 k, u32 (&x)[TALL][4], int at, u32 (&y)[TALL][4], int last) {
                u32 b = ring + stage * STAGE_BYTES, a = b + B_BYTES + group * TALL * PIECE_VALUES;
                barrier_wait(full + 8 * stage, parity);
                wgmma_fence();
#pragma unroll
                for (int i = 0; i < TALL; i++) wgmma_sparse<ELEM, 0>(acc[i][0], rows_of_8(a + i * PIECE_VALUES), swizzled(b, SLAB), x[i][at]);
#pragma unroll
                for (int i = 0; i < TALL; i++)
                    wgmma_sparse<ELEM, 1>(acc[i][0], rows_of_8(a + i * PIECE_VALUES + PIECE_VALUES / 2), swizzled(b + SLAB / 2, SLAB), x[i][at]);
                wgmma_commit();
                if (k > 0) {
                    wgmma_wait<1>(); // the step before is done
#pragma unroll
                    for (int i = 0; i < TALL; i++) wgmma_held(y[i][last]);
                    release(before);
                }
                before = stage;
                if (++stage == RING) stage = 0, parity ^= 1;
            };
            u32 places[2][TALL][4];
            four_steps<TALL>(steps, places, look, step);
            if (steps > 0) release(before);
#pragma unroll
            for (int i = 0; i < TALL; i++) {
                wgmma_hold(acc[i][0]);
                store_tiles(acc[i], to, p, row(tile) + (group * TALL + i) * 64 + lane / 32 * 16, col(tile), recompute);
            }
        }
    }
};

#include "group24_few.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, 1) __cluster_dims__(CLUSTER, 1, 1)
    ENTRY(const u16 *__restrict__ values, const u32 *__restrict__ index, const u32 *__restrict__ mask, const u16 *__restrict__ b,
          const float *__restrict__ bias, void *__restrict__ c, const __grid_constant__ Params p) {
    extern __shared__ __align__(1024) unsigned char smem[];
    Work<ROWS / 128> tall(shared_address(smem), p);
    Work<1> small(shared_address(smem), p);
    Few<64> few(smem, p);
    Few<128> more(smem, p);
    u32 group = threadIdx.x / 128;
    bool is_few = p.n <= 64;
    EntriesGroup24 entries{values, index, mask, b, &p};
    TileMap *map = &maps[blockIdx.x % MOST_BLOCKS]; // they are all the same
    if (threadIdx.x < 32) tile_map<ELEM>(map, (TileMap *)(smem + SHARED_BYTES + 16 * MOST_STAGES), b, p.cols, p.ldb, (u64)p.ldb * 2, DEPTH / BLOCKS_DOWN);
    if (threadIdx.x == 0) {
        if (p.tall == ROWS) tall.start();
        else if (p.tall == 128) small.start();
        else if (is_few) few.start();
        else more.start();
    }
    cluster_sync();
    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) {
            const unsigned char *v = (const unsigned char *)values;
            tile_map_acquire(map);
            if (p.tall == ROWS) tall.bring(v, map, p);
            else if (p.tall == 128) small.bring(v, map, p);
            else if (is_few) few.bring(v, map, p);
            else more.bring(v, map, p);
        }
        __syncwarp();
        if (p.tall < 128) cluster_sync();
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        if (p.tall == ROWS) tall.multiply(group - 1, (const uint4 *)index, {c, bias}, p, entries);
        else if (p.tall == 128) small.multiply(group - 1, (const uint4 *)index, {c, bias}, p, entries);
        else if (is_few) few.multiply(group - 1, (const uint4 *)index, {c, bias}, p, entries);
        else more.multiply(group - 1, (const uint4 *)index, {c, bias}, p, entries);
        __syncwarp();
    }
    cluster_sync(); // no block leaves while others still copy to it, arrive at its barriers or read its sums
}
