// Dense × dense on the warpgroup matrix instructions of compute capability 9.0, f16 and bf16.
//
// A block computes a tile of ROWS × COLS: two threads copy, STAGES stages of DEPTH places k ahead, by tensor maps that the
// block makes for itself; two groups of four warps multiply half of the rows each. Operands lie in shared memory as they lie
// in the matrix, along the sum or across it.
//
// BLOCKS_DOWN × BLOCKS_ACROSS blocks are a cluster, whose tiles are neighbours: what several of them need each brings a part
// of, for all. Clusters take
// pieces (pieces.cuh) in turn, tiles of a band of BAND columns of tiles row by row, so that what runs at once shares rows of L and columns of
// R in the L2 cache. While one is written the next one's first stages are on their way.
//
// A launch begins while the one before still writes its last tiles, and brings what it can of A until that is done. Its maps
// take the place of that launch's, all of whose copies have come by then.
//
// Compile-time constants: ENTRY, ELEM (half.cuh), ROWS = 128, COLS (8, 16, 32, 64, 128 or 256), STAGES, BLOCKS_DOWN,
// BLOCKS_ACROSS, BAND, MOST_BLOCKS.
// Dynamic shared memory: STAGES stages of STAGE_BYTES, and 512 bytes.

#include "pieces.cuh"
#include "wgmma.cuh"
#include "../include/bulk.cuh"

#define THREADS 384
#define DEPTH 64                  // places k of a stage
#define SLAB (DEPTH * 128)        // bytes of 64 lines
#define L_BYTES (ROWS / 64 * SLAB)
#define WIDE (COLS < 64 ? COLS : 64) // columns of a slab of R where it lies across
#define R_SLAB (DEPTH * 2 * WIDE)
#define R_BYTES (COLS / WIDE * R_SLAB)
#define ACROSS (COLS < 16 ? 2 : COLS / 8) // tiles of 8 columns, an even number
#define CLUSTER (BLOCKS_DOWN * BLOCKS_ACROSS)
#define STAGE_BYTES (L_BYTES + R_BYTES)

static_assert(16 * STAGES + 256 <= 512, "barriers and tensor maps behind the stages");

static_assert(2 * MOST_BLOCKS <= MOST_SLOTS, "each group of four warps adds up by itself");

// Each block's tensor maps of L and R. Launches of a module follow each other.
__device__ TileMap maps[MOST_BLOCKS][2];

struct Work {
    u32 rank, down, across;      // of the block in its cluster
    u32 cluster, clusters;
    u32 high, wide, pieces, steps; // tiles of clusters
    const Params &p;

    __device__ __forceinline__ Work(const Params &p) : p(p) {
        rank = blockIdx.x % CLUSTER, down = rank % BLOCKS_DOWN, across = rank / BLOCKS_DOWN;
        cluster = blockIdx.x / CLUSTER, clusters = gridDim.x / CLUSTER;
        high = (p.rows + ROWS * BLOCKS_DOWN - 1) / (ROWS * BLOCKS_DOWN);
        wide = (p.n + COLS * BLOCKS_ACROSS - 1) / (COLS * BLOCKS_ACROSS);
        steps = p.cols / DEPTH + (p.cols % DEPTH != 0);
        pieces = p.whole + (high * wide - p.whole) * p.splits;
    }
    __device__ __forceinline__ Piece piece(u32 i) const { return piece_at(i, steps, p); }
    // at finds the block's tile of C.
    __device__ __forceinline__ void at(const Piece &x, u32 &row, u32 &col) const {
        u32 band = x.tile / (high * BAND), in = x.tile % (high * BAND), of = min(wide - band * BAND, BAND);
        row = (in / of * BLOCKS_DOWN + down) * ROWS, col = ((band * BAND + in % of) * BLOCKS_ACROSS + across) * COLS;
    }
};

// Shared memory: stages, a barrier each for copies that have come and for stages that have been read.
struct Ring {
    u32 stages, full, empty;

    __device__ __forceinline__ Ring(u32 at) : stages(at), full(at + STAGES * STAGE_BYTES), empty(full + 8 * STAGES) {}
    __device__ __forceinline__ void start() const {
        for (u32 s = 0; s < STAGES; s++) {
            barrier_init(full + 8 * s, 1);
            barrier_init(empty + 8 * s, 2 * CLUSTER);
        }
        barrier_fence();
    }
};

// map_of makes the map of an operand of which a block brings 1/SHARE of a tile of LINES lines at a time. Of lines that lie
// across, padding is brought too: zeros past the operand's end would take longer.
template <int LINES, int SHARE> __device__ __forceinline__ void map_of(TileMap *to, unsigned char *scratch, const Operand &x, u32 cols) {
    if (x.along || LINES >= 64)
        tile_map<ELEM>(to, (TileMap *)scratch, x.x, max(x.along ? x.lines : cols, 1), max(x.along ? cols : x.ld, 1), (u64)x.ld * 2, (x.along ? LINES : DEPTH) / SHARE);
    else
        tile_map<ELEM, LINES>(to, (TileMap *)scratch, x.x, max(cols, 1), x.ld, (u64)x.ld * 2, DEPTH / SHARE);
}

// bring copies the block's share, the one of this number, of an operand's tile, for all blocks of the mask: lines from line i
// on at places from k on; of those that lie across so many slabs. What lies past the operand's end becomes 0.
template <int LINES, int SHARE> __device__ __forceinline__ void bring(u32 to, const TileMap *map, bool along, u32 i, u32 k, u32 slabs, u32 share, u32 bar, u16 blocks) {
    constexpr u32 LINE_SHARE = LINES / SHARE, PLACE_SHARE = DEPTH / SHARE, BYTES = LINES < 64 ? LINES * 2 : 128;
    auto copy = [&](u32 at, u32 row, u32 col) {
        if (SHARE == 1) tile_copy_here(at, map, row, col, bar);
        else tile_copy(at, map, row, col, bar, blocks);
    };
    if (along) return copy(to + share * LINE_SHARE * 128, i + share * LINE_SHARE, k);
    for (u32 s = 0; s < slabs; s++) copy(to + s * SLAB + share * PLACE_SHARE * BYTES, k + share * PLACE_SHARE, i + 64 * s);
}

// launches_before waits until all launches before are done and what they wrote is seen; let_next lets the next launch begin.
__device__ __forceinline__ void launches_before() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
__device__ __forceinline__ void let_next() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

// copy_all is the work of two threads, one for each operand, the first of which says how much is to come. A stage is free
// once all groups of the cluster have read it. Slabs of R past the matrix are left as they are if they lie across: what is
// computed of them is never stored.
template <bool LEFT> __device__ __forceinline__ void copy_all(const Ring &ring, const Work &w, const TileMap *map, bool along, bool r_along) {
    u32 stage = 0, parity = 1;
    u16 blocks = ((1 << BLOCKS_DOWN) - 1) << BLOCKS_DOWN * w.across;
    if (LEFT) {
        blocks = 0;
        for (int i = 0; i < BLOCKS_ACROSS; i++) blocks |= 1 << (i * BLOCKS_DOWN + w.down);
    }
    for (u32 i = w.cluster; i < w.pieces; i += w.clusters) {
        Piece x = w.piece(i);
        u32 row, col;
        w.at(x, row, col);
        u32 slabs = r_along ? COLS / WIDE : col < w.p.n ? min(COLS / WIDE, (w.p.n - col + WIDE - 1) / WIDE) : 0;
        for (u32 k = x.first; k < x.last; k++) {
            u32 to = ring.stages + stage * STAGE_BYTES, bar = ring.full + 8 * stage;
            barrier_wait(ring.empty + 8 * stage, parity);
            if (LEFT) {
                barrier_expect(bar, L_BYTES + slabs * R_SLAB);
                bring<ROWS, BLOCKS_ACROSS>(to, map, along, row, k * DEPTH, ROWS / 64, w.across, bar, blocks);
            } else
                bring<COLS, BLOCKS_DOWN>(to + L_BYTES, map, along, col, k * DEPTH, slabs, w.down, bar, blocks);
            if (++stage == STAGES) stage = 0, parity ^= 1;
        }
    }
}

// Where a group of warps is in the ring.
struct At {
    u32 stage, parity;
};

// sum adds a piece's products to a group's sums. LT and RT tell that an operand lies across.
template <int LT, int RT> __device__ __forceinline__ void sum(float (&acc)[COLS / 8][4], const Ring &ring, At &at, const Piece &x, u32 group) {
    u32 lane = threadIdx.x % 128, before = 0;
    u64 l = swizzled(ring.stages + group * SLAB, SLAB), r = RT ? across_of<WIDE>(ring.stages + L_BYTES, SLAB) : swizzled(ring.stages + L_BYTES, SLAB);
    auto release = [&](u32 s) { // by a thread for each block
        if (lane < CLUSTER) barrier_arrive(ring.empty + 8 * s, lane);
    };
#pragma unroll 1
    for (u32 k = x.first; k < x.last; k++) {
        u64 to = at.stage * (STAGE_BYTES >> 4); // addresses are in 16 bytes
        barrier_wait(ring.full + 8 * at.stage, at.parity);
        wgmma_fence();
#pragma unroll
        for (u32 e = 0; e < DEPTH / 16; e++)
            wgmma_sum<ELEM, LT, RT>(acc, l + to + e * ((LT ? 2048 : 32) >> 4), r + to + e * ((RT ? 32 * WIDE : 32) >> 4));
        wgmma_commit();
        if (k > x.first) {
            wgmma_wait<1>(); // the step before is done
            release(before);
        }
        before = at.stage;
        if (++at.stage == STAGES) at.stage = 0, at.parity ^= 1;
    }
    wgmma_wait<0>();
    wgmma_hold(acc);
    if (x.first < x.last) release(before);
}

// multiply is the work of group 0 or 1 of four warps.
__device__ __forceinline__ void multiply(const Ring &ring, const Work &w, u32 group, bool l_along, bool r_along, Dest to, float *work, Again again) {
    At at = {0, 0};
    launches_before();
#pragma unroll 1
    for (u32 i = w.cluster; i < w.pieces; i += w.clusters) {
        Piece x = w.piece(i);
        float acc[1][ACROSS][4] = {};
        float(&sums)[COLS / 8][4] = *(float(*)[COLS / 8][4])acc[0];
        if (!l_along) sum<1, 0>(sums, ring, at, x, group);
        else if (r_along) sum<0, 0>(sums, ring, at, x, group);
        else sum<0, 1>(sums, ring, at, x, group);
        if (i + w.clusters >= w.pieces && threadIdx.x == 128) let_next();
        u32 row, col;
        w.at(x, row, col);
        row += group * 64 + threadIdx.x % 128 / 32 * 16;
        auto store = [&](const Params &p) {
            if (x.split) store_parts<128>(acc, to, p, row, col, (x.slot * CLUSTER + w.rank) * 2 + group, x.part, group + 1, work, again);
            else store_tiles(acc, to, p, row, col, again);
        };
        if (COLS >= 16) store(w.p);
        else { // half of what is stored is no column of this tile
            Params p = w.p;
            p.n = min(p.n, col + COLS);
            store(p);
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) __cluster_dims__(CLUSTER, 1, 1)
    ENTRY(const Elem *__restrict__ a, const u32 *__restrict__ stored, const Elem *__restrict__ b, const float *__restrict__ bias, void *__restrict__ c,
          float *__restrict__ work, const __grid_constant__ Params p) {
    extern __shared__ __align__(1024) unsigned char smem[];
    Operand l = left(a, b, p), r = right(a, b, p);
    Ring ring(shared_address(smem));
    Work w(p);
    TileMap *map = maps[blockIdx.x]; // they are all the same
    unsigned char *scratch = smem + STAGES * STAGE_BYTES + 256;
    if (threadIdx.x < 32) map_of<ROWS, BLOCKS_ACROSS>(map, scratch, l, p.cols);
    else if (threadIdx.x < 64) map_of<COLS, BLOCKS_DOWN>(map + 1, scratch + 128, r, p.cols);
    else if (threadIdx.x == 64) ring.start();
    cluster_sync();
    u32 group = threadIdx.x / 128;
    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) {
            tile_map_acquire(map);
            if (p.order & C_COLUMNS) launches_before(); // L is B
            copy_all<true>(ring, w, map, l.along, r.along);
        } else if (threadIdx.x == 32) {
            tile_map_acquire(map + 1);
            if (!(p.order & C_COLUMNS)) launches_before();
            copy_all<false>(ring, w, map + 1, r.along, r.along);
        }
        __syncwarp();
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        multiply(ring, w, group - 1, l.along, r.along, {c, bias}, work, Again{a, b, stored, &p});
        __syncwarp();
    }
    cluster_sync(); // no block leaves while others still copy to it or arrive at its barriers
}
