// Computes: C = alpha·A·B + beta·C for many columns, A (rows × cols) 2:4 sparse, f16 or bf16, on the sparse tensor
// cores of compute capability 9.0 (wgmma.mma_async.sp).
// Tile: a CTA computes (p.tall × COLS), p.tall = 256, or 128 with the cluster's CTAs one above the other; for few
// columns (p.wide is 1) the CTAs of a cluster split K, (128 or 64 × COLS) (group24_few.cuh). Two consumer warpgroups
// take half of the rows each. Clusters take tiles in turn; while one is stored the next one's first stages are loaded.
// Data movement: the matrix is packed in tiles (64 × 64) whose values lie as the instruction reads them from shared
// memory: bulk copies load them; metadata goes to registers. Tiles of B, of either order, come by TMA. One producer
// thread copies, STAGES deep. The two CTAs of a cluster have neighbouring tiles: each loads half of what both need
// and multicasts it. A launch begins while the one before still stores its last tiles, and with few columns
// prefetches A. (With many columns that made all steps slower.)
// Bound by: the sparse tensor cores for wide C, L2 to shared memory else.
// Constants: ENTRY, ELEM (half.cuh), COLS (64, 128 or 256), STAGES (of a tile of 256 rows). Dynamic shared memory:
// SHARED_BYTES + 256 + 8·REMAINDER_BYTES (remainder hooks, remainder.cuh).

#include "group24.cuh"
#include "../include/bulk.cuh"
#include "../include/launches.cuh"
#include "../include/store_columns.cuh"
#include "../include/hopper_sparse.cuh"

#define THREADS 384
#define B_BYTES (COLS / 64 * SLAB)
#define CLUSTER 2
#define SHARED_BYTES (STAGES * (B_BYTES + 4 * PIECE_VALUES)) // of stages; behind, barriers
#define MOST_STAGES 16

// slabs_inside returns how many of 64 columns, of most from column col on, B has.
__device__ __forceinline__ u32 slabs_inside(const Params &p, u32 col, u32 most) {
    return col < p.n ? min(most, (p.n - col + 63) / 64) : 0;
}

// in_lines reports whether B is column-major. A remainder takes a row-major B only.
__device__ __forceinline__ bool in_lines(const Params &p) { return REMAINDER_BYTES == 0 && by_columns_b(p.store); }

// store_inside stores a warp's 16 rows of sums within C's columns, 16 columns at a time.
template <int N, class F>
__device__ __forceinline__ void store_inside(float (&acc)[N][4], Dest to, const Params &p, u32 row, u32 col,
                                             F recompute) {
    if (by_columns_c(p.store)) return store_columns<16>(acc, to, p, row, col, p.n, recompute);
    store_sums<16>(reinterpret_cast<float(&)[1][N][4]>(acc), to, p, row, col, p.n, recompute);
}

// A block's work with tiles of 128·TALL rows, the clusters being DOWN × ACROSS blocks.
template <int TALL, int DOWN> struct Work {
    static constexpr u32 ACROSS = CLUSTER / DOWN;
    static constexpr u32 TILE_ROWS = 128 * TALL, VALUES = 2 * TALL * PIECE_VALUES, STAGE_BYTES = B_BYTES + VALUES;
    static constexpr u32 RING = SHARED_BYTES / STAGE_BYTES < MOST_STAGES ? SHARED_BYTES / STAGE_BYTES : MOST_STAGES;
    static_assert(RING >= 2, "a stage is brought while another is read");
    static_assert(SLAB / DOWN % 1024 == 0, "parts of a tile of B keep the exchange of chunks");

    u32 pipeline, full,
        empty; // shared memory: stages, a barrier each for copies that have come and for stages that are read
    u32 down, across; // of this block in its cluster
    u32 steps, high, tiles, cluster, clusters;

    __device__ __forceinline__ Work(u32 smem, const Params &p)
        : pipeline(smem), full(smem + SHARED_BYTES), empty(full + 8 * MOST_STAGES) {
        u32 rank = blockIdx.x % CLUSTER;
        down = rank % DOWN, across = rank / DOWN;
        steps = pieces24(p);
        high = (p.blocks + DOWN - 1) / DOWN;
        tiles = high * ((p.n + COLS * ACROSS - 1) / (COLS * ACROSS));
        cluster = blockIdx.x / CLUSTER, clusters = gridDim.x / CLUSTER;
    }
    __device__ __forceinline__ u32 row(u32 tile) const { return (tile % high * DOWN + down) * TILE_ROWS; }
    __device__ __forceinline__ u32 col(u32 tile) const { return (tile / high * ACROSS + across) * COLS; }

    // packed_row is row, or the last that is packed: a tile of the last cluster may lie past the matrix.
    __device__ __forceinline__ u32 packed_row(u32 tile, const Params &p) const {
        return min(row(tile), (p.rows + 255) / 256 * 256 - TILE_ROWS);
    }

    static __device__ __forceinline__ bool lines(const Params &p) { return in_lines(p); }

    __device__ __forceinline__ void start() const {
        for (u32 s = 0; s < RING; s++) {
            barrier_init(full + 8 * s, 1);
            barrier_init(empty + 8 * s, 2 * CLUSTER);
        }
        barrier_fence();
    }

    // produce: body of the producer thread. A stage is free once all groups of the cluster have read it. Columns of B
    // past the matrix are not loaded: zeros would take long, and their results are never stored.
    __device__ __forceinline__ void produce(const unsigned char *values, const TileMap *map, const Params &p) const {
        u16 a_blocks = 0, b_blocks = ((1 << DOWN) - 1) << DOWN * across;
        for (int i = 0; i < ACROSS; i++) a_blocks |= 1 << (i * DOWN + down);
        u32 stage = 0, parity = 1;
        launches_before();
        for (u32 tile = cluster; tile < tiles; tile += clusters) {
            u32 r = packed_row(tile, p), c = col(tile);
            const unsigned char *v =
                values + ((u64)(r / 256) * steps * 4 + r % 256 / 64) * PIECE_VALUES + across * (VALUES / ACROSS);
            bool lines = in_lines(p);
            u32 slabs = lines ? COLS / 64 : slabs_inside(p, c, COLS / 64);
            for (u32 k = 0; k < steps; k++) {
                u32 to = pipeline + stage * STAGE_BYTES, bar = full + 8 * stage;
                barrier_wait(empty + 8 * stage, parity);
                barrier_expect(bar, slabs * SLAB + VALUES);
                if (lines)
                    tile_copy(to + down * (B_BYTES / DOWN), map, c + down * (COLS / DOWN), k * DEPTH, bar, b_blocks);
                for (u32 i = 0; !lines && i < slabs; i++)
                    tile_copy(to + i * SLAB + down * (SLAB / DOWN), map, k * DEPTH + down * (DEPTH / DOWN), c + 64 * i,
                              bar, b_blocks);
                bulk_copy(to + B_BYTES + across * (VALUES / ACROSS), v + (u64)k * (4 * PIECE_VALUES), VALUES / ACROSS,
                          bar, a_blocks);
                if (++stage == RING) stage = 0, parity ^= 1;
            }
        }
    }

    // multiply is the work of group 0 or 1 of four warps. TRANS is 0 if B is column-major.
    template <int TRANS, class F>
    __device__ __forceinline__ void multiply(u32 group, const uint4 *places, Dest to, const Params &p,
                                             REMAINDER remainder, F recompute) const {
        u32 lane = threadIdx.x % 128, stage = 0, parity = 0, before;
        auto release = [&](u32 s) { // by a thread for each CTA
            if (lane < CLUSTER) barrier_arrive(empty + 8 * s, lane);
        };
        auto strip = [&](u32 tile) { return row(tile) + group * TALL * 64 + lane / 32 * 16; }; // of the warp
        auto more = remainder.template gather<TALL, 64, COLS / 8>(p);
        more.look(strip(cluster));
        more.find();
        launches_before(); // what it reads of B, and C, the launches before may still write and read
        launches_after();
#pragma unroll 1
        for (u32 tile = cluster; tile < tiles; tile += clusters) {
            float acc[TALL][COLS / 8][4] = {};
            u32 first = strip(tile);
            more.start(col(tile));
            more.look(strip(tile + clusters));
            u32 r = packed_row(tile, p);
            const uint4 *from = places + ((u64)(r / 256) * fours24(p) * 4 + r % 256 / 64 + group * TALL) * 128 + lane;
            auto look = [&](u32 four, u32(&x)[TALL][4]) {
#pragma unroll
                for (int i = 0; i < TALL; i++) load_places(x[i], from + (u64)four * 512 + i * 128);
            };
            auto step = [&](u32 k, u32(&x)[TALL][4], int at, u32(&y)[TALL][4], int last) {
                u32 b = pipeline + stage * STAGE_BYTES, a = b + B_BYTES + group * TALL * PIECE_VALUES;
                barrier_wait(full + 8 * stage, parity);
                multiply_pieces<TRANS>(acc, a, b, x, at);
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
            for (int i = 0; i < TALL; i++) wgmma_hold(acc[i]);
            more.add(acc);
            more.find();
#pragma unroll
            for (int i = 0; i < TALL; i++) store_inside(acc[i], to, p, first + i * 64, col(tile), recompute);
        }
    }
};

// group_sync has that many threads of a block wait for each other at a barrier that others do not use.
__device__ __forceinline__ void group_sync(u32 threads, u32 barrier) {
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

#include "group24_few.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, 1) __cluster_dims__(CLUSTER, 1, 1)
    ENTRY(const u16 *__restrict__ values, const u32 *__restrict__ index, const u32 *__restrict__ mask,
          REMAINDER_ARGS const u16 *__restrict__ b, const float *__restrict__ bias, void *__restrict__ c,
          const __grid_constant__ Params p, const __grid_constant__ TileMap map) {
    extern __shared__ __align__(1024) unsigned char smem[];
    // with calls f with the work of this launch.
    auto with = [&](auto f) __attribute__((always_inline)) {
        u32 at = shared_address(smem);
        bool narrow = p.n <= 64 && !in_lines(p);
        if (p.wide == 0 && p.tall == 256) f(Work<2, 1>(at, p));
        else if (p.wide == 0) f(Work<1, 2>(at, p));
        else if (p.tall == 128 && narrow) f(Few<64, 1>(at, p));
        else if (p.tall == 128) f(Few<128, 1>(at, p));
        else if (narrow) f(Few<64, 2>(at, p));
        else f(Few<128, 2>(at, p));
    };
    u32 group = threadIdx.x / 128;
    EntriesGroup24 entries{values, index, mask, b, &p};
    if (threadIdx.x == 0) {
        asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
        with([&](const auto &work) __attribute__((always_inline)) { work.start(); });
    }
    cluster_sync();
    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0)
            with([&](const auto &work)
                     __attribute__((always_inline)) { work.produce((const unsigned char *)values, &map, p); });
        __syncwarp();
        if (p.wide != 0) cluster_sync();
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        REMAINDER more =
            REMAINDER_OF(shared_address(smem) + SHARED_BYTES + 256 + (threadIdx.x - 128) / 32 * REMAINDER_BYTES, b);
        with([&](const auto &work) __attribute__((always_inline)) {
            if (work.lines(p))
                work.template multiply<0>(group - 1, (const uint4 *)index, {c, bias}, p, more,
                                          more.entries(entries, p));
            else
                work.template multiply<1>(group - 1, (const uint4 *)index, {c, bias}, p, more,
                                          more.entries(entries, p));
        });
        __syncwarp();
    }
    cluster_sync(); // no CTA exits while others still copy to it, arrive at its barriers or read its sums
}
