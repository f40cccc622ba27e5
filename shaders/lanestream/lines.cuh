// A column-major B of at most 8 columns in shared memory, as it lies in memory: B's columns are lines there. It is X of
// X·Wᵀ, whose rows are tokens. The warps of the streams read operand B from the lines without transposing them, and the
// warps of the COO remainder gather elements.

#pragma once
#include "warp.cuh"

// Lines is the part of B's columns that the streams of a CTA multiply, from row `from` on. It is loaded by splits, each
// of which has a barrier. Lines are an odd number of 16 bytes apart, so that what 8 of them have at the same place lies
// in different banks.
struct Lines {
    u32 at, barriers; // addresses: of the first line, of the first split's barrier
    u32 split, splits, // the first split, how many
        from, pitch; // bytes from one line to the next

    // row returns the first row of B that a split multiplies.
    static __device__ __forceinline__ u32 row(const Params &p, u32 split) {
        return FIRST_SEGMENT(p, min(split, p.splits)) * p.steps * STEP_COLS;
    }
    __device__ __forceinline__ Lines(const Params &p, u32 rank, u32 at, u32 barriers) : at(at), barriers(barriers) {
        split = min(rank * WARPS / p.each, p.splits);
        splits = min((rank * WARPS + WARPS - 1) / p.each + 1, p.splits) - split;
        from = row(p, split), pitch = (row(p, split + splits) - from) * 2 + 16;
    }
    __device__ __forceinline__ u32 barrier(u32 of) const { return barriers + 8 * (of - split); }
};

// Loader is a warp's share of the lines of its split, which all warps of the split load together.
struct Loader {
    u32 split, part, parts; // the warp's share, of how many

    __device__ __forceinline__ Loader(const Params &p, u32 rank, u32 split, u32 number) : split(split) {
        u32 first = max(split * p.each, rank * WARPS);
        part = number - first, parts = min((split + 1) * p.each, (rank + 1) * WARPS) - first;
    }
    // init makes the split's barrier if the warp is the split's first; one lane calls it.
    __device__ __forceinline__ void init(const Lines &lines) const {
        if (part == 0) barrier_init(lines.barrier(split), 32 * parts);
    }
    // load starts loading; all lanes call it. Rows past B's last are zeros.
    __device__ __forceinline__ void load(const Lines &lines, const u16 *b, const Params &p, u32 lane) const {
        u32 first = Lines::row(p, split) + part * 64 + lane % 8 * 8, last = Lines::row(p, split + 1);
        for (u32 t = lane / 8; t < p.n; t += 4)
#pragma unroll 4
            for (u32 k = first; k < last; k += 64 * parts)
                copy<16>(lines.at + t * lines.pitch + (k - lines.from) * 2, b + (u64)t * p.ldb + (k < p.cols ? k : 0),
                         k < p.cols ? 2 * min(p.cols - k, 8) : 0);
        asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(lines.barrier(split)) : "memory");
    }
};

// OfLines provides operand B from the lines, as a source of Warp::multiply. A lane gives ldmatrix the address of a
// chunk of column lane mod 8; columns past B's last are multiplied like the last and not stored.
struct OfLines {
    u32 row, barrier; // the lane's chunk of the current segment; the barrier of the split

    __device__ __forceinline__ OfLines(const Lines &lines, const Params &p, u32 split, u32 lane)
        : barrier(lines.barrier(split)) {
        row = lines.at + min(lane % 8, p.n - 1) * lines.pitch + (Lines::row(p, split) - lines.from) * 2 + lane / 8 * 16;
    }
    __device__ __forceinline__ void begin(u32) const {}
    __device__ __forceinline__ void wait() const { barrier_wait(barrier, 0); }
    template <int STEPS> __device__ __forceinline__ u32 at(u32) const { return row; }
    template <int STEPS> __device__ __forceinline__ void done(Stream &stream, u32 slot, u32 mask_slot) {
        row += STEPS * B_STEP;
        if (stream.coming < stream.total) stream.fetch(slot, mask_slot);
    }
};

// middles returns where each row's first entry of the COO remainder that CTA 1 of a cluster has is in the array index.
__device__ __forceinline__ u32 middles(const Params &p) { return p.masklayout; }

// Gathered is a warp's sums of some rows of the COO remainder, of the entries whose rows of B the CTA has. TEAM lanes
// work on a row, each on every TEAM-th entry; a lane has ROWS rows at once. An entry is a word: its value in the upper
// half, where the element of a line lies in the lower half.
struct Gathered {
    static const int TEAM = 4, TOGETHER = 32 / TEAM, BETWEEN = TOGETHER * REMAINDER_WARPS, // rows
        ROWS = GROUP_ROWS / BETWEEN, TAKEN = 8 / ROWS; // entries of a row that a lane loads at once
    u32 at[ROWS], end[ROWS], entries[ROWS][TAKEN];
    float x[ROWS][8];

    // find finds the entries of row `first` and every BETWEEN-th after it: CTA 0 has those before the row's middle.
    __device__ __forceinline__ void find(const Index &index, const Params &p, u32 rank, u32 first, u32 lane) {
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            u32 row = first + lane / TEAM + i * BETWEEN;
            at[i] = end[i] = 0;
            if (row >= p.rows) continue;
            u32 middle = index.words[middles(p) + row];
            at[i] = (rank == 0 ? index.remainder_at(row) : middle) + lane % TEAM;
            end[i] = rank == 0 ? middle : index.remainder_at(row + 1);
        }
    }
    __device__ __forceinline__ void begin(const Gathered &found) {
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            at[i] = found.at[i], end[i] = found.end[i];
#pragma unroll
            for (int t = 0; t < 8; t++) x[i][t] = 0;
        }
    }
    // load reads the next entries and returns the most of a lane's row. Where a lane has none, they are 0.
    __device__ __forceinline__ u32 load(const u32 *cols, const u16 *values, u32 from) {
        u32 most = 0;
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            u32 k[TAKEN], v[TAKEN];
            if (at[i] < end[i]) most = max(most, (end[i] - at[i] + TEAM - 1) / TEAM);
#pragma unroll
            for (int n = 0; n < TAKEN; n++) {
                u32 e = at[i] + n * TEAM;
                k[n] = from, v[n] = 0;
                if (e < end[i]) k[n] = __ldg(cols + e), v[n] = __ldg(values + e);
            }
#pragma unroll
            for (int n = 0; n < TAKEN; n++) entries[i][n] = v[n] << 16 | (k[n] - from) * 2;
            at[i] += TAKEN * TEAM;
        }
        return __reduce_max_sync(~0u, most);
    }
    // add adds `most` entries of each row, as load returned it; `wide` says that B has more than four columns.
    __device__ __forceinline__ void add(const u32 (&taken)[ROWS][TAKEN], u32 most, const Lines &lines, u32 n,
                                        bool wide) {
#pragma unroll
        for (int e = 0; e < TAKEN; e++) {
            if (e >= most) break;
            add<0>(taken, e, lines, n);
            if (wide) add<4>(taken, e, lines, n);
        }
    }
    // This form adds entry e of each row to columns FIRST to FIRST + 3.
    template <int FIRST>
    __device__ __forceinline__ void add(const u32 (&taken)[ROWS][TAKEN], int e, const Lines &lines, u32 n) {
        u32 y[ROWS][4];
#pragma unroll
        for (int i = 0; i < ROWS; i++)
#pragma unroll
            for (int t = 0; t < 4; t++)
                y[i][t] = shared_half(lines.at + (taken[i][e] & 0xffff) + min(FIRST + t, n - 1) * lines.pitch);
#pragma unroll
        for (int i = 0; i < ROWS; i++)
#pragma unroll
            for (int t = 0; t < 4; t++)
                x[i][FIRST + t] = fmaf(widen_hi<ELEM>(taken[i][e]), widen_lo<ELEM>(y[i][t]), x[i][FIRST + t]);
    }
    static __device__ __forceinline__ u32 shared_half(u32 at) {
        u16 x;
        asm volatile("ld.shared.u16 %0, [%1];" : "=h"(x) : "r"(at) : "memory");
        return x;
    }
    // write adds up the lanes of each row and writes their sums to `sums`, where the first row of find is the first.
    __device__ __forceinline__ void write(float *sums, u32 lane) const {
        bool odd = lane & 1, upper = lane & 2;
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            float y[4], z[2];
#pragma unroll
            for (int t = 0; t < 4; t++) {
                float other = __shfl_xor_sync(~0u, odd ? x[i][t] : x[i][4 + t], 1);
                y[t] = (odd ? x[i][4 + t] : x[i][t]) + other;
            }
#pragma unroll
            for (int t = 0; t < 2; t++) {
                float other = __shfl_xor_sync(~0u, upper ? y[t] : y[2 + t], 2);
                z[t] = (upper ? y[2 + t] : y[t]) + other;
            }
            *(float2 *)(sums + (lane / TEAM + i * BETWEEN) * PITCH + 4 * odd + 2 * upper) = make_float2(z[0], z[1]);
        }
    }
};
static_assert(COLS == 8 && PAIRS && CLUSTER == 2, "what lines are written for");
static_assert(GROUP_ROWS == Gathered::ROWS * Gathered::BETWEEN, "a group at a time");

// gather adds the COO remainder of the groups of a cluster, as far as the CTA has the rows of B, and writes the sums to
// `sums`. `number` is that of the warp among those that do so. It calls ready, which waits for the lines.
template <class F>
__device__ __forceinline__ void gather(const Index &index, const u16 *values, const Lines &lines, const Params &p,
                                       u32 group, u32 rank, u32 number, float *sums, u32 lane, F ready) {
    const u32 *cols = index.remainder_cols(p);
    const u16 *entries = index.remainder_values(values);
    u32 first = number * Gathered::TOGETHER;
    Gathered next, g;
    next.find(index, p, rank, group * GROUP_ROWS + first, lane);
    for (u32 of = 0; of < p.each; of++) {
        g.begin(next);
        u32 most = g.load(cols, entries, lines.from);
        if (of + 1 < p.each) next.find(index, p, rank, (group + of + 1) * GROUP_ROWS + first, lane);
        if (of == 0) ready();
#pragma unroll 1
        while (most > 0) {
            u32 taken[Gathered::ROWS][Gathered::TAKEN], now = most;
#pragma unroll
            for (int i = 0; i < Gathered::ROWS * Gathered::TAKEN; i++) (&taken[0][0])[i] = (&g.entries[0][0])[i];
            most = g.load(cols, entries, lines.from);
            g.add(taken, now, lines, p.n, p.n > 4);
        }
        g.write(sums + (of * GROUP_ROWS + first) * PITCH, lane);
    }
}
