// Computes: C (rows × n) = alpha·A·B + beta·C, A (rows × cols) as lane streams of few rows, f16 or bf16, sums in f32,
// on compute capability 9.0. Layouts as staged.cu.
// Tile: a cluster computes (64·p.each × COLS), a warp one stream. Few groups of rows are split along K into many
// streams, which have few rows of B in common. Partial sums are added in two steps, within each CTA and then over the
// cluster.
// Data movement: each warp loads its own rows of B by cp.async, together with the segment of the stream that they
// multiply. REMAINDER_WARPS warps add the COO remainder meanwhile. With B_LINES, B is column-major, and each CTA
// transposes the part of it that its streams multiply into shared memory.
// Bound by: the bytes of A, and latency.
// Constants: ENTRY, ELEM (half.cuh), WARPS, CLUSTER, COLS (8, 16 or 32), BUFFER_BYTES, PAIRS, REMAINDER_WARPS.

// first_segment in 32 bits: there are fewer than 2^26 segments, and at most 32 splits.
#define FIRST_SEGMENT(p, split) ((p).segments * (split) / (p).splits)
#define THREADS (32 * (WARPS + REMAINDER_WARPS))
#ifdef B_LINES
#define BUFFER_BYTES (p.width) // what B leaves
#include "lines.cuh"
#endif
#include "pairs.cuh"
#include "remainder.cuh"
#include "warp.cuh"

#ifndef B_LINES
#define B_ROW (COLS * 2) // bytes of a row of B in shared memory
#define CHUNKS(STEPS) ((STEPS)*STEP_COLS * TILES / 32) // chunks of 8 columns that a lane loads for a segment

// Own provides the rows of B that a warp loads itself, as a source of Warp::multiply. A lane loads a chunk of every
// (32/TILES)-th row.
struct Own {
#ifdef B_VECTOR
    // B is one column: four lanes load 8 rows of each step.
    const u16 *next; // the lane's rows of the next segment
    int left; // rows of B from there on
    u32 chunk, row; // addresses in the first slot: the lane's chunk; the row that it gives to ldmatrix

    __device__ __forceinline__ Own(const Stream &stream, const u16 *b, const Params &p, u32 split, u32, u32 lane) {
        u32 first = FIRST_SEGMENT(p, split) * p.steps * STEP_COLS + lane % 4 * 8,
            at = stream.masks + stream.mask_slots * stream.mask_bytes;
        next = b + first, left = (int)(p.cols - first);
        chunk = at + lane * CHUNK_ROW, row = at + Warp::lane_row(lane);
    }
    template <int STEPS> __device__ __forceinline__ void load(u32 slot) {
        u32 to = chunk + slot * (STEPS * STEP_COLS * B_ROW);
        if (threadIdx.x % 32 < 4)
#pragma unroll
            for (int s = 0; s < STEPS; s++)
                copy<16>(to + s * (STEP_COLS * B_ROW), next + s * STEP_COLS,
                         2 * max(0, min(left - s * STEP_COLS, 8)));
        next += STEPS * STEP_COLS, left -= STEPS * STEP_COLS;
    }
#else
    const u16 *b, *next; // B; the lane's chunk of the next segment
    int left; // rows of B from there on
    u32 apart, bytes; // elements from one of the lane's chunks to the next; bytes of a chunk, 0 past B's last column
    u32 chunk, row; // addresses in the first slot: the lane's chunk; the row that it gives to ldmatrix

    __device__ __forceinline__ Own(const Stream &stream, const u16 *b, const Params &p, u32 split, u32 col, u32 lane)
        : b(b) {
        u32 c = lane % TILES, k = lane / TILES, first = FIRST_SEGMENT(p, split) * p.steps * STEP_COLS + k,
            at = stream.masks + stream.mask_slots * stream.mask_bytes;
        col += 8 * c, bytes = col < p.ldb ? 16 : 0;
        next = b + (u64)first * p.ldb + (bytes ? col : 0), left = (int)(p.cols - first), apart = 32 / TILES * p.ldb;
        chunk = at + k * B_ROW + swizzled(k, c), row = at + Warp::lane_row(lane);
    }
    template <int STEPS> __device__ __forceinline__ void load(u32 slot) {
        u32 to = chunk + slot * (STEPS * STEP_COLS * B_ROW);
#pragma unroll
        for (int i = 0; i < CHUNKS(STEPS); i++, next += apart) {
            bool in = left > i * (32 / TILES);
            copy<16>(to + i * (32 / TILES) * B_ROW, in ? next : b, in ? bytes : 0);
        }
        left -= STEPS * STEP_COLS;
    }
#endif
    // begin starts loading the rows of the first segments, whose masks are in flight.
    template <int STEPS> __device__ __forceinline__ void begin(const Stream &stream) {
        for (u32 j = 0; j < stream.coming; j++)
            fetch<STEPS>(stream.masked(j), stream.barriers + 8 * j, j - stream.late);
    }
    // fetch starts loading the rows of the next segment if there is one. Every lane arrives at the barrier.
    template <int STEPS> __device__ __forceinline__ void fetch(bool any, u32 barrier, u32 slot) {
        if (any) load<STEPS>(slot);
        asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
    }
    template <int STEPS> __device__ __forceinline__ u32 at(u32 slot) const {
        return row + slot * (STEPS * STEP_COLS * B_ROW);
    }
    __device__ __forceinline__ void begin(u32) const {}
    __device__ __forceinline__ void wait() const {}
    // done releases the slots of a segment, and starts loading the next one into them.
    template <int STEPS> __device__ __forceinline__ void done(Stream &stream, u32 slot, u32 mask_slot) {
        if (stream.coming < stream.total) {
            bool masked = stream.fetch(slot, mask_slot);
            fetch<STEPS>(masked, stream.barriers + 8 * slot, mask_slot);
        }
    }
};

// remainder_sums returns the offset of a remainder warp's sums in shared memory: behind those of a stream.
__device__ __forceinline__ u32 remainder_sums(u32 number) { return number * BUFFER_BYTES + SUMS; }
static_assert(REMAINDER_WARPS == 0 || BUFFER_BYTES >= 2 * SUMS && REMAINDER_WARPS <= WARPS,
              "room for the sums of the remainder");

// Units says how the cluster's remainder warps divide the rows of its groups. `span` warps together cover all rows. If
// there are more warps, they also divide the entries of each row into `shares` shares.
struct Units {
    static const u32 ALL = CLUSTER * (REMAINDER_WARPS > 0 ? REMAINDER_WARPS : 1);
    u32 span, shares;

    __device__ __forceinline__ Units(u32 each)
        : span(min(each * GROUP_ROWS / Aside::TOGETHER, ALL)), shares(ALL / span) {}
    // number returns the warp that has share s of a row, and line the row's place among that warp's rows.
    __device__ __forceinline__ u32 number(u32 row, u32 s) const { return row / Aside::TOGETHER % span + s * span; }
    __device__ __forceinline__ u32 line(u32 row) const {
        return row / Aside::TOGETHER / span * Aside::TOGETHER + row % Aside::TOGETHER;
    }
};

// work multiplies one stream, in segments of STEPS steps.
template <int STEPS>
__device__ __forceinline__ void work(Warp &w, Stream &stream, const u16 *b, const Params &p, u32 split, u32 col,
                                     u32 lane) {
    Own own(stream, b, p, split, col, lane);
    stream.begin();
    launches_before();
    launches_after(); // the next launch may load its A from here on
    own.begin<STEPS>(stream);
    w.multiply<STEPS>(stream, own, lane);
}

#else
// load_rows loads a warp's share of the rows of B if `any` says that it has one.
__device__ __forceinline__ void load_rows(const Rows &rows, const Loader &loader, bool any, const u16 *b,
                                          const Params &p) {
    launches_before();
    launches_after(); // the next launch may load its A from here on
    if (any) loader.load(rows, b, p);
    loaded();
}

// work multiplies one stream, in segments of STEPS steps.
template <int STEPS>
__device__ __forceinline__ void work(Warp &w, Stream &stream, const Rows &rows, const Loader &loader, const u16 *b,
                                     const Params &p, u32 lane) {
    stream.begin();
    OfRows source(rows, loader, lane);
    load_rows(rows, loader, true, b, p);
    w.multiply<STEPS>(stream, source, lane);
}
#endif

// first_of returns the first stream of a group in a CTA of the cluster.
__device__ __forceinline__ u32 first_of(u32 group, u32 block, u32 each) {
    u32 skip = max(block * WARPS, group) - group;
    return group + (skip + each - 1) / each * each;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) __cluster_dims__(CLUSTER, 1, 1)
    ENTRY(const u32 *__restrict__ index_, const u32 *__restrict__ mask, const u16 *__restrict__ values,
          const u16 *__restrict__ b, const float *__restrict__ bias, void *__restrict__ c,
          const __grid_constant__ Params p) {
    extern __shared__ __align__(128) unsigned char smem[];
    u32 warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0), lane = threadIdx.x % 32, rank = blockIdx.x % CLUSTER,
        number = rank * WARPS + warp;
    u32 first = blockIdx.x / CLUSTER * p.each, split = number / p.each, group = first + number % p.each,
        col = blockIdx.y * COLS;
    u32 buffer = shared_address(smem) + warp * BUFFER_BYTES,
        barriers = shared_address(smem) + WARPS * BUFFER_BYTES + warp * MOST_SLOTS * 8;
    if (warp < WARPS && lane < MOST_SLOTS) {
#ifdef B_LINES
        barrier_init(barriers + 8 * lane, 1);
#else
        barrier_init(barriers + 8 * lane, 33); // 32 lanes arrive for B, and one for A
#endif
        barrier_fence();
    }
    __syncwarp();
    Index index(index_, p);
#ifdef B_LINES
    // Behind the barriers: the sums of the remainder, the rows of B.
    u32 sums_at = WARPS * (BUFFER_BYTES + MOST_SLOTS * 8);
    Rows rows(p, rank, shared_address(smem) + sums_at + p.each * SUMS);
    Loader loader(p, rows, rank, split, number, lane);
    if (warp >= WARPS) {
        gather(index, values, rows, p, first, rank, warp - WARPS, (float *)(smem + sums_at), lane);
    } else if (split < p.splits && group < p.groups) {
        Warp w;
        Stream stream(index, mask, values, p, group, split, buffer, barriers);
        if (p.steps == 4) work<4>(w, stream, rows, loader, b, p, lane);
        else if (p.steps == 2) work<2>(w, stream, rows, loader, b, p, lane);
        else work<1>(w, stream, rows, loader, b, p, lane);
        w.write_sums((float *)(smem + warp * BUFFER_BYTES), lane);
    } else {
        load_rows(rows, loader, split < p.splits, b, p);
    }
    __syncthreads();
#else
    // Remainder warps add the remainder meanwhile, if they can hold the sums of all rows.
    bool concurrent = CLUSTER * REMAINDER_WARPS * ASIDE_ROWS * Aside::TOGETHER >= p.each * GROUP_ROWS;
    Units units(p.each);
    if (warp < WARPS && split < p.splits && group < p.groups) {
        Warp w;
        Stream stream(index, mask, values, p, group, split, buffer, barriers, p.steps * STEP_COLS * B_ROW);
        if (p.steps == 4) work<4>(w, stream, b, p, split, col, lane);
        else if (p.steps == 2) work<2>(w, stream, b, p, split, col, lane);
        else work<1>(w, stream, b, p, split, col, lane);
        float *sums = (float *)(smem + warp * BUFFER_BYTES);
        w.write_sums(sums, lane);
        if (!concurrent) { // each split adds the remainder of some rows
            u32 share = (GROUP_ROWS + p.splits - 1) / p.splits, end = min(share * split + share, GROUP_ROWS);
            for (u32 r = share * split; r < end; r += 2 * After::TOGETHER) {
                After remainder;
                remainder.add(index, values, b, p, group * GROUP_ROWS + r, After::TOGETHER,
                              min(group * GROUP_ROWS + end, p.rows), col, lane);
                remainder.write_sums<true>(sums + r * PITCH, After::TOGETHER, end - r, lane);
            }
        }
    }
    __syncwarp();
#if REMAINDER_WARPS > 0
    if (warp < WARPS) __syncthreads();
    else {
        Aside remainder;
        u32 unit = rank * REMAINDER_WARPS + warp - WARPS;
        if (concurrent) {
            u32 from = first * GROUP_ROWS + unit % units.span * Aside::TOGETHER,
                last = unit < units.span * units.shares ? min((first + p.each) * GROUP_ROWS, p.rows) : 0;
            launches_before();
            remainder.add(index, values, b, p, from, units.span * Aside::TOGETHER, last, col, lane, unit / units.span,
                          units.shares);
        }
        __syncthreads(); // the stage buffers are free: sums go there
        if (concurrent)
            remainder.write_sums<false>((float *)(smem + remainder_sums(warp - WARPS)), Aside::TOGETHER, ~0u, lane);
    }
#else
    __syncthreads();
#endif
#endif
    // First the CTA's partial sums of each group are added to the first of them, then those of the cluster's CTAs.
    const u32 quads = GROUP_ROWS * (COLS / 4);
    u32 items = p.each * quads, streams = p.splits * p.each, end = min(streams, rank * WARPS + WARPS);
    for (u32 i = threadIdx.x; i < items; i += THREADS) {
        u32 at = (i % quads / (COLS / 4) * PITCH + i % (COLS / 4) * 4) * 4, q = first_of(i / quads, rank, p.each);
        if (q + p.each >= end) continue;
        float4 *to = (float4 *)(smem + q % WARPS * BUFFER_BYTES + at), x = *to;
        for (q += p.each; q < end; q += 4 * p.each) {
            float4 y[4];
#pragma unroll
            for (int k = 0; k < 4; k++) {
                u32 s = q + k * p.each;
                y[k] = make_float4(0, 0, 0, 0);
                if (s < end) y[k] = *(const float4 *)(smem + s % WARPS * BUFFER_BYTES + at);
            }
#pragma unroll
            for (int k = 0; k < 4; k++) x.x += y[k].x, x.y += y[k].y, x.z += y[k].z, x.w += y[k].w;
        }
        *to = x;
    }
    __syncwarp();
    cluster_sync();
    RowEntries entries{index, mask, values, b, &p};
#ifdef B_LINES
    LinesOut out({c, bias}, p);
#else
    Output out{{c, bias}, p};
#endif
    launches_before();
    u32 share = (items + CLUSTER - 1) / CLUSTER;
    for (u32 i = rank * share + threadIdx.x; i < min(items, rank * share + share);
         i += THREADS) {
        Quad q(i);
        u32 of = q.of, r = q.r, at = q.at, row = (first + of) * GROUP_ROWS + r;
        if (row >= p.rows && !Quad::ROWS) break;
        if (row >= p.rows || col + at >= p.n) continue;
        float4 x = make_float4(0, 0, 0, 0), y[CLUSTER];
#pragma unroll
        for (int k = 0; k < CLUSTER; k++) {
            u32 s = first_of(of, k, p.each);
            y[k] = make_float4(0, 0, 0, 0);
            if (s < min(streams, k * WARPS + WARPS))
                y[k] = cluster_load4(shared_address(smem) + s % WARPS * BUFFER_BYTES + (r * PITCH + at) * 4, k);
        }
#pragma unroll
        for (int k = 0; k < CLUSTER; k++) x.x += y[k].x, x.y += y[k].y, x.z += y[k].z, x.w += y[k].w;
#ifdef B_LINES
        float4 z[CLUSTER];
#pragma unroll
        for (int k = 0; k < CLUSTER; k++)
            z[k] = cluster_load4(shared_address(smem) + sums_at + ((of * GROUP_ROWS + r) * PITCH + at) * 4, k);
#pragma unroll
        for (int k = 0; k < CLUSTER; k++) x.x += z[k].x, x.y += z[k].y, x.z += z[k].z, x.w += z[k].w;
#else
        for (u32 k = 0; concurrent && k < units.shares; k++) {
            u32 unit = units.number(of * GROUP_ROWS + r, k), from = remainder_sums(unit % max(REMAINDER_WARPS, 1)) +
                                                                    (units.line(of * GROUP_ROWS + r) * PITCH + at) * 4;
            float4 z = cluster_load4(shared_address(smem) + from, unit / max(REMAINDER_WARPS, 1));
            x.x += z.x, x.y += z.y, x.z += z.z, x.w += z.w;
        }
#endif
        out.store(row, col + at, x, entries);
    }
    __syncwarp();
    cluster_exit(); // no CTA exits while the other reads its sums
}
