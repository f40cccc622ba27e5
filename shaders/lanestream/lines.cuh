// A column-major B of at most 8 columns, the X of X·Wᵀ whose rows are tokens. Each CTA keeps the rows of B that its
// streams multiply in shared memory. Warps load the columns and transpose them in registers, so that streams and the
// COO remainder read whole rows, as they do of a row-major B.

#pragma once
#include "remainder.cuh"
#include "warp.cuh"

#define B_ROW 16 // bytes of a row of B
#define TURNED 4 // rows that a lane transposes at once

// place returns where row k of B lies, in rows. Within a step, rows are in an order in which neither the lanes that
// write every fourth row nor ldmatrix, which reads 8 neighbouring rows, access a bank twice.
__device__ __forceinline__ u32 place(u32 k, u32 j) { return (k & ~31) + ((k / TURNED & 7) ^ j * 10); } // of row k + j
__device__ __forceinline__ u32 place(u32 k) { return place(k, k % TURNED); }

// Rows is the part of B that the streams of a CTA multiply, from row `from` on.
struct Rows {
    u32 at, split, from; // the address of the first row; the first split; its first row

    // first returns the first row of B that a split multiplies.
    static __device__ __forceinline__ u32 first(const Params &p, u32 split) {
        return FIRST_SEGMENT(p, min(split, p.splits)) * p.steps * STEP_COLS;
    }
    __device__ __forceinline__ Rows(const Params &p, u32 rank, u32 at)
        : at(at), split(min(rank * WARPS / p.each, p.splits)), from(first(p, split)) {}
};

// Loader is a warp's share of the rows of its split, which all warps of the split load together.
struct Loader {
    static const u32 STEP = 32 * TURNED; // rows of a warp at once
    u32 barrier, parts; // of the split; how many warps share it
    u32 first, next, last; // rows: the split's first; the first that the lane loads; the split's end

    // What needs no B is computed here, before the warp waits for B: the asm keeps it here.
    __device__ __forceinline__ Loader(const Params &p, const Rows &rows, u32 rank, u32 split, u32 number, u32 lane)
        : barrier(FIRST_BARRIER + split - rows.split), first(Rows::first(p, split)), last(Rows::first(p, split + 1)) {
        u32 from = max(split * p.each, rank * WARPS);
        parts = min((split + 1) * p.each, (rank + 1) * WARPS) - from, next = first + (number - from) * STEP + lane * TURNED;
        asm volatile("" : "+r"(first), "+r"(next), "+r"(last));
    }
    // load loads the share and waits for that of the split's other warps; all lanes call it. Rows past B's last and
    // columns past its last are zeros.
    __device__ __forceinline__ void load(const Rows &rows, const u16 *b, const Params &p) const {
        for (u32 k = next; k < last; k += parts * STEP) {
            uint2 x[COLS];
            read(x, b + k, p.ldb, p.n, (int)(p.cols - k));
            write(rows, x, k);
        }
        if (parts > 1) barrier_sync(barrier, 32 * parts);
        else __syncwarp();
    }

  private:
    static const u32 FIRST_BARRIER = 2; // of the splits; the first two are __syncthreads' and all_loaded's

    static __device__ __forceinline__ void barrier_sync(u32 number, u32 threads) {
        asm volatile("barrier.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
    }
    // read reads four rows of each column, two to a word; B has `in` of them.
    static __device__ __forceinline__ void read(uint2 (&x)[COLS], const u16 *b, u32 ldb, u32 n, int in) {
#pragma unroll
        for (int t = 0; t < COLS; t++, b += ldb) {
            x[t] = make_uint2(0, 0);
            if (t < n && in > 0) x[t] = global_words(b);
        }
        if (in > 0 && in < TURNED)
#pragma unroll
            for (int t = 0; t < COLS; t++) {
                x[t].x &= in == 1 ? 0xffff : ~0u;
                x[t].y &= in < 3 ? 0 : 0xffff;
            }
    }
    // global_words reads past the first-level cache: launches before this one may have written here.
    static __device__ __forceinline__ uint2 global_words(const u16 *from) {
        uint2 x;
        asm volatile("ld.global.cg.v2.u32 {%0, %1}, [%2];" : "=r"(x.x), "=r"(x.y) : "l"(from) : "memory");
        return x;
    }
    static __device__ __forceinline__ void write(const Rows &rows, const uint2 (&x)[COLS], u32 k) {
#pragma unroll
        for (int j = 0; j < TURNED; j++) {
            u32 y[COLS / 2];
#pragma unroll
            for (int t = 0; t < COLS / 2; t++) {
                u32 lo = j / 2 ? x[2 * t].y : x[2 * t].x, hi = j / 2 ? x[2 * t + 1].y : x[2 * t + 1].x;
                y[t] = __byte_perm(lo, hi, j % 2 ? 0x7632 : 0x5410);
            }
            asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(rows.at + (place(k, j) - rows.from) * B_ROW),
                         "r"(y[0]), "r"(y[1]), "r"(y[2]), "r"(y[3])
                         : "memory");
        }
    }
};

// all_loaded waits until the CTA has all its rows; loaded tells so for a warp that loads.
__device__ __forceinline__ void all_loaded() { asm volatile("barrier.sync 1, %0;" ::"n"(THREADS) : "memory"); }
__device__ __forceinline__ void loaded() { asm volatile("barrier.arrive 1, %0;" ::"n"(THREADS) : "memory"); }

// OfRows provides the rows of B from shared memory, as a source of Warp::multiply.
struct OfRows {
    u32 row; // the address of the lane's row of the current segment

    __device__ __forceinline__ OfRows(const Rows &rows, const Loader &loader, u32 lane)
        : row(rows.at + (loader.first - rows.from + place(lane)) * B_ROW) {}
    __device__ __forceinline__ void begin(u32) const {}
    __device__ __forceinline__ void wait() const {}
    template <int STEPS> __device__ __forceinline__ u32 at(u32) const { return row; }
    template <int STEPS> __device__ __forceinline__ void done(Stream &stream, u32 slot, u32 mask_slot) {
        row += STEPS * STEP_COLS * B_ROW;
        if (stream.coming < stream.total) stream.fetch(slot, mask_slot);
    }
};

// middles returns where each row's first entry of the COO remainder that CTA 1 of a cluster has is in the array index.
__device__ __forceinline__ u32 middles(const Params &p) { return p.masklayout; }

// Gathered is a warp's sums of some rows of the COO remainder, of the entries whose rows of B the CTA has. TEAM lanes
// work on a row, each on every TEAM-th entry; a lane has ROWS rows at once.
struct Gathered {
    static const int TEAM = 4, TOGETHER = 32 / TEAM, BETWEEN = TOGETHER * REMAINDER_WARPS, // rows
        ROWS = GROUP_ROWS / BETWEEN, TAKEN = 8 / ROWS, // entries of a row that a lane loads at once
        AT_ONCE = 4 / ROWS; // rows of B that it reads at once
    // Ends says where the entries of a lane's rows begin and end.
    struct Ends {
        u32 at[ROWS], end[ROWS];

        // find finds those of row `first` and every BETWEEN-th after it: CTA 0 has those before the row's middle.
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
    };
    // Entries are some of each row: a value in the upper half, the place of its row of B in the lower one.
    typedef u32 Entries[ROWS][TAKEN];
    u32 k[ROWS][TAKEN], v[ROWS][TAKEN]; // as loaded
    float x[ROWS][8];

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int i = 0; i < ROWS; i++)
#pragma unroll
            for (int t = 0; t < 8; t++) x[i][t] = 0;
    }
    // load begins to read the next entries and returns the most that a lane still had. Where it has none, the value is
    // 0 and the row of B is row `from`.
    __device__ __forceinline__ u32 load(Ends &of, const u32 *cols, const u16 *values, u32 from) {
        u32 most = 0;
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            if (of.at[i] < of.end[i]) most = max(most, (of.end[i] - of.at[i] + TEAM - 1) / TEAM);
#pragma unroll
            for (int n = 0; n < TAKEN; n++) {
                u32 e = of.at[i] + n * TEAM;
                k[i][n] = from, v[i][n] = 0;
                if (e < of.end[i]) k[i][n] = __ldg(cols + e), v[i][n] = __ldg(values + e);
            }
            of.at[i] += TAKEN * TEAM;
        }
        return __reduce_max_sync(~0u, most);
    }
    __device__ __forceinline__ void take(Entries &entries, u32 from) const {
#pragma unroll
        for (int i = 0; i < ROWS; i++)
#pragma unroll
            for (int n = 0; n < TAKEN; n++) entries[i][n] = v[i][n] << 16 | (place(k[i][n]) - from);
    }
    // add adds the first `most` entries of each row, in steps of AT_ONCE.
    __device__ __forceinline__ void add(const Entries &entries, u32 most, const Rows &rows) {
#pragma unroll
        for (int e = 0; e < TAKEN; e += AT_ONCE) {
            if (e >= most) break;
            uint4 y[ROWS][AT_ONCE];
#pragma unroll
            for (int i = 0; i < ROWS; i++)
#pragma unroll
                for (int n = 0; n < AT_ONCE; n++)
                    y[i][n] = shared_quad(rows.at + (entries[i][e + n] & 0xffff) * B_ROW);
#pragma unroll
            for (int i = 0; i < ROWS; i++)
#pragma unroll
                for (int n = 0; n < AT_ONCE; n++) {
                    float f = widen_hi<ELEM>(entries[i][e + n]);
                    u32 words[4] = {y[i][n].x, y[i][n].y, y[i][n].z, y[i][n].w};
#pragma unroll
                    for (int t = 0; t < 4; t++) {
                        x[i][2 * t] = fmaf(f, widen_lo<ELEM>(words[t]), x[i][2 * t]);
                        x[i][2 * t + 1] = fmaf(f, widen_hi<ELEM>(words[t]), x[i][2 * t + 1]);
                    }
                }
        }
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
// LinesOut is EitherOut whose most frequent case, a column-major C of 16-bit elements that is not read, is inline.
struct LinesOut : EitherOut<Params> {
    bool plain;

    __device__ __forceinline__ LinesOut(Dest to, const Params &p)
        : EitherOut<Params>{to, p}, plain(by_columns_c(p.store) && store_type(p.store) != F32 && p.beta == 0 &&
                                          !has_epilogue(p.store)) {}
    template <class F> __device__ __forceinline__ void store(u32 row, u32 col, float4 x, F recompute) const {
        u32 top = max(max(__float_as_uint(x.x) & 0x7fffffff, __float_as_uint(x.y) & 0x7fffffff),
                      max(__float_as_uint(x.z) & 0x7fffffff, __float_as_uint(x.w) & 0x7fffffff));
        if (!plain || top >= 0x7f800000) return EitherOut<Params>::store(row, col, x, recompute);
        u32 lo = narrow(p.alpha * x.x, p.alpha * x.y, store_type(p.store)),
            hi = narrow(p.alpha * x.z, p.alpha * x.w, store_type(p.store)), y[4] = {lo, lo >> 16, hi, hi >> 16};
        u16 *at = (u16 *)to.c + (u64)col * p.ldc + row;
#pragma unroll
        for (int i = 0; i < 4; i++, at += p.ldc)
            if (row < p.rows && col + i < p.n) *at = (u16)y[i];
    }
};
static_assert(COLS == 8 && PAIRS && CLUSTER == 2, "what lines are written for");
static_assert(GROUP_ROWS == Gathered::ROWS * Gathered::BETWEEN, "a group at a time");

// gather adds the COO remainder of the groups of a cluster, as far as the CTA has the rows of B, and writes the sums to
// `sums`. `number` is that of the warp among those that do so. While it adds some entries, it loads the next, be they
// of the next group.
__device__ __forceinline__ void gather(const Index &index, const u16 *values, const Rows &rows, const Params &p,
                                       u32 group, u32 rank, u32 number, float *sums, u32 lane) {
    const u32 *cols = index.remainder_cols(p);
    const u16 *entries = index.remainder_values(values);
    u32 first = number * Gathered::TOGETHER;
    Gathered g;
    Gathered::Ends at, next;
    auto find = [&](u32 of) {
        next.find(index, p, rank, of < p.each ? (group + of) * GROUP_ROWS + first : p.rows, lane);
    };
    find(0);
    at = next;
    u32 most = g.load(at, cols, entries, rows.from);
    find(1);
    g.clear();
    all_loaded();
#pragma unroll 1
    for (u32 of = 0; of < p.each;) {
        Gathered::Entries taken;
        g.take(taken, rows.from);
        u32 now = most;
        bool last = now <= Gathered::TAKEN;
        if (last) at = next, find(of + 2);
        most = g.load(at, cols, entries, rows.from);
        g.add(taken, now, rows);
        if (!last) continue;
        g.write(sums + (of++ * GROUP_ROWS + first) * PITCH, lane);
        g.clear();
    }
}
