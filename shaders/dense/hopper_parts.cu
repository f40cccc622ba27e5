// Dense × dense on the warpgroup matrix instructions of compute capability 9.0, f16 and bf16, where tiles of C are few: PARTS
// blocks, a cluster, sum a part each of a tile of ROWS × COLS, and add up through each other's shared memory, in the order of the parts.
//
// One thread of a block copies, STAGES stages ahead (hopper.cuh), by tensor maps of L and R that the launch brings; groups of four
// warps multiply 64 rows each.
//
// A launch begins while the one before still runs, where there is room, and brings what it can of A until that is done.
//
// Compile-time constants: ENTRY, those of hopper.cuh with BLOCKS_DOWN = BLOCKS_ACROSS = 1, PARTS.
// Dynamic shared memory: STAGES stages of STAGE_BYTES, and 256 bytes.

#include "hopper.cuh"

#define MULTIPLY (128 * GROUPS) // threads
#define THREADS (MULTIPLY + 32)
#define TILES (COLS / 8) // of 8 columns

static_assert(SHARING == 1 && 16 * STAGES <= 256, "barriers behind the stages");
static_assert(PARTS == 1 || COLS * ROWS * 4 <= STAGES * STAGE_BYTES, "sums are written where stages were");

// What a block computes: a part of the sum, steps first to last - 1, of the tile at (row, col).
struct Share {
    u32 part, row, col, first, last;

    __device__ __forceinline__ Share(const Params &p) {
        u32 tile = blockIdx.x / PARTS, steps = p.cols / DEPTH + (p.cols % DEPTH != 0);
        row = tile / p.across * ROWS, col = tile % p.across * COLS;
        part = blockIdx.x % PARTS;
        first = (u32)((u64)steps * part / PARTS), last = (u32)((u64)steps * (part + 1) / PARTS);
    }
    __device__ __forceinline__ u32 steps() const { return last - first; }
};

// copy_all is one thread's work. What is A comes before the launches before are done, as far as there is room.
__device__ __forceinline__ void copy_all(const Ring &ring, const Share &x, const TileMap *l_map, const TileMap *r_map, bool l_along, bool r_along, const Params &p) {
    u32 slabs = slabs_of(p, x.col), early = min(x.steps(), STAGES);
    auto expect = [&](u32 s) { barrier_expect(ring.full + 8 * s, L_BYTES + r_bytes(slabs, r_along)); };
    auto left = [&](u32 s, u32 k) {
        bring<ROWS, 1>(ring.stages + s * STAGE_BYTES, l_map, l_along, x.row, (x.first + k) * DEPTH, GROUPS, 0, ring.full + 8 * s, 0);
    };
    auto right = [&](u32 s, u32 k) {
        bring<COLS, 1>(ring.stages + s * STAGE_BYTES + L_BYTES, r_map, r_along, x.col, (x.first + k) * DEPTH, slabs, 0, ring.full + 8 * s, 0);
    };
    bool turned = p.order & C_COLUMNS; // R is A
    for (u32 k = 0; k < early; k++) {
        expect(k);
        if (turned) right(k, k);
        else left(k, k);
    }
    launches_before();
    launches_after();
    for (u32 k = 0; k < early; k++) {
        if (turned) left(k, k);
        else right(k, k);
    }
    At at = {0, 0};
    for (u32 k = early; k < x.steps(); k++) {
        barrier_wait(ring.empty + 8 * at.stage, at.parity);
        expect(at.stage);
        left(at.stage, k);
        right(at.stage, k);
        at.next();
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) __cluster_dims__(PARTS, 1, 1)
    ENTRY(const Elem *__restrict__ a, const u32 *__restrict__ stored, const Elem *__restrict__ b, const float *__restrict__ bias, void *__restrict__ c,
          float *__restrict__ work, const __grid_constant__ Params p, const __grid_constant__ TileMap l_map, const __grid_constant__ TileMap r_map) {
    extern __shared__ __align__(1024) unsigned char smem[];
    Operand l = left(a, b, p), r = right(a, b, p);
    Share x(p);
    Ring ring(shared_address(smem), x.part);
    u32 warp = threadIdx.x / 32;
    if (threadIdx.x == MULTIPLY) {
        prefetch(&l_map), prefetch(&r_map);
        ring.start();
    }
    __syncthreads();
    if (threadIdx.x >= MULTIPLY) {
        if (threadIdx.x == MULTIPLY) copy_all(ring, x, &l_map, &r_map, l.along, r.along, p);
        __syncwarp();
        if (PARTS > 1) cluster_sync(), cluster_arrive();
    } else {
        float acc[TILES][4] = {};
        At at = {0, 0};
        fetch_before<16, COLS>({c, bias}, p, x.row + 16 * warp, x.col);
        sum(acc, ring, at, x.first, x.last, warp / 4, l.along, r.along);
        launches_before();
        Again again{a, b, stored, &p};
        finish<MULTIPLY, PARTS>(acc, ring.stages, x.part, warp, {c, bias}, p, x.row, x.col, again);
    }
    if (PARTS > 1) cluster_wait(); // no block leaves while others read its sums
}
