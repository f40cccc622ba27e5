// 2:4 × dense on the sparse tensor cores of compute capability 9.0 (wgmma.mma_async.sp), for many columns.
//
// The matrix is packed in pieces of 64 rows by 64 columns, each as the instruction wants it in shared memory, so that bulk
// copies bring them. Tiles of B come through a tensor map, which each block makes for itself. One thread of a block
// does all the copying, STAGES ahead; two groups of four warps multiply half of the tile's rows each.
//
// BLOCKS_DOWN × BLOCKS_ACROSS blocks are a cluster, whose tiles are neighbours: what several of them need each brings a part of, for
// all. So what a stage takes from the L2 cache is (VALUES + PLACES) / BLOCKS_ACROSS + B_BYTES / BLOCKS_DOWN. Clusters take tiles in turn; while
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
#define SHARED_BYTES (STAGES * (B_BYTES + ROWS / 64 * (PIECE_VALUES + PIECE_PLACES))) // of stages; behind, barriers and a tensor map
#define MOST_STAGES 16

static_assert(SLAB / BLOCKS_DOWN % 1024 == 0 && B_BYTES % 1024 == 0, "tiles of B keep the exchange of chunks");

// Each block's tensor map of B. Launches of a module follow each other.
__device__ TileMap maps[MOST_BLOCKS];

// slabs_inside returns how many of 64 columns, of most from column col on, B has.
__device__ __forceinline__ u32 slabs_inside(const Params &p, u32 col, u32 most) { return col < p.n ? min(most, (p.n - col + 63) / 64) : 0; }

__device__ __forceinline__ u32 load_shared(u32 at) {
    u32 x;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(at) : "memory");
    return x;
}

// A block's work with tiles of 128·TALL rows.
template <int TALL> struct Work {
    static constexpr u32 TILE_ROWS = 128 * TALL, VALUES = 2 * TALL * PIECE_VALUES, PLACES = 2 * TALL * PIECE_PLACES;
    static constexpr u32 STAGE_BYTES = B_BYTES + VALUES + PLACES;
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

    __device__ __forceinline__ void start() const {
        for (u32 s = 0; s < RING; s++) {
            barrier_init(full + 8 * s, 1);
            barrier_init(empty + 8 * s, 8 * CLUSTER); // warps
        }
        barrier_fence();
    }

    // bring is one thread's work: all copies. A stage is free once all warps of the cluster have read it. Columns of B past
    // the matrix are left as they are: zeros would take long, and what is computed of them is never stored.
    __device__ __forceinline__ void bring(const unsigned char *values, const unsigned char *places, const TileMap *map, const Params &p) const {
        u16 a_blocks = 0, b_blocks = ((1 << BLOCKS_DOWN) - 1) << BLOCKS_DOWN * across;
        for (int i = 0; i < BLOCKS_ACROSS; i++) a_blocks |= 1 << (i * BLOCKS_DOWN + down);
        u32 last = (p.rows + 255) / 256 * 256 - TILE_ROWS, stage = 0, parity = 1;
        for (u32 tile = cluster; tile < tiles; tile += clusters) {
            u32 r = min(row(tile), last), c = col(tile); // a tile of the last cluster may lie past the matrix
            u64 piece = (u64)(r / 256) * steps * 4 + r % 256 / 64;
            const unsigned char *v = values + piece * PIECE_VALUES + across * (VALUES / BLOCKS_ACROSS);
            const unsigned char *q = places + piece * PIECE_PLACES + across * (PLACES / BLOCKS_ACROSS);
            u32 slabs = slabs_inside(p, c, COLS / 64);
            for (u32 k = 0; k < steps; k++) {
                u32 to = ring + stage * STAGE_BYTES, bar = full + 8 * stage;
                barrier_wait(empty + 8 * stage, parity);
                barrier_expect(bar, slabs * SLAB + VALUES + PLACES);
                for (u32 i = 0; i < slabs; i++)
                    tile_copy(to + i * SLAB + down * (SLAB / BLOCKS_DOWN), map, k * DEPTH + down * (DEPTH / BLOCKS_DOWN), c + 64 * i, bar, b_blocks);
                to += B_BYTES + across * (VALUES / BLOCKS_ACROSS);
                bulk_copy(to, v + (u64)k * (4 * PIECE_VALUES), VALUES / BLOCKS_ACROSS, bar, a_blocks);
                to += VALUES - across * ((VALUES - PLACES) / BLOCKS_ACROSS);
                bulk_copy(to, q + (u64)k * (4 * PIECE_PLACES), PLACES / BLOCKS_ACROSS, bar, a_blocks);
                if (++stage == RING) stage = 0, parity ^= 1;
            }
        }
    }

    // multiply is the work of group 0 or 1 of four warps.
    template <class F> __device__ __forceinline__ void multiply(u32 group, void *c, const Params &p, F recompute) const {
        u32 lane = threadIdx.x % 128, stage = 0, parity = 0, before;
        auto release = [&](u32 s) { // each warp by a lane for each block
            __syncwarp();
            if (lane % 32 < CLUSTER) barrier_arrive(empty + 8 * s, lane % 32);
        };
#pragma unroll 1
        for (u32 tile = cluster; tile < tiles; tile += clusters) {
            float acc[TALL][1][COLS / 8][4] = {};
            auto step = [&](u32 k, u32 (&places)[TALL], u32 (&last)[TALL]) {
                u32 b = ring + stage * STAGE_BYTES, a = b + B_BYTES + group * TALL * PIECE_VALUES;
                u32 meta = b + B_BYTES + VALUES + group * TALL * PIECE_PLACES + 4 * lane;
                barrier_wait(full + 8 * stage, parity);
#pragma unroll
                for (int i = 0; i < TALL; i++) places[i] = load_shared(meta + i * PIECE_PLACES);
                wgmma_fence();
#pragma unroll
                for (int i = 0; i < TALL; i++) wgmma_sparse<ELEM, 0>(acc[i][0], rows_of_8(a + i * PIECE_VALUES), swizzled(b, SLAB), places[i]);
#pragma unroll
                for (int i = 0; i < TALL; i++)
                    wgmma_sparse<ELEM, 1>(acc[i][0], rows_of_8(a + i * PIECE_VALUES + PIECE_VALUES / 2), swizzled(b + SLAB / 2, SLAB), places[i]);
                wgmma_commit();
                if (k > 0) {
                    wgmma_wait<1>(); // the step before is done
#pragma unroll
                    for (int i = 0; i < TALL; i++) wgmma_held(last[i]);
                    release(before);
                }
                before = stage;
                if (++stage == RING) stage = 0, parity ^= 1;
            };
            u32 places[2][TALL];
#pragma unroll 1
            for (u32 k = 0; k < steps; k += 2) {
                step(k, places[0], places[1]);
                if (k + 1 < steps) step(k + 1, places[1], places[0]);
            }
            wgmma_wait<0>();
            if (steps > 0) release(before);
#pragma unroll
            for (int i = 0; i < TALL; i++) {
                wgmma_hold(acc[i][0]);
                wgmma_held(places[0][i]);
                wgmma_held(places[1][i]);
                store_tiles(acc[i], c, p, row(tile) + (group * TALL + i) * 64 + lane / 32 * 16, col(tile), recompute);
            }
        }
    }
};

#include "group24_few.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, 1) __cluster_dims__(CLUSTER, 1, 1)
    ENTRY(const u16 *__restrict__ values, const u32 *__restrict__ index, const u32 *__restrict__ mask, const u16 *__restrict__ b,
          void *__restrict__ c, const __grid_constant__ Params p) {
    extern __shared__ __align__(1024) unsigned char smem[];
    Work<ROWS / 128> tall(shared_address(smem), p);
    Work<1> small(shared_address(smem), p);
    Few<64> few(smem, p);
    Few<128> more(smem, p);
    u32 group = threadIdx.x / 128;
    bool narrow = p.n <= 64;
    EntriesGroup24 entries{values, index, mask, b, &p};
    TileMap *map = &maps[blockIdx.x % MOST_BLOCKS]; // they are all the same
    if (threadIdx.x < 32) tile_map<ELEM>(map, (TileMap *)(smem + SHARED_BYTES + 16 * MOST_STAGES), b, p.cols, p.ldb, (u64)p.ldb * 2, DEPTH / BLOCKS_DOWN);
    if (threadIdx.x == 0) {
        if (p.tall == ROWS) tall.start();
        else if (p.tall == 128) small.start();
        else if (narrow) few.start();
        else more.start();
    }
    cluster_sync();
    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) {
            const unsigned char *v = (const unsigned char *)values, *q = (const unsigned char *)index;
            tile_map_acquire(map);
            if (p.tall == ROWS) tall.bring(v, q, map, p);
            else if (p.tall == 128) small.bring(v, q, map, p);
            else if (narrow) few.bring(v, q, map, p);
            else more.bring(v, q, map, p);
        }
        __syncwarp();
        if (p.tall < 128) cluster_sync();
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        if (p.tall == ROWS) tall.multiply(group - 1, c, p, entries);
        else if (p.tall == 128) small.multiply(group - 1, c, p, entries);
        else if (narrow) few.multiply(group - 1, c, p, entries);
        else more.multiply(group - 1, c, p, entries);
        __syncwarp();
    }
    cluster_sync(); // no block leaves while others still copy to it, arrive at its barriers or read its sums
}
