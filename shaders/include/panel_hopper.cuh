// Panels × dense on the tensor cores of compute capability 9.0, with B in shared memory, for panels that share most
// rows of B. A kernel's own file defines panel_at and row_of.
//
// Computes: C = alpha·A·B + beta·C for panels of V rows, f16 or bf16, sums in f32, on mma.m16n8k16.
// Tile: a cluster of CLUSTER CTAs computes COLS columns of C for neighbouring blocks of rows. A warp has a stream: ROWS
// rows, which are LISTS panels of V rows. The product is transposed, Cᵀ = Bᵀ·Aᵀ (SSpMM §III-B): 16 columns of B take
// the instruction's m, 8 rows of A its n. Clusters are persistent: while one stores a tile, the next tile's first
// windows are loaded.
// Data movement: windows of B (WINDOW × COLS) are loaded by TMA into a stage buffer of STAGES windows: each CTA of a
// cluster loads a share of a window and multicasts it. A step is 16 vectors of each panel, whose rows of B are in SPAN
// neighbouring windows. ldmatrix gathers and transposes 16 rows of B, with one address for each lane. The encoder
// orders vectors so that the eight rows read at once differ mod 8: with TMA's swizzle these are in different banks.
// Bound by: shared memory, then L2.
//
// ptr holds, for each stream, an offset of steps for each window: segment w is the steps whose last row of B is in
// window w. A step is 16 bytes of values for each lane, as the instruction reads them, and 16 × LISTS numbers of 16
// bits. These say where the vectors' rows of B are, those of one vector of each panel next to each other: in chunks of
// 16 bytes from the buffer's start to the chunk with columns 0 to 7. Behind the last step is room for one more, which
// is loaded but not used. From p.places on ptr has the panels of each stream, then the arguments of row_of.
// shaders/panel/streams.go makes these arrays.
//
// Constants: ENTRY, V (8, 16), ELEM (half.cuh), WINDOW, STAGES, STAGE_ROWS (rows of all stages), SPAN, WARPS, CLUSTER.
// p.width is the streams of a CTA, at most WARPS. Dynamic shared memory: BUFFER_BYTES + 16·STAGES.

#pragma once
#include "bulk.cuh"
#include "finite.cuh"
#include "launches.cuh"
#include "store_line.cuh"

#define COLS 64
#define ROWS 16 // of a stream
#define PRODUCERS 4 // producer warps: one thread copies; the other warps give up their registers
#define PITCH (COLS * 2) // bytes from a row of the buffer to the next
#define CHUNKS_OF_ROW (COLS / 8) // of 16 bytes
#define WINDOW_BYTES (WINDOW * PITCH)
#define BUFFER_BYTES (STAGES * WINDOW_BYTES)
#define PART (WINDOW / CLUSTER) // rows of a window that a CTA copies
#define LISTS (ROWS / V)
#define NO_STREAM 0xffffffff
#define NO_PANEL 0xffffffff
#define NO_ROW 0xffffffff

static_assert(STAGE_ROWS == STAGES * WINDOW && STAGES > SPAN && STAGES <= 32 && STAGE_ROWS * CHUNKS_OF_ROW <= 65536,
              "");
static_assert(PART <= 256 && PART % 8 == 0, "");

// Tiles is how C is divided: a tile is CLUSTER row blocks of all streams times COLS columns.
struct Tiles {
    u32 streams, blocks, count, cluster, clusters, rank;

    __device__ __forceinline__ Tiles(const Params &p) {
        streams = (p.panels + LISTS - 1) / LISTS;
        blocks = (streams + p.width * CLUSTER - 1) / (p.width * CLUSTER) * CLUSTER;
        count = blocks / CLUSTER * ((p.n + COLS - 1) / COLS);
        cluster = blockIdx.x / CLUSTER, clusters = gridDim.x / CLUSTER, rank = blockIdx.x % CLUSTER;
    }
    __device__ __forceinline__ u32 column(u32 tile) const { return tile / (blocks / CLUSTER) * COLS; }
    // stream returns a warp's stream. Streams are sorted by weight, and dealt to CTAs in turn and back again.
    __device__ __forceinline__ u32 stream(u32 tile, u32 warp) const {
        u32 block = tile % (blocks / CLUSTER) * CLUSTER + rank,
            n = warp * blocks + (warp & 1 ? blocks - 1 - block : block);
        return n < streams ? n : NO_STREAM;
    }
};

// Phases holds, for each barrier of a buffer, the parity to wait for next.
struct Phases {
    u32 barriers, bits;
    __device__ __forceinline__ void wait(u32 stage) {
        barrier_wait(barriers + 8 * stage, bits >> stage & 1);
        bits ^= 1 << stage;
    }
};

// Step is a lane's share of a step: its values, 8 rows of the stream at a time, and the places of the rows of B whose
// addresses it gives to ldmatrix.
struct Step {
    u32 values[ROWS / 8][2], places;

    __device__ __forceinline__ void fetch(const char *v, const char *at, u32 n) {
        asm volatile("ld.global.nc.v4.u32 {%0,%1,%2,%3}, [%4];"
                     : "=r"(values[0][0]), "=r"(values[0][1]), "=r"(values[1][0]), "=r"(values[1][1])
                     : "l"(v + (u64)n * (32 * ROWS)));
#if LISTS == 2
        asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(places) : "l"(at + (u64)n * 64));
#else
        u16 x;
        asm volatile("ld.global.nc.u16 %0, [%1];" : "=h"(x) : "l"(at + (u64)n * 32));
        places = x;
#endif
    }
    // place returns the place of the row of list l's vector, in bytes from the buffer's start.
    __device__ __forceinline__ u32 place(int l) const { return (l ? places >> 12 : places << 4) & 0xffff0; }
};

// EntriesStream computes an output of a stream from its entries alone.
struct EntriesStream {
    const u32 *list, *mask;
    const u16 *places, *values, *b;
    u32 windows, ldb, at; // at: the row of the stream

    __device__ __forceinline__ float operator()(u32, u32 col) const {
        Special s;
        for (u32 w = 0; w < windows; w++) {
            u32 top = w * WINDOW + WINDOW - 1;
            for (u32 n = list[w]; n < list[w + 1]; n++)
                for (u32 k = 0; k < 16; k++) {
                    u64 slot = ((u64)n * 32 + at % 8 * 4 + k % 8 / 2) * 8 + at / 8 % 2 * 4 + k / 8 * 2 + k % 2;
                    if (!(mask[slot >> 5] >> (slot & 31) & 1)) continue;
                    u32 place = places[((u64)n * 16 + k) * LISTS + at / V] / CHUNKS_OF_ROW;
                    u32 row = top - (top % STAGE_ROWS + STAGE_ROWS - place) % STAGE_ROWS;
                    s.add(to_float(values[slot]), to_float(b[(u64)row * ldb + col]));
                }
        }
        return s.result();
    }
};

// across transposes four numbers of each of four lanes that differ in bits 2 and 3 of their numbers.
__device__ __forceinline__ void across(float (&x)[4]) {
#pragma unroll
    for (int bit = 1; bit < 4; bit *= 2) {
        bool upper = (threadIdx.x >> 2) & bit;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (i & bit) continue;
            float got = __shfl_xor_sync(0xffffffff, upper ? x[i] : x[i + bit], 4 * bit);
            if (upper) x[i] = got;
            else x[i + bit] = got;
        }
    }
}

// rows_of returns, for lane r and lane r + ROWS, the row of C that is row r of a stream, or NO_ROW. A lane's panel is
// panel lane % LISTS.
__device__ __forceinline__ u32 rows_of(const u32 *work, u32 panels) {
    u32 lane = threadIdx.x & 31, panel = __shfl_sync(0xffffffff, panels, lane % ROWS / V);
    return panel == NO_PANEL ? NO_ROW : row_of(work, {0, 0, panel * V, 0, NO_SLOT}, lane % V);
}

// Sums is a stream's sums: lane 4g + q has columns 16·j + g and 16·j + g + 8 of rows 8·h + 2q and 8·h + 2q + 1. quad
// returns four neighbouring ones of row 8·h + 2q + e, from column 32·j + first_column() on.
typedef float Sums[ROWS / 8][COLS / 16][4];
__device__ __forceinline__ u32 first_column() { return (threadIdx.x >> 2 & 3) * 8 + (threadIdx.x >> 4 & 1) * 4; }
__device__ __forceinline__ float4 quad(const Sums &acc, int h, int e, int j) {
    float x[4] = {acc[h][2 * j][e], acc[h][2 * j][2 + e], acc[h][2 * j + 1][e], acc[h][2 * j + 1][2 + e]};
    across(x);
    return make_float4(x[0], x[1], x[2], x[3]);
}

// store_plain stores a stream's sums in the common case: all of them are finite, C is f32 and not read, and it has all
// COLS columns. Else it does nothing and returns false. The common case is without branches, so that latencies overlap.
__device__ __forceinline__ bool store_plain(const Sums &acc, u32 rows, const Out<Params> &out, u32 base) {
    if (!out.plain || base + COLS > out.p.n || !all_finite(*(const float(*)[ROWS / 8 * (COLS / 16)][4]) acc))
        return false;
    float *c = (float *)out.to.c + base + first_column();
#pragma unroll
    for (int h = 0; h < ROWS / 8; h++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            u32 row = __shfl_sync(0xffffffff, rows, 8 * h + 2 * (threadIdx.x & 3) + e);
#pragma unroll
            for (int j = 0; j < COLS / 32; j++) {
                float4 x = quad(acc, h, e, j);
                if (row < out.p.rows)
                    *(float4 *)(c + (u64)row * out.p.ldc + 32 * j) =
                        make_float4(out.p.alpha * x.x, out.p.alpha * x.y, out.p.alpha * x.z, out.p.alpha * x.w);
            }
        }
    return true;
}

// store_any stores a stream's sums in any case.
__device__ __forceinline__ void store_any(const Sums &acc, u32 rows, const Out<Params> &out, u32 base,
                                          EntriesStream entries) {
#pragma unroll
    for (int h = 0; h < ROWS / 8; h++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            entries.at = 8 * h + 2 * (threadIdx.x & 3) + e;
            u32 row = __shfl_sync(0xffffffff, rows, entries.at);
#pragma unroll
            for (int j = 0; j < COLS / 32; j++) {
                float4 x = quad(acc, h, e, j);
                u32 col = base + 32 * j + first_column();
                if (row < out.p.rows && col < out.p.n) out.store(row, col, x, entries);
            }
        }
}

// store_one stores one sum to a column-major C in any case.
static __device__ __noinline__ void store_one(float x, Dest to, const Params *p, u32 row, u32 col,
                                              EntriesStream entries) {
    if ((__float_as_uint(x) & 0x7f800000) == 0x7f800000) x = entries(row, col);
    store_line(to.c, to.bias, p->store, row, col, col + 1, p->ldc, p->beta, make_float4(p->alpha * x, 0, 0, 0));
}

// store_columns stores a stream's sums to a column-major C. In the common case, a C of elements of 16 bits that is not
// read, without an epilogue and with finite sums, a lane stores two neighbouring rows of a column together.
__device__ __forceinline__ void store_columns(const Sums &acc, u32 rows, Dest to, const Params &p, u32 base,
                                              EntriesStream entries) {
    u32 lane = threadIdx.x & 31, type = store_type(p.store);
    bool pairs = type != F32 && (p.store & 0xffc) == 0 && p.beta == 0 && (p.ldc & 1) == 0 &&
                 all_finite(*(const float(*)[ROWS / 8 * (COLS / 16)][4]) acc);
#pragma unroll
    for (int h = 0; h < ROWS / 8; h++) {
        u32 row[2];
#pragma unroll
        for (int e = 0; e < 2; e++) row[e] = __shfl_sync(0xffffffff, rows, 8 * h + 2 * (lane & 3) + e);
        bool both = pairs && row[1] < p.rows && row[1] == row[0] + 1 && (row[0] & 1) == 0;
#pragma unroll
        for (int j = 0; j < COLS / 16; j++)
#pragma unroll
            for (int s = 0; s < 2; s++) {
                u32 col = base + 16 * j + 8 * s + (lane >> 2);
                const float *x = &acc[h][j][2 * s];
                if (col >= p.n) continue;
                if (both) {
                    u32 two = narrow(__fmul_rn(p.alpha, x[0]), __fmul_rn(p.alpha, x[1]), type);
                    *(u32 *)((u16 *)to.c + (u64)col * p.ldc + row[0]) = two;
                    continue;
                }
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    entries.at = 8 * h + 2 * (lane & 3) + e;
                    if (row[e] < p.rows) store_one(x[e], to, &p, row[e], col, entries);
                }
            }
    }
}

// produce: body of the producer thread: this CTA's share of all windows of all tiles.
__device__ __forceinline__ void produce(u32 buffer, u32 full, u32 empty, const TileMap *map, const Tiles &tiles,
                                        u32 windows) {
    Phases free{empty, ~0u};
    for (u32 tile = tiles.cluster; tile < tiles.count; tile += tiles.clusters)
        for (u32 w = 0, stage = 0; w < windows; w++) {
            free.wait(stage);
            barrier_expect(full + 8 * stage, WINDOW_BYTES);
            tile_copy(buffer + stage * WINDOW_BYTES + tiles.rank * (PART * PITCH), map, w * WINDOW + tiles.rank * PART,
                      tiles.column(tile), full + 8 * stage, (1 << CLUSTER) - 1);
            if (++stage == STAGES) stage = 0;
        }
}

// multiply adds a step's products to the sums of a stream.
__device__ __forceinline__ void multiply(float (&acc)[ROWS / 8][COLS / 16][4], const Step &step, u32 buffer, u32 half) {
#pragma unroll
    for (int l = 0; l < LISTS; l++) {
        u32 at = (step.place(l) ^ half) + buffer, x[COLS / 16][4];
#pragma unroll
        for (int j = 0; j < COLS / 16; j++) ldmatrix_trans(x[j], at ^ 32 * j);
#pragma unroll
        for (int h = 0; h < V / 8; h++)
#pragma unroll
            for (int j = 0; j < COLS / 16; j++) {
                int r = l * (V / 8) + h;
                mma<ELEM>(acc[r][j], x[j], step.values[r][0], step.values[r][1]);
            }
    }
}

extern "C" __global__ void __launch_bounds__(32 * (WARPS + PRODUCERS), 1) __cluster_dims__(CLUSTER, 1, 1)
    ENTRY(const u32 *__restrict__ ptr, const u32 *__restrict__ places, const u16 *__restrict__ values,
          const u32 *__restrict__ mask, const u16 *__restrict__ b, const float *__restrict__ bias, void *__restrict__ c,
          float *, const __grid_constant__ Params p, const __grid_constant__ TileMap map) {
    const u32 *rowmap = ptr + p.places;
    extern __shared__ __align__(1024) unsigned char smem[];
    u32 buffer = shared_address(smem), full = buffer + BUFFER_BYTES, empty = full + 8 * STAGES;
    u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    u32 windows = (p.cols + WINDOW - 1) / WINDOW;
    Tiles tiles(p);
    if (threadIdx.x == 0) {
        for (u32 s = 0; s < STAGES; s++) {
            barrier_init(full + 8 * s, 1);
            barrier_init(empty + 8 * s, p.width * CLUSTER);
        }
        barrier_fence();
    }
    cluster_sync();
    if (warp >= WARPS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
        if (threadIdx.x == 32 * WARPS) {
            launches_before();
            launches_after();
            produce(buffer, full, empty, &map, tiles, windows);
        }
        __syncwarp();
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 112;");
        if (warp < p.width) {
            Phases filled{full, 0};
            u32 half = lane & 8 ? 16 : 0; // ldmatrix: matrix 2i + j is vectors 8i to 8i + 7, columns 8j to 8j + 7
            const char *lane_values = (const char *)values + 16 * lane,
                       *lane_places = (const char *)places + (lane / 16 * 8 + lane % 8) * (2 * LISTS);
            asm volatile("" : "+l"(lane_values), "+l"(lane_places), "+r"(half)); // not computed in each step
            u32 stream, i, bounds, panels; // of a tile; ends of the next 32 segments, and panels, one a lane
            Step next; // step i
            auto take = [&](u32 tile) { // starts a tile: it starts loading the first step
                stream = tiles.stream(tile, warp);
                i = bounds = 0, panels = NO_PANEL;
                if (stream != NO_STREAM) {
                    const u32 *list = ptr + (u64)stream * windows;
                    i = __ldg(list), bounds = __ldg(list + min(lane + 1, windows)),
                    panels = __ldg(rowmap + stream * LISTS + lane % LISTS);
                }
                next.fetch(lane_values, lane_places, i);
            };
            take(tiles.cluster);
#pragma unroll 1
            for (u32 tile = tiles.cluster; tile < tiles.count; tile += tiles.clusters) {
                u32 stage = 0;
                auto release = [&](u32 old) {
                    __syncwarp();
                    if (lane < CLUSTER) barrier_arrive(empty + 8 * old, lane);
                };
                Sums acc = {};
#pragma unroll 1
                for (u32 w = 0; w < windows; w++) {
                    if (w > 0 && w % 32 == 0 && stream != NO_STREAM)
                        bounds = __ldg(ptr + (u64)stream * windows + min(w + lane + 1, windows));
                    u32 end = __shfl_sync(0xffffffff, bounds, w % 32);
                    if (w >= SPAN) release(stage < SPAN ? stage + STAGES - SPAN : stage - SPAN);
                    filled.wait(stage);
                    if (++stage == STAGES) stage = 0;
#pragma unroll 1
                    while (i != end) {
                        Step now = next;
                        next.fetch(lane_values, lane_places, ++i);
                        multiply(acc, now, buffer, half);
                    }
                }
                for (u32 w = min(SPAN, windows); w > 0; w--) release((windows - w) % STAGES);
                EntriesStream entries{
                    ptr + (u64)stream * windows, mask, (const u16 *)places, values, b, windows, p.ldb, 0};
                u32 rows = rows_of(rowmap + tiles.streams * LISTS, panels);
                if (tile + tiles.clusters < tiles.count) take(tile + tiles.clusters);
                launches_before();
                Out<Params> out({c, bias}, p);
                if (by_columns_c(p.store)) store_columns(acc, rows, {c, bias}, p, tiles.column(tile), entries);
                else if (!store_plain(acc, rows, out, tiles.column(tile)))
                    store_any(acc, rows, out, tiles.column(tile), entries);
            }
        }
        __syncwarp();
    }
    cluster_sync(); // no CTA exits while others still copy to it or arrive at its barriers
}
