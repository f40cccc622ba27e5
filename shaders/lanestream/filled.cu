// Computes: C (rows × n) = alpha·A·B + beta·C for many columns, A (rows × cols) as lane streams, f16 or bf16, sums in
// f32, by wgmma on compute capability 9.0. Panels of A's rows are first filled with zeros, that is, expanded to dense
// matrices in a workspace, and then multiplied from there.
// Tile: a panel is (64·panel_groups × cols). There are two kernels. One (FILLS) only expands the panel panel_number.
// The other multiplies that panel, and meanwhile expands the next one if there is one: the workspace has room for two,
// panel i at place i mod 2. It multiplies in tiles (256 × COLS) of a cluster of two CTAs, a consumer warpgroup (64 ×
// COLS). Tiles of the last round are split along K if that gives more clusters work (split_k.cuh).
// Data movement: to expand, a filler warp loads one stream at a time into its stage buffer in shared memory, and writes
// 16 bytes of a row at a time. To multiply, a producer warp loads A by bulk copies and B by TMA; each CTA loads half of
// B and multicasts it. A launch begins while the one before still runs, and waits for that before it touches anything
// but the matrix.
// Bound by: tensor cores for many columns, expansion for few.
//
// An expanded panel is blocks (64 × 32); those of a group of rows follow each other. A block is as wgmma reads it from
// shared memory: rows of 64 bytes, whose 16-byte chunks are swizzled by (row / 2) mod 4. The columns of a block are in
// the order in which lanes have them, and rows of B are loaded in the same order:
//
//     layout Places   column 8c + 4h + q at place 8q + 2c + h
//     layout Pairs    column 16k + 4q + j at place 8q + 4k + j
//
// Constants: ENTRY, ELEM (half.cuh), PAIRS (the matrix's layout); COLS (a multiple of 64), DEPTH (32 or 64) and STAGES
// of operands; FILLERS (filler warps of the multiplying kernel, at most 3) and FILL_BUFFER (bytes of each one's
// buffer); MOST_BLOCKS, MOST_SPLITS and LEAST_STAGES (of a split). For the expanding kernel (FILLS is 1):
// WARPS_OF_BLOCK and BUFFERS_BYTES. Dynamic shared memory: SHARED_BYTES; for the expanding kernel BUFFERS_BYTES and 64
// bytes for each warp.

#define HOPPER
#define BUFFER_BYTES 16512 // lanestream.cuh needs it; this kernel uses only StageBuffer's static functions
#define FIRST_SEGMENT first_segment
#include "ordered.cuh"
#include "pairs.cuh"
#include "../dense/wgmma.cuh"
#include "../include/launches.cuh"
#include "../include/split_k.cuh"

#define THREADS 384
#define CLUSTER_ROWS 2
#define GROUPS 2 // groups of 64 rows in a CTA's tile
#define BLOCK_BYTES 4096 // of a block: 64 rows by 32 columns of A
#define IN_STAGE (DEPTH / STEP_COLS) // blocks of a group in a stage
#define SLAB (DEPTH * 128) // bytes of 64 rows of A, or 64 columns of B, in a stage
#define A_BYTES (GROUPS * SLAB)
#define B_BYTES (COLS / 64 * SLAB)
#define STAGE_BYTES (A_BYTES + B_BYTES)
#define MASK_STEP (PAIRS ? 384 : STEP_BYTES)
#define REPEATED (16 * ROW_BYTES) // repeated behind the buffer's end: from the last row, Places reads 15 on, Pairs 16
#define UNIT (PAIRS ? 16 : 8) // rows of B that a block's order permutes among themselves
// Behind the stages and the fill buffers: a tensor map, barriers.
#define SHARED_BYTES (STAGES * STAGE_BYTES + FILLERS * FILL_BUFFER + 128 + 16 * STAGES + FILLERS * MOST_SLOTS * 8)

static_assert(FILLERS <= 3, "one warp of the first four brings operands");

// Each CTA's tensor map of B, one for launches with even panels and one for odd ones, because a launch makes its map
// while the launch before still runs.
__device__ TileMap maps[2][MOST_BLOCKS];

// place_of returns the place of a column in its block's order.
__device__ __forceinline__ u32 place_of(u32 col) {
    return PAIRS ? (col >> 2 & 3) * 8 + (col >> 4) * 4 + (col & 3) : (col & 3) * 8 + (col >> 3) * 2 + (col >> 2 & 1);
}
// byte_of returns the byte offset in a block of row r's place k.
__device__ __forceinline__ u32 byte_of(u32 r, u32 k) { return r * 64 + (k / 8 ^ r / 2 % 4) * 16 + k % 8 * 2; }

// This kernel's meanings of fields of the parameter block: the groups of a panel, and the panel of a launch.
__device__ __forceinline__ u32 panel_groups(const Params &p) { return p.each; }
__device__ __forceinline__ u32 panel_number(const Params &p) { return p.width; }

// Panel is a panel of A's rows, expanded in the workspace.
struct Panel {
    u32 first, groups, stages, blocks; // groups of rows; stages and blocks of a group's columns
    unsigned char *at;

    __device__ __forceinline__ Panel(u32 number, unsigned char *work, const Params &p)
        : first(number * panel_groups(p)), groups(min(panel_groups(p), p.groups - number * panel_groups(p))) {
        stages = (p.segments * p.steps + IN_STAGE - 1) / IN_STAGE, blocks = stages * IN_STAGE;
        at = work + (u64)(number % 2) * bytes(p);
    }
    // bytes returns a panel's size in the workspace.
    __device__ __forceinline__ u64 bytes(const Params &p) const { return (u64)panel_groups(p) * blocks * BLOCK_BYTES; }
    // block returns the address of block k of a group.
    __device__ __forceinline__ unsigned char *block(u32 group, u32 k) const {
        return at + ((u64)group * blocks + k) * BLOCK_BYTES;
    }
};

// Remainder is a lane's position in the COO remainder of a row. The next entry is prefetched.
struct Remainder {
    const u32 *cols;
    const u16 *values;
    u32 at, end, col, next;
    u16 value, next_value;

    __device__ __forceinline__ Remainder(const Index &index, const u16 *values_, const Params &p, u32 row, u32 from)
        : cols(index.remainder_cols(p)), values(index.remainder_values(values_)), at(0), end(0), col(~0u), next(~0u),
          value(0), next_value(0) {
        if (row < p.rows) at = index.remainder_at(row), end = index.remainder_at(row + 1);
        for (u32 past = end; at < past;) {
            u32 middle = at + (past - at) / 2;
            if (cols[middle] < from) at = middle + 1;
            else past = middle;
        }
        advance();
        advance();
    }
    __device__ __forceinline__ void advance() {
        col = next, value = next_value, next = ~0u;
        if (at < end) next = cols[at], next_value = values[at], at++;
    }
    // put writes the entries before column `until` to row r of a block.
    __device__ __forceinline__ void put(unsigned char *block, u32 r, u32 until) {
        while (col < until) {
            asm volatile("st.global.u16 [%0], %1;" ::"l"(block + byte_of(r, place_of(col % STEP_COLS))), "h"(value)
                         : "memory");
            advance();
        }
    }
};

// interleaved reorders, in each half of x, two bytes that have the bit pairs of four positions each: the first byte of
// one word, the second of another. Then each byte has both words' pairs of two positions.
__device__ __forceinline__ u32 interleaved(u32 x) {
    u32 t = (x ^ x >> 4) & 0x00f000f0;
    x ^= t ^ t << 4;
    t = (x ^ x >> 2) & 0x0c0c0c0c;
    return x ^ t ^ t << 2;
}

// take_four reads the values of two positions of two words. Bit 4i + c of byte BYTE of the mask says that chain c takes
// its next value at position i; its address in shared memory is next[c]. The value becomes x[4i + c].
template <int BYTE> __device__ __forceinline__ void take_four(u32 mask, u32 (&next)[4], u32 *x) {
    // clang-format off
    asm volatile("{.reg .pred none; .reg .b32 t;\n"
                 "mov.b32 %0, 0; mov.b32 %1, 0; mov.b32 %2, 0; mov.b32 %3, 0; "
                 "mov.b32 %4, 0; mov.b32 %5, 0; mov.b32 %6, 0; mov.b32 %7, 0;\n"
                 TAKE("L0", "%12", "%13", "%8", "%0") TAKE("L1", "%12", "%14", "%9", "%1")
                 TAKE("L2", "%12", "%15", "%10", "%2") TAKE("L3", "%12", "%16", "%11", "%3")
                 TAKE("L4", "%12", "%17", "%8", "%4") TAKE("L5", "%12", "%18", "%9", "%5")
                 TAKE("L6", "%12", "%19", "%10", "%6") TAKE("L7", "%12", "%20", "%11", "%7")
                 "}\n"
                 : "=&r"(x[0]), "=&r"(x[1]), "=&r"(x[2]), "=&r"(x[3]), "=&r"(x[4]), "=&r"(x[5]), "=&r"(x[6]),
                   "=&r"(x[7]),
                   "+&r"(next[0]), "+&r"(next[1]), "+&r"(next[2]), "+&r"(next[3])
                 : "r"(mask), BITS(BYTE)
                 : "memory");
    // clang-format on
}

// store_words writes four words to memory.
__device__ __forceinline__ void store_words(unsigned char *to, u32 a, u32 b, u32 c, u32 d) {
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(a), "r"(b), "r"(c), "r"(d) : "memory");
}
// Filler is a filler warp, which expands one stream after another.
struct Filler {
    const Index &index;
    const u32 *mask;
    const u16 *values;
    const Params &p;
    const Panel &panel;
    u32 buffer, barriers, lane; // addresses in shared memory; the lane's number
    u32 phases; // bit i: the parity of barrier i
    u32 next[2]; // addresses of the next values of the lane's chains; for Pairs next[0] is the last word that was taken
    u32 end, wrap; // of the buffer: its end, its size

    __device__ __forceinline__ void wrapped(u32 &x) const {
        if (x >= end) x -= wrap;
    }

    // places expands 32 columns, layout Places. Their mask words are at `bits`; `to` is the lane's place in its first
    // row.
    __device__ __forceinline__ void places(u32 bits, unsigned char *to) {
        uint2 m = shared_words(bits + 8 * lane);
        u32 at[4];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            at[h] = next[h], next[h] += ROW_BYTES * __popc(m.x & 0x55555555 << h);
            wrapped(next[h]);
            at[2 + h] = next[h], next[h] += ROW_BYTES * __popc(m.y & 0x55555555 << h);
            wrapped(next[h]);
        }
#pragma unroll
        for (u32 two = 0; two < 4; two += 2) {
            u32 of = interleaved(__byte_perm(m.x, m.y, two | (4 + two) << 4 | (two + 1) << 8 | (5 + two) << 12)),
                x[2][16]; // position i of chain c at 4i + c
            take_four<0>(of, at, x[0]);
            take_four<1>(of, at, x[0] + 8);
            take_four<2>(of, at, x[1]);
            take_four<3>(of, at, x[1] + 8);
#pragma unroll
            for (u32 t = 0; t < 2; t++)
#pragma unroll
                for (u32 r = 0; r < 2; r++) {
                    const u32 *a = x[t] + 4 * r, *b = a + 8; // of k = 0, 1
                    store_words(to + (two + t) * 1024 + r * 512, a[1] * 65536 + a[0], b[1] * 65536 + b[0],
                                a[3] * 65536 + a[2], b[3] * 65536 + b[2]);
                }
        }
    }

    // pairs expands 32 columns, layout Pairs.
    __device__ __forceinline__ void pairs(u32 bits, unsigned char *to) {
        u32 presence = shared_word(bits + 256 + 4 * lane), q = lane % 4;
        uint4 a = shared_quad(bits + lane / 4 * 32), b = shared_quad(bits + lane / 4 * 32 + 16);
        u32 columns[4][2] = {{a.x >> 4 * q, a.y >> 4 * q},
                             {a.z >> 4 * q, a.w >> 4 * q},
                             {b.x >> 4 * q, b.y >> 4 * q},
                             {b.z >> 4 * q, b.w >> 4 * q}};
#pragma unroll
        for (int t = 0; t < 4; t++) {
            u32 x[2][4]; // of rows r: words 2k, 2k + 1
#pragma unroll
            for (int k = 0; k < 2; k++)
#pragma unroll
                for (int r = 0; r < 2; r++) {
                    const int i = 4 * t + 2 * k + r, bit = 16 * (i / 8) + 7 - i % 8;
                    u32 code = columns[2 * (t % 2) + k][t / 2] >> 16 * r;
                    if (presence >> bit & 1) next[0] += ROW_BYTES;
                    u32 w = shared_word(next[0]), low = presence >> bit & 1 ? w & 0xffff : 0,
                        high = presence >> (bit + 8) & 1 ? w >> 16 : 0;
                    u64 four = (u64)low << 16 * (code & 3) | (u64)high << 16 * (code >> 2 & 3);
                    x[r][2 * k] = (u32)four, x[r][2 * k + 1] = (u32)(four >> 32);
                }
#pragma unroll
            for (int r = 0; r < 2; r++) store_words(to + t * 1024 + r * 512, x[r][0], x[r][1], x[r][2], x[r][3]);
        }
        wrapped(next[0]);
    }

    // stream expands one split of group g of the panel.
    __device__ __forceinline__ void stream(u32 g, u32 split, u32 buffer_bytes) {
        u64 number = (u64)(panel.first + g) * p.splits + split;
        u32 first = first_segment(p, split), count = first_segment(p, split + 1) - first, row = index.row(number),
            left = (index.row(number + 1) - row) * ROW_BYTES;
        if (count == 0) return;
        u32 segment_bytes = index.segment_rows(number) * ROW_BYTES, mask_bytes = p.steps * MASK_STEP,
            total = count + p.window - 1;
        u32 slots = min((buffer_bytes - REPEATED) / (segment_bytes + mask_bytes), MOST_SLOTS),
            masks = buffer + slots * segment_bytes + REPEATED;
        const unsigned char *v = (const unsigned char *)values + (u64)row * ROW_BYTES,
                            *m = (const unsigned char *)mask +
                                 ((u64)(panel.first + g) * p.segments + first) * mask_bytes;
        wrap = slots * segment_bytes, end = buffer + wrap;
        next[0] = buffer + 4 * lane + (PAIRS ? wrap - ROW_BYTES : 0), next[1] = next[0] + 2;
        u32 coming = 0, to = 0, arriving = 0;
        auto fetch = [&](u32 slot) { // starts loading the next segment, when all lanes have used the slot's last one
            u32 n = min(segment_bytes, left), mirrored = to < REPEATED ? min(n, REPEATED - to) : 0,
                bits = coming < count ? mask_bytes : 0, barrier = barriers + 8 * slot;
            if (StageBuffer::elected()) {
                barrier_expect(barrier, n + mirrored + bits);
                if (n > 0) StageBuffer::bulk(buffer + to, v, n, barrier);
                if (mirrored > 0) StageBuffer::bulk(buffer + wrap + to, v, mirrored, barrier);
                if (bits > 0) StageBuffer::bulk(masks + slot * mask_bytes, m, bits, barrier);
            }
            v += n, left -= n, m += bits, coming++;
            to = slot + 1 == slots ? 0 : to + segment_bytes;
        };
        auto wait = [&] {
            barrier_wait(barriers + 8 * arriving, phases >> arriving & 1);
            phases ^= 1 << arriving;
            if (++arriving == slots) arriving = 0;
        };
        for (u32 j = 0; j < min(slots, total); j++) fetch(j);
        u32 step = first * p.steps, column = step * STEP_COLS, row_of = panel.first + g;
        Remainder above(index, values, p, row_of * GROUP_ROWS + lane, column),
            below(index, values, p, row_of * GROUP_ROWS + 32 + lane, column);
        u32 mine = lane / 4 * 64 + (lane % 4 ^ lane / 8) * 16; // the lane's place in its first row of a block
        launches_before();
        for (u32 j = 0; j + 1 < p.window; j++) wait();
        u32 slot = 0;
#pragma unroll 1
        for (u32 j = 0; j < count; j++) {
            wait();
#pragma unroll 1
            for (u32 s = 0; s < p.steps; s++, step++) {
                unsigned char *block = panel.block(g, step);
                u32 bits = masks + slot * mask_bytes + s * MASK_STEP;
                if (PAIRS) pairs(bits, block + mine);
                else places(bits, block + mine);
                column += STEP_COLS;
                if (__any_sync(0xffffffff, min(above.col, below.col) < column)) {
                    __syncwarp();
                    above.put(block, lane, column);
                    below.put(block, 32 + lane, column);
                }
            }
            __syncwarp();
            if (coming < total) fetch(slot);
            if (++slot == slots) slot = 0;
        }
        if (split + 1 == p.splits && step < panel.blocks) { // the stage's last block has no columns: zeros
#pragma unroll
            for (u32 r = 0; r < 8; r++) store_words(panel.block(g, step) + mine + r * 512, 0, 0, 0, 0);
        }
        __syncwarp();
    }

    // fill: body of filler warp `number` out of `warps`.
    __device__ __forceinline__ void fill(u32 number, u32 warps, u32 buffer_bytes) {
#pragma unroll 1
        for (u32 s = number; s < panel.groups * p.splits; s += warps) stream(s / p.splits, s % p.splits, buffer_bytes);
    }
};

#if !FILLS
// WorkTile is a work tile of a CTA: COLS columns of C from col on, and GROUPS groups of rows, from group `group` of the
// panel on. If is_split, it is split number `split` of the tile's sum, and the tile is the slot-th that is split.
struct WorkTile {
    u32 group, col, first, last, slot, split; // first and last: stages
    bool is_split;
};

// Work is a CTA's work tiles, and its layout of shared memory.
struct Work {
    const Panel &panel;
    u32 stages, full, empty; // barriers of stages
    u32 rank, cluster, clusters, high, wide, whole, split_count, work_tiles;

    __device__ __forceinline__ Work(const Panel &panel, u32 stages, u32 barriers, const Params &p)
        : panel(panel), stages(stages), full(barriers), empty(barriers + 8 * STAGES) {
        rank = blockIdx.x % CLUSTER_ROWS, cluster = blockIdx.x / CLUSTER_ROWS, clusters = gridDim.x / CLUSTER_ROWS;
        high = (panel.groups + GROUPS * CLUSTER_ROWS - 1) / (GROUPS * CLUSTER_ROWS), wide = (p.n + COLS - 1) / COLS;
        u32 tiles = high * wide, left = tiles % clusters;
        split_count = left == 0 ? 1 : max(1, min(clusters / left, min(MOST_SPLITS, panel.stages / LEAST_STAGES)));
        whole = split_count > 1 ? tiles - left : tiles, work_tiles = whole + (tiles - whole) * split_count;
    }
    // work_tile returns the cluster's work tile number i. Tiles are numbered along the columns of a band of tiles, then
    // down, so that those computed at the same time share rows of A and columns of B. The splits of a tile have
    // neighbouring numbers, so that they are summed at the same time.
    __device__ __forceinline__ WorkTile work_tile(u32 i) const {
        const u32 BAND = 8;
        bool is_split = i >= whole;
        u32 slot = is_split ? (i - whole) / split_count : 0, split = is_split ? (i - whole) % split_count : 0,
            of = is_split ? split_count : 1, tile = is_split ? whole + slot : i;
        u32 in = tile % (high * BAND), col = tile / (high * BAND) * BAND, across = min(BAND, wide - col);
        return {(in / across * CLUSTER_ROWS + rank) * GROUPS,
                (col + in % across) * COLS,
                panel.stages * split / of,
                panel.stages * (split + 1) / of,
                slot,
                split,
                is_split};
    }

    __device__ __forceinline__ void start() const {
        for (u32 s = 0; s < STAGES; s++) {
            barrier_init(full + 8 * s, 1);
            barrier_init(empty + 8 * s, GROUPS * CLUSTER_ROWS);
        }
    }

    // produce: body of the producer warp. Columns of B and groups of A past the matrix are not loaded: their results
    // are never stored.
    __device__ __forceinline__ void produce(const u16 *b, const TileMap *map, const Params &p, u32 lane) const {
        u32 stage = 0, parity = 1;
        for (u32 i = cluster; i < work_tiles; i += clusters) {
            WorkTile x = work_tile(i);
            u32 slabs = min((p.n - x.col + 63) / 64, COLS / 64),
                groups = x.group < panel.groups ? min(GROUPS, panel.groups - x.group) : 0;
            for (u32 k = x.first; k < x.last; k++) {
                u32 to = stages + stage * STAGE_BYTES, bar = full + 8 * stage;
                bool by_hand = p.cols % UNIT != 0 && p.cols / DEPTH == k;
                barrier_wait(empty + 8 * stage, parity);
                if (by_hand)
                    load_tail(b, p, to + A_BYTES, SLAB, k * DEPTH, DEPTH, x.col, slabs, lane,
                              [](u32 r) { return r / STEP_COLS * STEP_COLS + place_of(r % STEP_COLS); });
                if (lane == 0) {
                    barrier_expect(bar, groups * SLAB + (by_hand ? 0 : slabs * SLAB));
                    for (u32 g = 0; g < groups; g++)
                        StageBuffer::bulk(to + g * SLAB, panel.block(x.group + g, k * IN_STAGE), SLAB, bar);
                    if (!by_hand)
                        for (u32 i = rank; i < slabs * IN_STAGE; i += CLUSTER_ROWS)
                            ordered_copy(to + A_BYTES + i * 32 * 128, map, x.col + 64 * (i / IN_STAGE),
                                         (k * IN_STAGE + i % IN_STAGE) * (STEP_COLS / UNIT), 0, bar,
                                         (1 << CLUSTER_ROWS) - 1);
                }
                if (++stage == STAGES) stage = 0, parity ^= 1;
            }
        }
    }
};

// left_of returns wgmma's descriptor of 64 rows by 32 columns of A in shared memory.
__device__ __forceinline__ u64 left_of(u32 at) {
    return (u64)((at & 0x3ffff) >> 4) | (u64)1 << 16 | (u64)(512 >> 4) << 32 | (u64)2 << 62;
}

// multiply: body of consumer warpgroup `group` (0 or 1).
__device__ __forceinline__ void multiply(const Work &w, u32 group, Dest to, const Params &p, float *sums,
                                         const RowEntries &recompute) {
    u32 thread = threadIdx.x % 128, stage = 0, parity = 0, before = 0;
    u64 left = left_of(w.stages + group * SLAB), right = swizzled(w.stages + A_BYTES, SLAB);
#pragma unroll 1
    for (u32 i = w.cluster; i < w.work_tiles; i += w.clusters) {
        WorkTile work_tile = w.work_tile(i);
        float acc[1][COLS / 8][4] = {};
        auto release = [&](u32 s) { // one thread for each CTA
            if (thread < CLUSTER_ROWS) barrier_arrive(w.empty + 8 * s, thread);
        };
#pragma unroll 1
        for (u32 k = work_tile.first; k < work_tile.last; k++) {
            u64 at = stage * (STAGE_BYTES >> 4); // descriptors count in units of 16 bytes
            barrier_wait(w.full + 8 * stage, parity);
            wgmma_fence();
#pragma unroll
            for (u32 e = 0; e < DEPTH / 16; e++)
                wgmma_sum<ELEM, 0, 1>(acc[0], left + at + ((e / 2 * BLOCK_BYTES + e % 2 * 32) >> 4),
                                      right + at + e * (16 * 128 >> 4));
            wgmma_commit();
            if (k > work_tile.first) {
                wgmma_wait<1>(); // the previous stage is done
                release(before);
            }
            before = stage;
            if (++stage == STAGES) stage = 0, parity ^= 1;
        }
        wgmma_wait<0>();
        wgmma_hold(acc[0]);
        if (work_tile.first < work_tile.last) release(before);
        u32 row = work_tile.group + group < w.panel.groups
                      ? (w.panel.first + work_tile.group + group) * GROUP_ROWS + thread / 32 * 16
                      : p.rows;
        if (work_tile.is_split)
            store_split_k<128>(acc, to, p, w.split_count, row, work_tile.col,
                               (work_tile.slot * CLUSTER_ROWS + w.rank) * GROUPS + group, work_tile.split, group + 1,
                               sums, recompute);
        else store_tiles(acc, to, p, row, work_tile.col, recompute);
    }
}
#endif

// fill_barriers initialises the barriers of a filler warp's buffer.
__device__ __forceinline__ void fill_barriers(u32 at, u32 lane) {
    if (lane == 0) {
        for (u32 i = 0; i < MOST_SLOTS; i++) barrier_init(at + 8 * i, 1);
        barrier_fence();
    }
    __syncwarp();
}

#if FILLS
// In each CTA as many warps expand as there are streams for. They share the memory for stage buffers.
extern "C" __global__ void __launch_bounds__(32 * WARPS_OF_BLOCK, 1)
#else
extern "C" __global__ void __launch_bounds__(THREADS, 1) __cluster_dims__(CLUSTER_ROWS, 1, 1)
#endif
    ENTRY(const u32 *__restrict__ index_, const u32 *__restrict__ mask, const u16 *__restrict__ values,
          const u16 *__restrict__ b, const float *__restrict__ bias, void *__restrict__ c,
          unsigned char *__restrict__ work, const __grid_constant__ Params p) {
    extern __shared__ __align__(1024) unsigned char smem[];
    Index index(index_, p);
    u32 at = shared_address(smem), warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
    Panel panel(panel_number(p), work, p);
#if FILLS
    u32 warps = min(max((panel.groups * p.splits + gridDim.x - 1) / gridDim.x, 1), WARPS_OF_BLOCK),
        buffer = BUFFERS_BYTES / warps / 128 * 128;
    if (warp >= warps) return;
    u32 barriers = at + BUFFERS_BYTES + warp * MOST_SLOTS * 8;
    fill_barriers(barriers, lane);
    Filler{index, mask, values, p, panel, at + warp * buffer, barriers, lane, 0, {0, 0}, 0, 0}.fill(
        warp * gridDim.x + blockIdx.x, warps * gridDim.x, buffer);
    launches_before();
    launches_after();
#else
    u32 buffers = at + STAGES * STAGE_BYTES, scratch = buffers + FILLERS * FILL_BUFFER, barriers = scratch + 128;
    Work w(panel, at, barriers, p);
    if (threadIdx.x == 0) {
        w.start();
        barrier_fence();
    }
    cluster_sync();
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(FILLERS ? 88 : 40));
        if (warp == 0) {
            TileMap *map = &maps[panel_number(p) % 2][blockIdx.x];
            u32 units = max(p.cols / UNIT, 1);
            if (PAIRS)
                ordered_map(map, (TileMap *)(smem + (scratch - at)), b, p, {4, 4, 1}, {units, 2, UNIT}, {4, 4, 4});
            else ordered_map(map, (TileMap *)(smem + (scratch - at)), b, p, {2, 2, 4}, {units, 4, UNIT}, {4, 4, 1});
            tile_map_acquire(map);
            launches_before();
            launches_after();
            w.produce(b, map, p, lane);
        } else if (FILLERS > 0 && warp <= FILLERS && (panel_number(p) + 1) * panel_groups(p) < p.groups) {
            Panel next(panel_number(p) + 1, work, p);
            u32 fill = barriers + 16 * STAGES + (warp - 1) * MOST_SLOTS * 8;
            fill_barriers(fill, lane);
            Filler{index, mask, values, p, next, buffers + (warp - 1) * FILL_BUFFER, fill, lane, 0, {0, 0}, 0, 0}.fill(
                (warp - 1) * gridDim.x + blockIdx.x, gridDim.x * FILLERS, FILL_BUFFER);
        }
        __syncwarp();
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(FILLERS ? 208 : 232));
        launches_before();
        u32 panels = panel_groups(p) < p.groups ? 2 : 1;
        multiply(w, warp / 4 - 1, {c, bias}, p, (float *)(work + panels * panel.bytes(p)),
                 RowEntries{index, mask, values, b, &p});
        __syncwarp();
    }
    cluster_sync(); // no CTA exits while others still copy to it or arrive at its barriers
#endif
}
