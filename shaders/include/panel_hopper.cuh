// Panels × dense on the tensor cores of compute capability 9.0, with B in shared memory, for panels that share most rows
// of B.
//
// A cluster of CLUSTER blocks computes COLS columns of C for neighbouring blocks of rows. Windows of WINDOW rows of those
// columns of B come by tensor copies into a ring of STAGES windows: each block of the cluster copies a part of each window
// to all of them. Clusters take tiles of C in turn; while one is stored the next one's first windows are on their way.
//
// A warp has a stream: ROWS rows, which are LISTS panels of V rows, and their vectors step by step. A step is 16 vectors of each panel,
// whose rows of B lie in SPAN neighbouring windows. The multiply is Cᵀ = Bᵀ·Aᵀ (SSpMM §III-B): 16 columns of B are the
// instruction's m, 8 rows of A its n. ldmatrix gathers and transposes 16 rows of B, one address a lane. The encoder deals vectors
// so that the eight rows that are read at once differ mod 8: with the swizzle of tensor copies these lie in different banks.
//
// ptr holds, for each stream, windows offsets of steps: segment w is the steps whose last row of B is in window w. A step is 16 bytes
// of values for each lane and 16 rows, as the instruction wants them, and 16 × LISTS numbers of 16 bits, those of a vector of each panel next to
// each other: where the row is, in chunks of 16 bytes from the ring's start to the chunk that holds columns 0 to 7. rowmap has the
// panels of each stream, then what the format's row_of takes. shaders/panel/streams.go makes them.
//
// Compile-time constants: ENTRY, V (8, 16), ELEM (half.cuh), WINDOW, STAGES, RING (rows of all stages), SPAN, WARPS, CLUSTER, AHEAD
// (steps on their way to a warp), MOST_BLOCKS. p.width is the streams of a block, at most WARPS. Dynamic shared memory: RING_BYTES + 384 + WARPS·AHEAD·STEP_BYTES.

#pragma once
#include "bulk.cuh"

#define COLS 64
#define ROWS 16 // of a stream
#define PITCH (COLS * 2) // bytes from a row of the ring to the next
#define CHUNKS_OF_ROW (COLS / 8) // of 16 bytes
#define WINDOW_BYTES (WINDOW * PITCH)
#define RING_BYTES (STAGES * WINDOW_BYTES)
#define PART (WINDOW / CLUSTER) // rows of a window that a block copies
#define LISTS (ROWS / V)
#define PLACE_BYTES (LISTS > 1 ? 2 * LISTS : 4) // of a vector of each list
#define STEP_BYTES (32 * ROWS + 32 * PLACE_BYTES) // of a step that is on its way to a warp

static_assert(RING == STAGES * WINDOW && STAGES > SPAN && STAGES * 16 <= 256 && RING * CHUNKS_OF_ROW <= 65536, "");
static_assert(PART <= 256 && PART % 8 == 0, "");

// Each block's tensor map of B. Launches of a module follow each other.
__device__ TileMap maps[MOST_BLOCKS];

// launches_before waits until the launches before this one are done: see backend.Binary.Early. launches_after lets the next one
// begin where there is room, after that.
__device__ __forceinline__ void launches_before() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
__device__ __forceinline__ void launches_after() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

// Tiles is how C is shared out: row blocks of all streams, CLUSTER of them times COLS columns a tile.
struct Tiles {
    u32 streams, blocks, count, cluster, clusters, rank;

    __device__ __forceinline__ Tiles(const Params &p) {
        streams = (p.panels + LISTS - 1) / LISTS;
        blocks = (streams + p.width * CLUSTER - 1) / (p.width * CLUSTER) * CLUSTER;
        count = blocks / CLUSTER * ((p.n + COLS - 1) / COLS);
        cluster = blockIdx.x / CLUSTER, clusters = gridDim.x / CLUSTER, rank = blockIdx.x % CLUSTER;
    }
    __device__ __forceinline__ u32 column(u32 tile) const { return tile / (blocks / CLUSTER) * COLS; }
    // Streams come by falling weight. They are dealt to blocks in turn, and to warps there and back.
    __device__ __forceinline__ u32 stream(u32 tile, u32 warp) const {
        u32 block = tile % (blocks / CLUSTER) * CLUSTER + rank;
        return warp * blocks + (warp & 1 ? blocks - 1 - block : block);
    }
};

// Phases holds the parity that each barrier of a ring is to be waited for next.
struct Phases {
    u32 barriers, bits;
    __device__ __forceinline__ void wait(u32 stage) {
        barrier_wait(barriers + 8 * stage, bits >> stage & 1);
        bits ^= 1 << stage;
    }
};

// Ahead is a lane's part of the next steps of its warp's stream, which asynchronous copies bring to shared memory: a lane reads
// what it copied itself.
struct Ahead {
    u32 at, slot; // of the first step, and of the next to be read
    const char *values, *places;

    __device__ __forceinline__ Ahead(u32 at, const u16 *values, const u16 *places, u32 lane)
        : at(at + 16 * lane), slot(at + 16 * lane), values((const char *)values + 16 * lane),
          places((const char *)places + (lane / 16 * 8 + lane % 8) * PLACE_BYTES) {}

    // bring copies step n to a slot, if it is one of the stream, which ends at `end`.
    __device__ __forceinline__ void bring(u32 to, u32 n, u32 end) const {
        if (n < end) {
#pragma unroll
            for (int i = 0; i < ROWS / 16; i++) copy<16>(to + 512 * i, values + 512 * ((u64)n * (ROWS / 16) + i), 16);
            u32 lane = threadIdx.x & 31;
            copy<PLACE_BYTES>(to + 32 * ROWS - (16 - PLACE_BYTES) * lane, places + 16 * PLACE_BYTES * (u64)n, PLACE_BYTES);
        }
        copy_commit();
    }
    __device__ __forceinline__ void start(u32 n, u32 end) {
        slot = at;
#pragma unroll
        for (int i = 0; i < AHEAD; i++) bring(at + STEP_BYTES * i, n + i, end);
    }
    // read takes the next step, n + AHEAD is brought to its place by next.
    __device__ __forceinline__ void read(u32 (&v)[ROWS / 8][2], u32 (&place)[PLACE_BYTES / 4]) const {
        copy_wait<AHEAD - 1>();
#pragma unroll
        for (int i = 0; i < ROWS / 16; i++)
            asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                         : "=r"(v[2 * i][0]), "=r"(v[2 * i][1]), "=r"(v[2 * i + 1][0]), "=r"(v[2 * i + 1][1])
                         : "r"(slot + 512 * i) : "memory");
        u32 from = slot + 32 * ROWS - (16 - PLACE_BYTES) * (threadIdx.x & 31);
#pragma unroll
        for (int i = 0; i < PLACE_BYTES / 4; i++) asm volatile("ld.shared.u32 %0, [%1];" : "=r"(place[i]) : "r"(from + 4 * i) : "memory");
    }
    __device__ __forceinline__ void next(u32 n, u32 end) {
        bring(slot, n, end);
        slot = slot == at + STEP_BYTES * (AHEAD - 1) ? at : slot + STEP_BYTES;
    }
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
                    u64 slot = (((u64)n * (ROWS / 16) + at / 16) * 32 + at % 8 * 4 + k % 8 / 2) * 8 + at / 8 % 2 * 4 + k / 8 * 2 + k % 2;
                    if (!(mask[slot >> 5] >> (slot & 31) & 1)) continue;
                    u32 place = places[((u64)n * 16 + k) * (PLACE_BYTES / 2) + at / V] / CHUNKS_OF_ROW;
                    u32 row = top - (top % RING + RING - place) % RING;
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

// store_rows writes a warp's sums of 8 rows, from row `first` of a stream on: lane (g, q) has columns 16·j + g and 16·j + g + 8 of
// rows 2q and 2q + 1. row_at(row) is the row of C that a row of the stream is.
template <class R>
__device__ __forceinline__ void store_rows(float (&acc)[COLS / 16][4], u32 first, const Out<Params> &out, u32 base, EntriesStream entries, R row_at) {
    u32 g = (threadIdx.x & 31) >> 2, q = threadIdx.x & 3;
#pragma unroll
    for (int e = 0; e < 2; e++) {
        entries.at = first + 2 * q + e;
        u32 row = row_at(entries.at);
#pragma unroll
        for (int j = 0; j < COLS / 16; j += 2) {
            float x[4] = {acc[j][e], acc[j][2 + e], acc[j + 1][e], acc[j + 1][2 + e]};
            across(x);
            u32 col = base + 16 * j + 8 * (g & 3) + 4 * (g >> 2);
            if (col < out.p.n) out.store(row, col, make_float4(x[0], x[1], x[2], x[3]), entries);
        }
    }
}

// bring is one thread's work: this block's part of all windows of all tiles.
__device__ __forceinline__ void bring(u32 ring, u32 full, u32 empty, const TileMap *map, const Tiles &tiles, u32 windows) {
    Phases free{empty, ~0u};
    for (u32 tile = tiles.cluster; tile < tiles.count; tile += tiles.clusters)
        for (u32 w = 0, stage = 0; w < windows; w++) {
            free.wait(stage);
            barrier_expect(full + 8 * stage, WINDOW_BYTES);
            tile_copy(ring + stage * WINDOW_BYTES + tiles.rank * (PART * PITCH), map, w * WINDOW + tiles.rank * PART, tiles.column(tile), full + 8 * stage,
                      (1 << CLUSTER) - 1);
            if (++stage == STAGES) stage = 0;
        }
}

extern "C" __global__ void __launch_bounds__(32 * (WARPS + 1), 1) __cluster_dims__(CLUSTER, 1, 1)
    ENTRY(const u32 *__restrict__ ptr, const u32 *__restrict__ places, const u16 *__restrict__ values, const u32 *__restrict__ mask,
          const u32 *__restrict__ rowmap, const u16 *__restrict__ b, const float *__restrict__ bias, void *__restrict__ c,
          const __grid_constant__ Params p) {
    extern __shared__ __align__(1024) unsigned char smem[];
    u32 ring = shared_address(smem), full = ring + RING_BYTES, empty = full + 8 * STAGES;
    u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    u32 windows = (p.cols + WINDOW - 1) / WINDOW;
    Tiles tiles(p);
    TileMap *map = &maps[blockIdx.x % MOST_BLOCKS]; // they are all the same
    if (threadIdx.x == 0) {
        for (u32 s = 0; s < STAGES; s++) {
            barrier_init(full + 8 * s, 1);
            barrier_init(empty + 8 * s, p.width * CLUSTER);
        }
        barrier_fence();
    }
    cluster_sync();
    if (warp == WARPS) {
        launches_before();
        launches_after();
        tile_map<ELEM>(map, (TileMap *)(smem + RING_BYTES + 256), b, p.cols, p.ldb, (u64)p.ldb * 2, PART);
        if (lane == 0) {
            tile_map_acquire(map);
            bring(ring, full, empty, map, tiles, windows);
        }
        __syncwarp();
    } else if (warp < p.width) {
        Phases filled{full, 0};
        u32 half = lane & 8 ? 16 : 0; // ldmatrix: matrix 2i + j is vectors 8i to 8i + 7, columns 8j to 8j + 7
        Ahead ahead(ring + RING_BYTES + 384 + warp * (AHEAD * STEP_BYTES), values, (const u16 *)places, lane);
        asm volatile("" : "+l"(ahead.values), "+l"(ahead.places), "+r"(half)); // else they are computed in each step
        u32 stream, i, end, bounds, panels; // of a tile; bounds of the next 32 segments, one a lane
        const u32 *list;
        auto take = [&](u32 tile) { // a tile, whose first steps are on their way then
            stream = tiles.stream(tile, warp);
            list = ptr + (u64)stream * windows;
            bool any = stream < tiles.streams;
            i = any ? __ldg(list) : 0, end = any ? __ldg(list + windows) : 0;
            bounds = any ? __ldg(list + min(lane + 1, windows)) : 0;
            panels = any ? __ldg(rowmap + stream * LISTS + lane % LISTS) : 0xffffffff;
            ahead.start(i, end);
        };
        take(tiles.cluster);
#pragma unroll 1
        for (u32 tile = tiles.cluster; tile < tiles.count; tile += tiles.clusters) {
            u32 segment = 0, until = i, stage = 0; // steps before `until` are of segments before `segment`
            auto release = [&](u32 old) {
                __syncwarp();
                if (lane < CLUSTER) barrier_arrive(empty + 8 * old, lane);
            };
            auto enter = [&] { // the next segment
                if (segment >= SPAN) release(stage < SPAN ? stage + STAGES - SPAN : stage - SPAN);
                filled.wait(stage);
                if (++stage == STAGES) stage = 0;
                segment++;
            };
            float acc[ROWS / 8][COLS / 16][4] = {};
#pragma unroll 1
            for (; i < end; i++) {
                u32 v[ROWS / 8][2], place[PLACE_BYTES / 4];
                ahead.read(v, place);
                while (i == until) {
                    if (segment > 0 && segment % 32 == 0) bounds = __ldg(list + min(segment + lane + 1, windows));
                    until = __shfl_sync(0xffffffff, bounds, segment % 32);
                    enter();
                }
#pragma unroll
                for (int l = 0; l < LISTS; l++) {
                    u32 at = ((l & 1 ? place[l / 2] >> 12 & 0xffff0 : place[l / 2] << 4 & 0xffff0) ^ half) + ring, x[COLS / 16][4];
#pragma unroll
                    for (int j = 0; j < COLS / 16; j++) ldmatrix_trans(x[j], at ^ 32 * j);
#pragma unroll
                    for (int h = 0; h < V / 8; h++)
#pragma unroll
                        for (int j = 0; j < COLS / 16; j++) {
                            int r = l * (V / 8) + h;
                            mma<ELEM>(acc[r][j], x[j], v[r][0], v[r][1]);
                        }
                }
                ahead.next(i + AHEAD, end);
            }
            while (segment < windows) enter();
            for (u32 w = min(SPAN, windows); w > 0; w--) release((windows - w) % STAGES);
            EntriesStream entries{list, mask, (const u16 *)places, values, b, windows, p.ldb, 0};
            u32 mine = panels;
            if (tile + tiles.clusters < tiles.count) take(tile + tiles.clusters);
            launches_before();
            Out<Params> out({c, bias}, p);
#pragma unroll
            for (int h = 0; h < ROWS / 8; h++) {
                u32 panel = __shfl_sync(0xffffffff, mine, 8 * h / V);
                if (panel == 0xffffffff) continue;
                store_rows(acc[h], 8 * h, out, tiles.column(tile), entries,
                           [&](u32 r) { return row_of(rowmap + tiles.streams * LISTS, {0, 0, panel * V, 0}, r % V); });
            }
        }
        __syncwarp();
    }
    cluster_sync(); // no block leaves while others still copy to it or arrive at its barriers
}
