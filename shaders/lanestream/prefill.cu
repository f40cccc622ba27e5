// Computes: C (rows × n) = alpha·A·B + beta·C for many columns, A (rows × cols) as lane streams of layout Places, f16
// or bf16, sums in f32, by wgmma with operand A in registers, on compute capability 9.0.
// Tile: a CTA computes (64·GROUPS × COLS), a consumer warpgroup (64 × COLS), its warp w rows 16w to 16w + 15. A cluster
// is CLUSTER_ROWS CTAs with neighbouring rows of the same columns. Clusters are persistent: each takes one tile after
// another. If half of the clusters or more had no tile in the last round, its tiles are split in two along K, one half
// for each CTA of the cluster, and partial sums are added through distributed shared memory.
// Data movement: while the tensor cores multiply 64 columns of A, the consumer warps expand the next 64 to registers,
// as kernel.cu does (each warp a quarter of a chain's positions), and insert the COO remainder. A producer warp loads B
// in stages (64 × COLS) by TMA, in the order of the chains: row 8c + 4h + q of B becomes row 8c + 2q + h. Each CTA of
// the cluster loads some of B's columns and multicasts them. A second producer warp loads the streams: values into a
// stage buffer of BUFFER_ROWS rows, masks into slots for at most MOST_SEGMENTS segments. For each group one warp counts
// mask bits, and tells the consumer warps where their values of each word begin.
// Bound by: instructions that expand the masks.
// Constants: ENTRY, ELEM (half.cuh), GROUPS = 2, COLS (128 or 256), STAGES, CLUSTER_ROWS = 2, BUFFER_ROWS, MOST_BLOCKS.
// Dynamic shared memory: SHARED_BYTES + 1792 bytes.

#define HOPPER
#define BUFFER_BYTES 16512 // lanestream.cuh needs it; this kernel uses only StageBuffer's static functions
#include "ordered.cuh"
#include "../include/hopper_registers.cuh"

#define THREADS (128 * (GROUPS + 1))
#define DEPTH 64 // rows of a stage of B
#define SLAB (DEPTH * 128) // bytes of 64 columns of a stage of B
#define B_BYTES (COLS / 64 * SLAB)
#define MOST_SEGMENTS 16 // segments of a group in shared memory
#define MASK_BYTES 8192 // of the masks of these segments
#define REPEATED 32 // rows of the buffer that are repeated behind its end: what the chains of a step take at most
#define VALUE_BYTES ((BUFFER_ROWS + REPEATED) * ROW_BYTES)
#define STARTS 3 // stages for which the starts of values are kept
#define START_BYTES (128 * 20) // of a stage's starts: each thread has two offsets and a mask byte for each word
#define GROUP_BYTES (VALUE_BYTES + MASK_BYTES + STARTS * START_BYTES)
#define SHARED_BYTES (STAGES * B_BYTES + GROUPS * GROUP_BYTES) // behind it: a tensor map, barriers, heads of splits

static_assert(BUFFER_ROWS >= 140 && (BUFFER_ROWS + REPEATED) * ROW_BYTES < 65536,
              "four segments of values, and places of 16 bits");
static_assert(GROUPS == 2 && CLUSTER_ROWS == 2,
              "a warp that counts for each group, and a group for each block that adds two partial sums");

// Each CTA's tensor map of B. (Launches of one module run one after the other.)
__device__ TileMap maps[MOST_BLOCKS];

// WorkTile is a work tile of a CTA: COLS columns of C from col on, and GROUPS groups of rows from group on, for splits
// `from` to `to` - 1 of the streams, which are stages first to last - 1. If is_split, these are half of all splits, and
// the other CTA of the cluster has the other half.
struct WorkTile {
    u32 group, col;
    u32 from, to, first, last;
    bool is_split;
};

// band_tiles is this kernel's meaning of the parameter block's field `each`: tiles across a band of C.
__device__ __forceinline__ u32 band_tiles(const Params &p) { return p.each; }

// Work is a CTA's work tiles, and its layout of shared memory.
struct Work {
    u32 stages, groups; // addresses: the stages of B; the stage buffers of A, group after group
    u32 full, empty, arrived, taken, ready, used; // barriers: of stages of B, of segments, of starts
    u32 heads, sizes, ends; // heads of splits; rows of each segment; for each stage, how many segments end with it
    u32 depth; // rows of a stage
    u32 rank, high, wide, band, whole, work_tiles, cluster, clusters;
    u32 mask_bytes, segments; // of a segment; segments of a group in shared memory

    __device__ __forceinline__ Work(u32 smem, const Params &p) : stages(smem), groups(smem + STAGES * B_BYTES) {
        full = smem + SHARED_BYTES + 128, empty = full + 8 * STAGES, arrived = empty + 8 * STAGES,
        taken = arrived + 8 * GROUPS * MOST_SEGMENTS;
        ready = taken + 8 * GROUPS * MOST_SEGMENTS, used = ready + 8 * GROUPS * STARTS;
        heads = (used + 8 * GROUPS * STARTS + 15) / 16 * 16, sizes = heads + 16 * GROUPS * MOST_SEGMENTS,
        ends = sizes + 4 * GROUPS * MOST_SEGMENTS;
        rank = blockIdx.x % CLUSTER_ROWS, cluster = blockIdx.x / CLUSTER_ROWS, clusters = gridDim.x / CLUSTER_ROWS;
        depth = min(p.steps * STEP_COLS, DEPTH),
        high = (p.groups + GROUPS * CLUSTER_ROWS - 1) / (GROUPS * CLUSTER_ROWS), wide = (p.n + COLS - 1) / COLS;
        u32 tiles = high * wide, left = tiles % clusters;
        bool is_split = p.splits > 1 && 2 * left <= clusters;
        band = band_tiles(p), whole = is_split ? tiles - left : tiles, work_tiles = tiles + (is_split ? left : 0);
        mask_bytes = p.steps * STEP_BYTES, segments = min(MASK_BYTES / mask_bytes, MOST_SEGMENTS);
    }
    // work_tile returns the cluster's work tile number i. The tiles of a cluster have the same columns. Tiles are
    // numbered along the columns of a band, then down, so that A is read once for each band and a band of B stays in
    // L2.
    __device__ __forceinline__ WorkTile work_tile(u32 i, const Params &p) const {
        bool is_split = i >= whole;
        u32 tile = is_split ? whole + (i - whole) / 2 : i, in = tile % (high * band),
            first = tile / (high * band) * band, across = min(band, wide - first);
        u32 from = is_split && rank == 1 ? p.splits / 2 : 0, to = is_split && rank == 0 ? p.splits / 2 : p.splits;
        return {(in / across * CLUSTER_ROWS + (is_split ? (i - whole) % 2 : rank)) * GROUPS,
                (first + in % across) * COLS,
                from,
                to,
                stage(from, p),
                stage(to, p),
                is_split};
    }
    // stage returns the first stage of a split.
    __device__ __forceinline__ u32 stage(u32 split, const Params &p) const {
        return first_segment(p, split) * p.steps * STEP_COLS / depth;
    }
    // has_split reports whether the cluster's last work tile is half of a sum.
    __device__ __forceinline__ bool has_split() const { return cluster < work_tiles - whole; }

    __device__ __forceinline__ void start() const {
        for (u32 s = 0; s < STAGES; s++) {
            barrier_init(full + 8 * s, 1);
            barrier_init(empty + 8 * s, GROUPS * CLUSTER_ROWS);
        }
        for (u32 s = 0; s < GROUPS * MOST_SEGMENTS; s++) {
            barrier_init(arrived + 8 * s, 1);
            barrier_init(taken + 8 * s, 4);
        }
        for (u32 s = 0; s < GROUPS * STARTS; s++) {
            barrier_init(ready + 8 * s, 1);
            barrier_init(used + 8 * s, 4);
        }
        barrier_fence();
    }

    // produce_b: body of the producer warp of B. Columns past the matrix are not loaded: their results are never
    // stored.
    __device__ __forceinline__ void produce_b(const u16 *b, const TileMap *map, const Params &p, u32 lane) const {
        u32 stage = 0, parity = 1;
        for (u32 i = cluster; i < work_tiles; i += clusters) {
            WorkTile x = work_tile(i, p);
            u32 c = x.col, slabs = min((p.n - c + 63) / 64, COLS / 64), one = x.is_split ? 0 : rank,
                each = x.is_split ? 1 : CLUSTER_ROWS;
            u16 blocks = x.is_split ? 1 << rank : (1 << CLUSTER_ROWS) - 1;
            for (u32 k = x.first; k < x.last; k++) {
                u32 to = stages + stage * B_BYTES, bar = full + 8 * stage;
                barrier_wait(empty + 8 * stage, parity);
                if (p.cols % 8 != 0 && p.cols / depth == k) {
                    load_tail(b, p, to, SLAB, k * depth, depth, c, slabs, lane,
                              [](u32 r) { return r / 8 * 8 + 2 * (r % 4) + r / 4 % 2; });
                    if (lane == 0) barrier_arrive_here(bar);
                } else if (lane == 0) {
                    barrier_expect(bar, slabs * depth * 128);
                    for (u32 s = one; s < slabs; s += each)
                        ordered_copy(to + s * SLAB, map, c + 64 * s, 0, k * depth / 8, bar, blocks);
                }
                if (++stage == STAGES) stage = 0, parity ^= 1;
            }
        }
    }

    // produce_streams: body of a producer thread of A. It loads the streams of group `of` of each tile, segment after
    // segment. A segment's values may wrap around the buffer's end, and its first rows are repeated behind the end.
    __device__ __forceinline__ void produce_streams(u32 of, const Index &index, const u32 *mask_, const u16 *values_,
                                                    const Params &p) const {
        u32 buffer = groups + of * GROUP_BYTES, bits = buffer + VALUE_BYTES, here = arrived + 8 * MOST_SEGMENTS * of,
            gone = taken + 8 * MOST_SEGMENTS * of;
        u32 row = 0, room = BUFFER_ROWS, slot = 0, oldest = 0, parity = 0, on = 0,
            head = heads + 16 * MOST_SEGMENTS * of,
            size = sizes + 4 * MOST_SEGMENTS * of;
        for (u32 i = cluster; i < work_tiles; i += clusters) {
            WorkTile x = work_tile(i, p);
            u32 g = min(x.group + of, p.groups - 1);
            for (u32 split = x.from; split < x.to; split++) {
                u32 first = first_segment(p, split), count = first_segment(p, split + 1) - first;
                if (count == 0) continue;
                u64 stream = (u64)g * p.splits + split;
                u32 from = index.row(stream), rows = index.row(stream + 1) - from, each = index.segment_rows(stream),
                    total = max(count, (rows + each - 1) / each);
                const unsigned char *v = (const unsigned char *)values_ + (u64)from * ROW_BYTES,
                                    *m = (const unsigned char *)mask_ + ((u64)g * p.segments + first) * mask_bytes;
                for (u32 j = 0; j < total; j++) {
                    u32 n = min(each, rows);
                    for (; on == segments || room < n; on--) {
                        barrier_wait(gone + 8 * oldest, parity);
                        room += shared_word(size + 4 * oldest);
                        if (++oldest == segments) oldest = 0, parity ^= 1;
                    }
                    asm volatile("st.shared.u32 [%0], %1;" ::"r"(size + 4 * slot), "r"(n) : "memory");
                    if (j == 0)
                        asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(head + 16 * slot),
                                     "r"(row * ROW_BYTES), "r"(count), "r"(total), "r"(total - count)
                                     : "memory");
                    u32 bar = here + 8 * slot, some = min(n, BUFFER_ROWS - row),
                        mirrored = row < REPEATED ? min(some, REPEATED - row) : 0, more = min(n - some, REPEATED);
                    u32 bytes = j < count ? mask_bytes : 0;
                    barrier_expect(bar, (n + mirrored + more) * ROW_BYTES + bytes);
                    if (bytes > 0) StageBuffer::bulk(bits + slot * mask_bytes, m, bytes, bar);
                    if (some > 0) StageBuffer::bulk(buffer + row * ROW_BYTES, v, some * ROW_BYTES, bar);
                    if (mirrored > 0)
                        StageBuffer::bulk(buffer + (BUFFER_ROWS + row) * ROW_BYTES, v, mirrored * ROW_BYTES, bar);
                    if (n > some) StageBuffer::bulk(buffer, v + some * ROW_BYTES, (n - some) * ROW_BYTES, bar);
                    if (more > 0)
                        StageBuffer::bulk(buffer + BUFFER_ROWS * ROW_BYTES, v + some * ROW_BYTES, more * ROW_BYTES,
                                          bar);
                    row += n, rows -= n, room -= n, v += n * ROW_BYTES, m += mask_bytes, on++;
                    if (row >= BUFFER_ROWS) row -= BUFFER_ROWS;
                    if (++slot == segments) slot = 0;
                }
            }
        }
    }
};

// Remainder is a warp's position in the COO remainder of its 16 rows: lanes 0 to 15 have a row each.
struct Remainder {
    const u32 *cols;
    const u16 *values;
    u32 at, end, col, value, next, next_value;

    // The first entry is the first of column `from` or after it.
    __device__ __forceinline__ Remainder(const Index &index, const u16 *values_, const Params &p, u32 row, u32 from,
                                         u32 lane)
        : cols(index.remainder_cols(p)), values(index.remainder_values(values_)), at(0), end(0), col(~0u), value(0),
          next(~0u), next_value(0) {
        if (lane < 16 && row + lane < p.rows)
            at = index.remainder_at(row + lane), end = index.remainder_at(row + lane + 1);
        for (u32 past = end; from > 0 && at < past;) {
            u32 middle = at + (past - at) / 2;
            if (cols[middle] < from) at = middle + 1;
            else past = middle;
        }
        advance(true);
        advance(true);
    }
    // advance goes on to the next entry, and starts loading the one after it. Nothing waits for that load.
    __device__ __forceinline__ void advance(bool it) {
        asm volatile("{.reg .pred go, more;\n"
                     "setp.ne.u32 go, %6, 0; setp.lt.and.u32 more, %4, %5, go;\n"
                     "@go mov.b32 %0, %2; @go mov.b32 %1, %3; @go mov.b32 %2, 0xffffffff;\n"
                     "@more ld.global.nc.u32 %2, [%7]; @more ld.global.nc.u16 %3, [%8]; @go add.u32 %4, %4, 1;}"
                     : "+&r"(col), "+&r"(value), "+&r"(next), "+&r"(next_value), "+&r"(at)
                     : "r"(end), "r"((u32)it), "l"(cols + at), "l"(values + at));
    }
    // put inserts the entries before column `until` into x, the registers of the 64 columns before it.
    __device__ __forceinline__ void put(u32 (&x)[4][4], u32 until, u32 lane) {
        u32 rows = __ballot_sync(0xffffffff, col < until);
#pragma unroll 1
        while (rows != 0) {
            u32 row = __ffs(rows) - 1, e = __shfl_sync(0xffffffff, value << 16 | (col & 63), row), c = e & 63,
                v = e >> 16 << (c & 4) * 4;
            u32 bit = lane == (row & 7) * 4 + (c & 3) ? 1u << ((c >> 4) * 4 + (c >> 3 & 1) * 2 + (row >> 3)) : 0;
            advance(lane == row);
#pragma unroll
            for (int i = 0; i < 16; i++)
                asm volatile("{.reg .pred none; .reg .b32 t; and.b32 t, %1, %2; setp.eq.u32 none, t, 0; "
                             "@none bra L; or.b32 %0, %0, %3; L: }"
                             : "+r"(x[i / 4][i % 4])
                             : "r"(bit), "r"(1u << i), "r"(v));
            rows &= rows - 1;
            if (rows == 0) rows = __ballot_sync(0xffffffff, col < until);
        }
    }
};

// Stream is a counting warp's position in the streams of a group.
struct Stream {
    u32 masks, arrived, heads; // of the group
    u32 window, mask_bytes, segments;
    u32 next; // offsets of the next values of the lane's two chains, without 4·lane: the even chain's in the lower half
    u32 slot, waiting, parity; // the current segment; the next one to wait for, and its parity
    u32 left, coming, extra; // segments of the split: with a mask and not counted; to be waited for; without a mask

    __device__ __forceinline__ Stream(const Work &w, u32 group, u32 lane, const Params &p)
        : masks(w.groups + group * GROUP_BYTES + VALUE_BYTES + 8 * lane),
          arrived(w.arrived + 8 * MOST_SEGMENTS * group),
          heads(w.heads + 16 * MOST_SEGMENTS * group), window(p.window), mask_bytes(w.mask_bytes), segments(w.segments),
          slot(0), waiting(0), parity(0), left(0) {}

    __device__ __forceinline__ void wait() {
        barrier_wait(arrived + 8 * waiting, parity);
        if (++waiting == segments) waiting = 0, parity ^= 1;
        coming--;
    }
    // begin waits for the next segment, and if that begins a split, reads its head. It returns the mask's address.
    __device__ __forceinline__ u32 begin() {
        if (left == 0) {
            wait();
            uint4 head = shared_quad(heads + 16 * slot);
            next = head.x * 0x10001, left = head.y, coming = head.z - 1, extra = head.w;
#pragma unroll 1
            for (u32 i = 2; i < window && coming > 0; i++) wait();
        }
        if (coming > 0) wait();
        return masks + slot * mask_bytes;
    }
    // end ends the segment, and returns how many slots are free now.
    __device__ __forceinline__ u32 end() {
        u32 n = --left > 0 ? 1 : 1 + extra;
        slot += n;
        if (slot >= segments) slot -= segments;
        return n;
    }
    // word counts the bits of a mask word: start[t] becomes where the values of warp t begin.
    __device__ __forceinline__ void word(u32 mask, u32 (&start)[4]) {
        u32 even = sums(mask & 0x55555555), odd = sums(mask >> 1 & 0x55555555); // byte t: of bytes 0 to t
        start[0] = next;
        start[1] = next + ROW_BYTES * pair<0xc480>(even, odd);
        start[2] = next + ROW_BYTES * pair<0xc591>(even, odd);
        start[3] = next + ROW_BYTES * pair<0xc6a2>(even, odd);
        next += ROW_BYTES * pair<0xc7b3>(even, odd);
    }
    // pair returns a byte of even, and a byte of odd in the upper half. Bytes that must be 0 are sign bytes, which prmt
    // makes for selectors with 8 added.
    template <int WHICH> static __device__ __forceinline__ u32 pair(u32 even, u32 odd) {
        u32 x;
        asm("prmt.b32 %0, %1, %2, %3;" : "=r"(x) : "r"(even), "r"(odd), "n"(WHICH));
        return x;
    }
    // sums returns in byte t the number of bits in bytes 0 to t.
    static __device__ __forceinline__ u32 sums(u32 x) {
        x = (x + (x >> 2)) & 0x33333333;
        return ((x + (x >> 4)) & 0x0f0f0f0f) * 0x01010101;
    }
    __device__ __forceinline__ void wrap() {
        const u32 bytes = BUFFER_ROWS * ROW_BYTES;
        if ((next & 0xffff) >= bytes) next -= bytes;
        if (next >> 16 >= bytes) next -= bytes << 16;
    }
};

// transposed transposes a word of 4×4 bit pairs: byte i's pair j becomes byte j's pair i.
__device__ __forceinline__ u32 transposed(u32 x) {
    u32 t = (x ^ x >> 6) & 0x00cc00cc;
    x ^= t ^ t << 6;
    t = (x ^ x >> 12) & 0x0000f0f0;
    return x ^ t ^ t << 12;
}

// count: body of a counting warp. For each stage of each tile it finds where values begin.
__device__ __forceinline__ void count(const Work &w, u32 group, u32 lane, const Params &p) {
    Stream stream(w, group, lane, p);
    u32 at = w.groups + group * GROUP_BYTES + VALUE_BYTES + MASK_BYTES, ready = w.ready + 8 * STARTS * group,
        used = w.used + 8 * STARTS * group;
    u32 slot = 0, parity = 1, step = 0, bits = 0;
#pragma unroll 1
    for (u32 i = w.cluster; i < w.work_tiles; i += w.clusters) {
        WorkTile x = w.work_tile(i, p);
#pragma unroll 1
        for (u32 k = x.first; k < x.last; k++) {
            if (step == 0) bits = stream.begin();
            uint2 m = shared_words(bits), n = make_uint2(0, 0);
            if (p.steps > 1) n = shared_words(bits + STEP_BYTES);
            bits += 2 * STEP_BYTES, step += 2;
            u32 start[4][4];
            stream.word(m.x, start[0]);
            stream.word(m.y, start[1]);
            stream.wrap();
            stream.word(n.x, start[2]);
            stream.word(n.y, start[3]);
            stream.wrap();
            barrier_wait(used + 8 * slot, parity);
            u32 to = at + slot * START_BYTES + 16 * lane;
#pragma unroll
            for (u32 t = 0; t < 4; t++) {
                u32 of = transposed(__byte_perm(__byte_perm(m.x, m.y, t | (4 + t) << 4),
                                                __byte_perm(n.x, n.y, t | (4 + t) << 4), 0x5410));
                asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to + 512 * t), "r"(start[0][t]),
                             "r"(start[1][t]), "r"(start[2][t]), "r"(start[3][t])
                             : "memory");
                asm volatile("st.shared.u32 [%0], %1;" ::"r"(to + 2048 + 128 * t - 12 * lane), "r"(of) : "memory");
            }
            u32 done = 0;
            if (step >= p.steps) step = 0, done = stream.end();
            if (lane == 0)
                asm volatile("st.shared.u32 [%0], %1;" ::"r"(w.ends + 4 * (STARTS * group + slot)), "r"(done)
                             : "memory");
            __syncwarp();
            if (lane == 0) barrier_arrive_here(ready + 8 * slot);
            if (++slot == STARTS) slot = 0, parity ^= 1;
        }
    }
}

// take_all reads the values of position I of four words, without the last chain's. Bit 8·I + 2w + h of the mask says
// that chain h of word w takes its next value, whose address in shared memory is next[2w + h].
template <int I> __device__ __forceinline__ void take_all(u32 mask, u32 (&next)[8], u32 (&x)[8]) {
    // clang-format off
    asm volatile("{.reg .pred none; .reg .b32 t;\n"
                 "mov.b32 %0, 0; mov.b32 %1, 0; mov.b32 %2, 0; mov.b32 %3, 0; "
                 "mov.b32 %4, 0; mov.b32 %5, 0; mov.b32 %6, 0;\n"
                 TAKE("L0", "%14", "%15", "%7", "%0") TAKE("L1", "%14", "%16", "%8", "%1")
                 TAKE("L2", "%14", "%17", "%9", "%2") TAKE("L3", "%14", "%18", "%10", "%3")
                 TAKE("L4", "%14", "%19", "%11", "%4") TAKE("L5", "%14", "%20", "%12", "%5")
                 TAKE("L6", "%14", "%21", "%13", "%6")
                 "}\n"
                 : "=&r"(x[0]), "=&r"(x[1]), "=&r"(x[2]), "=&r"(x[3]), "=&r"(x[4]), "=&r"(x[5]), "=&r"(x[6]),
                   "+&r"(next[0]),
                   "+&r"(next[1]), "+&r"(next[2]), "+&r"(next[3]), "+&r"(next[4]), "+&r"(next[5]), "+&r"(next[6])
                 : "r"(mask), BITS(I)
                 : "memory");
    // clang-format on
}

// Values is a consumer warp's position in the values of its group.
struct Values {
    u32 buffer, starts, ready, used, ends, taken, segments;
    u32 slot, parity, segment;
    u32 start[4], mask, done; // of the next stage

    __device__ __forceinline__ Values(const Work &w, u32 group, u32 thread)
        : buffer(w.groups + group * GROUP_BYTES + 4 * (thread % 32)),
          starts(w.groups + group * GROUP_BYTES + VALUE_BYTES + MASK_BYTES + 16 * thread),
          ready(w.ready + 8 * STARTS * group), used(w.used + 8 * STARTS * group), ends(w.ends + 4 * STARTS * group),
          taken(w.taken + 8 * MOST_SEGMENTS * group), segments(w.segments), slot(0), parity(0), segment(0) {}

    // look waits for the next stage's starts and reads them. take then makes the registers of the stage's columns of A.
    __device__ __forceinline__ void look(u32 thread) {
        u32 from = starts + slot * START_BYTES;
        barrier_wait(ready + 8 * slot, parity);
        uint4 x = shared_quad(from);
        start[0] = x.x, start[1] = x.y, start[2] = x.z, start[3] = x.w;
        mask = shared_word(from + 2048 - 12 * thread), done = shared_word(ends + 4 * slot);
    }
    __device__ __forceinline__ void take(u32 (&x)[4][4], u32 thread) {
        u32 at[8], y[4][8], last[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
            at[2 * i] = buffer + (start[i] & 0xffff), at[2 * i + 1] = buffer + 2 + (start[i] >> 16);
#pragma unroll
        for (int i = 0; i < 4; i++) { // the last chain's value is loaded whether or not there is one
            asm volatile("{.reg .u16 x; ld.shared.u16 x, [%1]; cvt.u32.u16 %0, x;}"
                         : "=r"(y[i][7])
                         : "r"(at[7])
                         : "memory");
            last[i] = (i < 2 ? mask << (9 - 8 * i) : mask >> (8 * i - 9)) & 0x10000;
            at[7] += last[i] >> 9;
        }
        take_all<0>(mask, at, y[0]);
        take_all<1>(mask, at, y[1]);
        take_all<2>(mask, at, y[2]);
        take_all<3>(mask, at, y[3]);
        __syncwarp();
        if (thread % 32 == 0) barrier_arrive_here(used + 8 * slot);
        if (++slot == STARTS) slot = 0, parity ^= 1;
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int r = 0; r < 4; r++) x[i][r] = y[r][2 * i + 1] * (i == 3 ? last[r] : 65536) + y[r][2 * i];
#pragma unroll 1
        for (; done > 0; done--) {
            if (thread % 32 == 0) barrier_arrive_here(taken + 8 * segment);
            if (++segment == segments) segment = 0;
        }
    }
};

// add_splits adds the partial sums of the cluster's two CTAs; CTA r gets the totals of group r. The stages of B are
// free by then.
__device__ __forceinline__ void add_splits(float (&d)[COLS / 8][4], const Work &w, u32 group, u32 thread) {
    u32 at = w.stages + 16 * thread;
    cluster_sync();
    if (group != w.rank) {
        asm volatile("mapa.shared::cluster.u32 %0, %0, %1;" : "+r"(at) : "r"(group));
#pragma unroll
        for (int j = 0; j < COLS / 8; j++)
            asm volatile("st.shared::cluster.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(at + j * 2048), "f"(d[j][0]),
                         "f"(d[j][1]), "f"(d[j][2]), "f"(d[j][3])
                         : "memory");
    }
    cluster_sync();
    if (group == w.rank) {
#pragma unroll
        for (int j = 0; j < COLS / 8; j++) {
            float4 x;
            asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                         : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                         : "r"(at + j * 2048)
                         : "memory");
            d[j][0] += x.x, d[j][1] += x.y, d[j][2] += x.z, d[j][3] += x.w;
        }
    }
}

// multiply: body of the consumer warpgroup of a group.
__device__ __forceinline__ void multiply(const Work &w, const Index &index, const u16 *values, Dest to, const Params &p,
                                         const Entries &recompute) {
    u32 thread, stage = 0, parity = 0, before;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread)); // volatile: kept in a register
    u32 group = __shfl_sync(0xffffffff, thread / 128, 0) - 1, warp = __shfl_sync(0xffffffff, thread / 32 % 4, 0),
        lane = thread % 32;
    thread %= 128;
    Values from(w, group, thread);
#pragma unroll 1
    for (u32 i = w.cluster; i < w.work_tiles; i += w.clusters) {
        WorkTile work_tile = w.work_tile(i, p);
        float acc[1][COLS / 8][4] = {};
        u32 x[4][4], y[4][4], row = (work_tile.group + group) * GROUP_ROWS + 16 * warp;
        Remainder remainder(index, values, p, min(row, (p.groups - 1) * GROUP_ROWS + 16 * warp),
                            work_tile.first * w.depth, lane);
        auto release = [&](u32 s) { // one thread for each CTA
            if (thread < CLUSTER_ROWS) barrier_arrive(w.empty + 8 * s, work_tile.is_split ? w.rank : thread);
        };
        auto make = [&](u32 k, u32(&r)[4][4]) {
            from.take(r, thread);
            remainder.put(r, (k + 1) * w.depth, lane);
        };
        // step multiplies stage k, whose A is in `now`, and makes the next stage's in `then`, where the previous one's
        // was.
        auto step = [&](u32 k, u32(&now)[4][4], u32(&then)[4][4]) {
            u64 b = swizzled(w.stages + stage * B_BYTES, SLAB);
            u32 above = b >> 32, below = b, each = w.depth == DEPTH ? 3 : 1; // rows past a stage are not multiplied
            barrier_wait(w.full + 8 * stage, parity);
            wgmma_fence();
#pragma unroll
            for (int i = 0; i < 4; i++)
                wgmma_registers<ELEM>(acc[0], now[i], (u64)above << 32 | (below + (i & each) * (16 * 128 / 16)));
            wgmma_commit();
            if (k + 1 < work_tile.last) from.look(thread);
            if (k > work_tile.first) {
                wgmma_wait<1>();
#pragma unroll
                for (int i = 0; i < 4; i++) wgmma_held(then[i]);
                release(before);
            }
            before = stage;
            if (++stage == STAGES) stage = 0, parity ^= 1;
            if (k + 1 < work_tile.last) make(k + 1, then);
        };
        if (work_tile.first < work_tile.last) from.look(thread), make(work_tile.first, x);
        // (If the end is tested once for both steps, ptxas makes each instruction wait for the one before.)
#pragma unroll 1
        for (u32 k = work_tile.first; k < work_tile.last;) {
            step(k++, x, y);
            if (k == work_tile.last) break;
            step(k++, y, x);
        }
        wgmma_wait<0>();
#pragma unroll
        for (int i = 0; i < 4; i++) wgmma_held(x[i]), wgmma_held(y[i]);
        if (work_tile.first < work_tile.last) release(before);
        wgmma_hold(acc[0]);
        if (work_tile.is_split) add_splits(acc[0], w, group, thread);
        if (!work_tile.is_split || group == w.rank) store_tiles(acc, to, p, row, work_tile.col, recompute);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) __cluster_dims__(CLUSTER_ROWS, 1, 1)
    ENTRY(const u32 *__restrict__ index_, const u32 *__restrict__ mask, const u16 *__restrict__ values,
          const u16 *__restrict__ b, const float *__restrict__ bias, void *__restrict__ c,
          const __grid_constant__ Params p) {
    extern __shared__ __align__(1024) unsigned char smem[];
    Work w(shared_address(smem), p);
    Index index(index_, p);
    TileMap *map = &maps[blockIdx.x % MOST_BLOCKS]; // all are the same
    if (threadIdx.x < 32) // x: halves of a chunk of 8 rows; y: rows of a half; z: chunks
        ordered_map(map, (TileMap *)(smem + SHARED_BYTES), b, p, {2, 2, 4}, {4, 4, 1},
                    {max(p.cols / 8, 1), min(p.steps * STEP_COLS, DEPTH) / 8, 8});
    if (threadIdx.x == 0) w.start();
    cluster_sync();
    if (threadIdx.x < 128) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x < 32) {
            tile_map_acquire(map);
            w.produce_b(b, map, p, threadIdx.x);
        } else if (threadIdx.x < 32 + 32 * GROUPS) {
            count(w, threadIdx.x / 32 - 1, threadIdx.x % 32, p);
        } else if (threadIdx.x >= 96 && threadIdx.x < 96 + GROUPS) {
            w.produce_streams(threadIdx.x - 96, index, mask, values, p);
        }
        __syncwarp();
        if (w.has_split()) cluster_sync(), cluster_sync(); // those of add_splits
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        multiply(w, index, values, {c, bias}, p, Entries{index, mask, values, b, &p});
        __syncwarp();
    }
    cluster_sync(); // no CTA exits while others still copy to it or arrive at its barriers
}
