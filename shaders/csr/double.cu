// SpMM in f64 from compressed sparse rows. See csr.go for how work is shared out. A lane holds CHUNKS times two columns, across
// such pairs apart, so that the lanes of a row load 16 bytes each, side by side. With OVERLAP a launch reads where its entries are
// while the one before still runs. With TEAMS a piece is the work of a whole workgroup.

#define DOUBLE
#include "params.h"
#include "../include/f64.cuh"
#ifdef OVERLAP
#include "../include/launches.cuh"
#else
__device__ __forceinline__ void launches_before() {}
__device__ __forceinline__ void launches_after() {}
#endif

typedef unsigned int u32;

#define ALL 0xffffffffu

__device__ __forceinline__ u32 word(const uint4 &v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }

// load returns two columns of B, or zeros. (Predicated by hand: around branches the compiler would wait for each load
// before the next.)
__device__ __forceinline__ double2 load(const double2 *b, bool in) {
    double2 x;
    asm volatile("{.reg .pred in; setp.ne.u32 in, %3, 0;\n\t"
                 "mov.f64 %0, 0d0000000000000000; mov.f64 %1, 0d0000000000000000;\n\t"
                 "@in ld.global.nc.v2.f64 {%0, %1}, [%2];}"
                 : "=d"(x.x), "=d"(x.y)
                 : "l"(b), "r"((u32)in));
    return x;
}

// Sums are those of a lane: of columns 2·(lane + i·across) and the next.
typedef double2 Sums[CHUNKS];

// entries adds up the entries from begin to end that are the group's: every along-th four of them, counted from multiples of
// four, so that columns and values come in whole vectors. The next four are fetched before the rows of B of these. Entries
// of the neighbouring rows count as zero times zero. b is the lane's first pair in the first row, ld a row's length in pairs.
__device__ __forceinline__ void entries(Sums &acc, u32 begin, u32 end, u32 group, u32 along, const uint4 *__restrict__ colidx,
                                        const double2 *__restrict__ values, const double2 *__restrict__ b, const bool (&inside)[CHUNKS], const Params &p) {
    u32 k = (begin & ~3u) + 4 * group, step = 4 * along, ld = p.ldb / 2;
    uint4 cols = {};
    double2 vals[2] = {};
    if (k < end) cols = __ldg(colidx + k / 4), vals[0] = __ldg(values + k / 2);
    if (k + 2 < end) vals[1] = __ldg(values + k / 2 + 1); // what lies behind the last entry may not be there
    launches_before();
    launches_after();
    while (k < end) {
        u32 next = k + step;
        uint4 next_cols;
        double2 next_vals[2];
        if (next < end) {
            next_cols = __ldg(colidx + next / 4);
            next_vals[0] = __ldg(values + next / 2);
            if (next + 2 < end) next_vals[1] = __ldg(values + next / 2 + 1);
        }
        double2 x[4][CHUNKS];
        double v[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            bool in = k + i >= begin && k + i < end;
            v[i] = in ? (i & 1 ? vals[i / 2].y : vals[i / 2].x) : 0.0;
            const double2 *row = b + (size_t)word(cols, i) * ld;
#pragma unroll
            for (int c = 0; c < CHUNKS; c++) x[i][c] = load(row + c * p.across, in && inside[c]);
        }
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int c = 0; c < CHUNKS; c++) {
                acc[c].x = fma(v[i], x[i][c].x, acc[c].x);
                acc[c].y = fma(v[i], x[i][c].y, acc[c].y);
            }
        k = next;
        cols = next_cols;
        vals[0] = next_vals[0];
        vals[1] = next_vals[1];
    }
}

// pieces adds up the lane's share of rows first to last of the workspace.
__device__ __forceinline__ void pieces(Sums &acc, u32 first, u32 last, u32 group, const double *part, const bool (&inside)[CHUNKS], const Params &p) {
#pragma unroll 4
    for (u32 i = first + group; i < last; i += p.along)
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) {
            if (!inside[c]) continue;
            double2 x = *(const double2 *)(part + (size_t)i * p.ldp + 2 * c * p.across);
            acc[c].x += x.x;
            acc[c].y += x.y;
        }
}

// store writes alpha·x + beta·C, with the epilogue, to columns col and col + 1 of a row of C.
__device__ __forceinline__ void store(double *c, const double *bias, double2 x, u32 row, u32 col, const Params &p) {
    double alpha = alpha_of(p), beta = beta_of(p);
    double y[2] = {alpha * x.x, alpha * x.y};
    c += (size_t)row * p.ldc + col;
    bool both = col + 1 < p.n;
    if (beta != 0) {
        y[0] = fma(beta, c[0], y[0]);
        if (both) y[1] = fma(beta, c[1], y[1]);
    }
    if (has_epilogue(p.store)) {
        y[0] = epilogue64(y[0], p.store, bias, row, col);
        if (both) y[1] = epilogue64(y[1], p.store, bias, row, col + 1);
    }
    if (both && p.ldc % 2 == 0) {
        *(double2 *)c = make_double2(y[0], y[1]);
        return;
    }
    c[0] = y[0];
    if (both) c[1] = y[1];
}

// join adds the sums of the warp's groups of lanes, of d lanes or more.
__device__ __forceinline__ void join(Sums &acc, u32 d, u32 lanes) {
    for (; d < lanes; d *= 2)
#pragma unroll
        for (int i = 0; i < CHUNKS; i++) {
            acc[i].x += __shfl_xor_sync(ALL, acc[i].x, d);
            acc[i].y += __shfl_xor_sync(ALL, acc[i].y, d);
        }
}

#ifdef TEAMS
#define PIECE_WORDS 4 // begin, end, row, slot of the workspace or ALL: it is the whole row
#define WARPS 4

// team does one piece with all warps of the workgroup.
__device__ __forceinline__ void team(const uint4 *__restrict__ colidx, const double2 *__restrict__ values, const uint4 *piece, const double2 *__restrict__ b,
                                     const double *__restrict__ bias, double *__restrict__ c, double *part, const Params &p) {
    __shared__ double2 others[WARPS - 1][CHUNKS][32];
    u32 shift = __ffs(p.across) - 1, group = threadIdx.x >> shift, lane = threadIdx.x & (p.across - 1), warp = threadIdx.x / 32;
    u32 col = 2 * (blockIdx.y * CHUNKS * p.across + lane);
    uint4 w = __ldg(piece);
    Sums acc;
    bool inside[CHUNKS];
#pragma unroll
    for (int i = 0; i < CHUNKS; i++) {
        acc[i] = make_double2(0, 0);
        inside[i] = col + 2 * i * p.across < p.n;
    }
    entries(acc, w.x, inside[0] ? w.y : w.x, group, 32 * WARPS >> shift, colidx, values, b + col / 2, inside, p);
    join(acc, p.across, 32);
    if (warp > 0 && threadIdx.x % 32 < p.across)
#pragma unroll
        for (int i = 0; i < CHUNKS; i++) others[warp - 1][i][lane] = acc[i];
    __syncthreads();
    if (threadIdx.x >= p.across) return;
#pragma unroll
    for (int i = 0; i < CHUNKS; i++) {
        if (!inside[i]) continue;
#pragma unroll
        for (int j = 0; j < WARPS - 1; j++) acc[i].x += others[j][i][lane].x, acc[i].y += others[j][i][lane].y;
        if (w.w != ALL) *(double2 *)(part + (size_t)w.w * p.ldp + col + 2 * i * p.across) = acc[i];
        else store(c, bias, acc[i], w.z, col + 2 * i * p.across, p);
    }
}
#else
#define PIECE_WORDS 2 // begin, end
#endif

extern "C" __global__ void __launch_bounds__(128, BLOCKS)
csr(const u32 *__restrict__ rowptr, const uint4 *__restrict__ colidx, const double2 *__restrict__ values, const u32 *__restrict__ heavy,
    const double2 *__restrict__ b, const double *__restrict__ bias, double *__restrict__ c, double *part, const Params p) {
    u32 group = threadIdx.x >> (__ffs(p.across) - 1); // of the workgroup's
    u32 lane = threadIdx.x & (p.across - 1);
    u32 block = blockIdx.x + blockIdx.z * p.width, before = p.pieces; // items before the rows
#ifdef TEAMS
    if (p.phase == 0) {
        if (block < p.pieces) {
            team(colidx, values, (const uint4 *)heavy + block, b, bias, c, part, p);
            return;
        }
        block -= p.pieces;
    }
    before = 0;
#endif
    u32 item = block * p.per + (group >> (__ffs(p.along) - 1));
    group &= p.along - 1; // of the item's
    u32 col = 2 * (blockIdx.y * CHUNKS * p.across + lane); // the lane's first column
    Sums acc;
    bool inside[CHUNKS]; // the pairs of columns that C has
#pragma unroll
    for (int i = 0; i < CHUNKS; i++) {
        acc[i] = make_double2(0, 0);
        inside[i] = col + 2 * i * p.across < p.n;
    }

    bool busy = item < p.items && inside[0];
    bool piece = p.phase == 0 && item < before;
    u32 row = 0;
    if (busy && p.phase == 1) {
        const u32 *r = heavy + PIECE_WORDS * (size_t)p.pieces + 3 * (size_t)item;
        row = r[0];
        launches_before();
        launches_after();
        pieces(acc, r[1], r[2], group, part + col, inside, p);
    } else if (busy) {
        row = item - before;
        u32 begin = piece ? heavy[2 * (size_t)item] : rowptr[row];
        u32 end = piece ? heavy[2 * (size_t)item + 1] : rowptr[row + 1];
        busy = piece || end - begin <= p.longest; // else it is done in pieces
        entries(acc, begin, busy ? end : begin, group, p.along, colidx, values, b + col / 2, inside, p);
    } else {
        launches_before();
        launches_after();
    }

    join(acc, p.across, p.across * p.along);

    if (!busy || group != 0) return;
#pragma unroll
    for (int i = 0; i < CHUNKS; i++) {
        if (!inside[i]) continue;
        if (piece) *(double2 *)(part + (size_t)item * p.ldp + col + 2 * i * p.across) = acc[i];
        else store(c, bias, acc[i], row, col + 2 * i * p.across, p);
    }
}
