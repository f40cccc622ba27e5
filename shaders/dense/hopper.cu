// Computes: C (rows × n) = alpha·A·B + beta·C, dense, f16 or bf16, sums in f32, by wgmma on compute capability 9.0.
// Tile: a CTA computes (ROWS × COLS), a consumer warpgroup (64 × COLS). A cluster is BLOCKS_DOWN × BLOCKS_ACROSS
// neighbouring tiles. Clusters are persistent and take work tiles in turn (pieces.cuh), along bands of BAND tile
// columns, so that those at work share L and R in L2. The last tiles may be split along K.
// Data movement: two producer threads, one for each operand, issue TMA copies STAGES deep (hopper.cuh); each CTA of a
// cluster loads a share and multicasts it. While a tile is stored the next one's first stages are loaded. A launch
// begins while the one before still stores its last tiles, and prefetches A.
// Bound by: tensor cores for large C, memory bandwidth for few columns.
//
// TURNED = 1 computes Cᵀ = Bᵀ·Aᵀ of a row-major C: rows of A lie on the instruction's n, so that a tile may have any
// multiple of 8 rows of A, as many as give every multiprocessor a tile. No tile is split then.
//
// Constants: ENTRY, those of hopper.cuh, BAND, MOST_BLOCKS. Dynamic shared memory: STAGES stages of STAGE_BYTES, and
// 512 bytes.

#include "hopper.cuh"

#define THREADS (128 + 128 * GROUPS)
#define ACROSS (COLS < 16 ? 2 : COLS / 8) // tiles of 8 columns, an even number
#define CLUSTER SHARING

static_assert(16 * STAGES <= 512, "barriers behind the stages");

static_assert(TURNED || GROUPS * MOST_BLOCKS <= MOST_PART_SLOTS, "each group of four warps adds up by itself");

struct Work {
    u32 rank, down, across; // of the block in its cluster
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

// copy_all: body of the two producer threads, one for each operand. The first also sets the bytes that the barrier
// expects. A stage is free once all groups of the cluster have read it. There is a loop for each layout, as the time
// from a stage's release to its next copy counts.
template <bool LEFT>
__device__ __forceinline__ void copy_all(const Ring &ring, const Work &w, const TileMap *map, bool along,
                                         bool r_along) {
    At at = {0, 1};
    u16 blocks = ((1 << BLOCKS_DOWN) - 1) << BLOCKS_DOWN * w.across;
    if (LEFT) {
        blocks = 0;
        for (int i = 0; i < BLOCKS_ACROSS; i++) blocks |= 1 << (i * BLOCKS_DOWN + w.down);
    }
    for (u32 i = w.cluster; i < w.pieces; i += w.clusters) {
        Piece x = w.piece(i);
        u32 row, col;
        w.at(x, row, col);
        u32 all = slabs_of(w.p, col), bytes = L_BYTES + r_bytes(all, r_along);
        auto each = [&](bool along, u32 slabs) __attribute__((always_inline)) {
#pragma unroll 1
            for (u32 k = x.first; k < x.last; k++) {
                u32 to = ring.stages + at.stage * STAGE_BYTES, bar = ring.full + 8 * at.stage;
                barrier_wait(ring.empty + 8 * at.stage, at.parity);
                if (LEFT) {
                    barrier_expect(bar, bytes);
                    bring<ROWS, BLOCKS_ACROSS>(to, map, along, row, k * DEPTH, GROUPS, w.across, bar, blocks);
                } else bring<COLS, BLOCKS_DOWN>(to + L_BYTES, map, along, col, k * DEPTH, slabs, w.down, bar, blocks);
                at.next();
            }
        };
        if (along) each(true, SLABS);
        else if (LEFT || all == SLABS) each(false, SLABS);
        else each(false, all);
    }
}

// multiply is the work of group 0 or 1 of four warps.
__device__ __forceinline__ void multiply(const Ring &ring, const Work &w, u32 group, bool l_along, bool r_along,
                                         Dest to, float *work, Again again) {
    At at = {0, 0};
    launches_before();
#pragma unroll 1
    for (u32 i = w.cluster; i < w.pieces; i += w.clusters) {
        Piece x = w.piece(i);
        float acc[1][ACROSS][4] = {};
        float(&sums)[COLS / 8][4] = *(float(*)[COLS / 8][4]) acc[0];
        u32 row, col, down = group * 64 + threadIdx.x % 128 / 32 * 16;
        w.at(x, row, col);
        if (!TURNED) fetch_before<16, COLS>(to, w.p, row + down, col);
        sum(sums, ring, at, x.first, x.last, group, l_along, r_along);
        if (i + w.clusters >= w.pieces && threadIdx.x == 128) launches_after();
        w.at(x, row, col);
        row += down;
        if (TURNED) {
            store_turned(acc[0], to, w.p, row, col, again);
            continue;
        }
        auto store = [&](const Params &p) {
            if (x.split)
                store_parts<128>(acc, to, p, p.splits, row, col, (x.slot * CLUSTER + w.rank) * 2 + group, x.part,
                                 group + 1, work, again);
            else store_sums<16>(acc, to, p, row, col, p.n, again);
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
    Ring ring(shared_address(smem), 0);
    Work w(p);
    if (threadIdx.x == 0) prefetch(&l_map);
    else if (threadIdx.x == 32) prefetch(&r_map);
    else if (threadIdx.x == 64) ring.start();
    cluster_sync();
    u32 group = threadIdx.x / 128;
    if (group == 0) {
        if (!TURNED) asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) {
            if (p.order & C_COLUMNS) launches_before(); // L is B
            copy_all<true>(ring, w, &l_map, l.along, r.along);
        } else if (threadIdx.x == 32) {
            if (!(p.order & C_COLUMNS)) launches_before();
            copy_all<false>(ring, w, &r_map, r.along, r.along);
        }
        __syncwarp();
    } else {
        if (!TURNED) asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        multiply(ring, w, group - 1, l.along, r.along, {c, bias}, work, Again{a, b, stored, &p});
        __syncwarp();
    }
    cluster_sync(); // no CTA exits while others still copy to it or arrive at its barriers
}
