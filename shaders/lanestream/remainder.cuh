// The COO remainder in staged.cu and few.cu.

#pragma once
#include "tiles.cuh"

// DEALT: neighbouring lanes read a row's entries for each other, because a load costs what the cache lines cost that it
// touches. It is set where that was faster at 60 to 90 % zeros.
#define DEALT (PAIRS ? TILES != 2 : TILES == 2)
// SPLIT lanes with the same 8 columns divide a row's entries.
#define SPLIT (DEALT && TILES == 1 ? 2 : 1)

// Remainder is a warp's sums of some rows of the COO remainder. TEAM lanes work on a row: TILES lanes, for 8 columns
// each, times SPLIT. A lane has ROWS rows at once. All go through B's rows from the first to the last, so that rows of
// B that several rows of A need are still in L1. While AT_ONCE rows of B are loaded for each row, the next entries are
// too.
template <int ROWS, int AT_ONCE> struct Remainder {
    static const int TEAM = TILES * SPLIT, TOGETHER = 32 / TEAM; // lanes of a row; neighbouring rows of a warp
    static const int TAKEN = AT_ONCE * SPLIT, STRIDE = DEALT ? TEAM : 1,
                     OWN = TAKEN / STRIDE; // entries of a row at a time; how many of them the lane reads
    static_assert(TAKEN % STRIDE == 0, "all lanes read as many");
    float x[ROWS][8];

    // add computes the sums of rows first to first + TOGETHER - 1, then of those `apart` rows further on, and so on
    // ROWS times, all before row `last`. A row's entries are dealt to `shares` shares, TAKEN at a time; this warp has
    // share number `share`.
    __device__ __forceinline__ void add(const Index &index, const u16 *values, const u16 *b, const Params &p, u32 first,
                                        u32 apart, u32 last, u32 col, u32 lane, u32 share = 0, u32 shares = 1) {
        col += lane % TILES * 8;
#ifdef B_VECTOR
        const u16 *from = b;
#else
        const u16 *from = b + (col < p.ldb ? col : 0);
#endif
        const u16 *remainder = index.remainder_values(values);
        const u32 *cols = index.remainder_cols(p);
        u32 at[ROWS], end[ROWS], k[ROWS][OWN], v[ROWS][OWN], mine = DEALT ? lane % TEAM : 0;
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            u32 row = first + lane / TEAM + i * apart;
            at[i] = end[i] = 0;
            if (row < last) at[i] = index.remainder_at(row) + share * TAKEN, end[i] = index.remainder_at(row + 1);
#pragma unroll
            for (int n = 0; n < OWN; n++) k[i][n] = 0;
#pragma unroll
            for (int j = 0; j < 8; j++) x[i][j] = 0;
        }
        auto load = [&] {
            bool some = false;
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                some |= at[i] < end[i];
#pragma unroll
                for (int n = 0; n < OWN; n++) {
                    u32 e = at[i] + n * STRIDE + mine;
                    v[i][n] = 0; // past the end the column stays as it is: a row of B that exists
                    if (e < end[i]) k[i][n] = __ldg(cols + e), v[i][n] = __ldg(remainder + e);
                }
                at[i] += shares * TAKEN;
            }
            return __any_sync(~0u, some);
        };
        bool some = load();
#pragma unroll 1
        while (some) {
            uint4 y[ROWS][AT_ONCE];
            float f[ROWS][AT_ONCE];
#pragma unroll
            for (int i = 0; i < ROWS; i++)
#pragma unroll
                for (int n = 0; n < AT_ONCE; n++) {
                    const bool other = DEALT && TILES > 1; // the team's lanes need the same entries: shuffle them
                    u32 row = k[i][other ? n / TILES : n], value = v[i][other ? n / TILES : n],
                        reader = lane - mine + n % TILES;
                    if (other) row = __shfl_sync(~0u, row, reader), value = __shfl_sync(~0u, value, reader);
#ifdef B_VECTOR
                    y[i][n].x = row, f[i][n] = widen_lo<ELEM>(value);
#else
                    y[i][n] = __ldg((const uint4 *)(from + (u64)row * p.ldb)), f[i][n] = widen_lo<ELEM>(value);
#endif
                }
            some = load();
#ifdef B_VECTOR
            if (col == 0) {
                u32 e[ROWS][AT_ONCE];
#pragma unroll
                for (int i = 0; i < ROWS; i++)
#pragma unroll
                    for (int n = 0; n < AT_ONCE; n++) e[i][n] = __ldg(from + y[i][n].x);
#pragma unroll
                for (int i = 0; i < ROWS; i++)
#pragma unroll
                    for (int n = 0; n < AT_ONCE; n++)
                        x[i][0] = fmaf(f[i][n], widen_lo<ELEM>(e[i][n]), x[i][0]);
            }
#else
#pragma unroll
            for (int i = 0; i < ROWS; i++)
#pragma unroll
                for (int n = 0; n < AT_ONCE; n++) {
                    u32 words[4] = {y[i][n].x, y[i][n].y, y[i][n].z, y[i][n].w};
#pragma unroll
                    for (int j = 0; j < 4; j++) {
                        x[i][2 * j] = fmaf(f[i][n], widen_lo<ELEM>(words[j]), x[i][2 * j]);
                        x[i][2 * j + 1] = fmaf(f[i][n], widen_hi<ELEM>(words[j]), x[i][2 * j + 1]);
                    }
                }
#endif
        }
#pragma unroll
        for (int i = 0; i < ROWS && SPLIT == 2; i++)
#pragma unroll
            for (int j = 0; j < 8; j++) x[i][j] += __shfl_xor_sync(~0u, x[i][j], 1);
    }
    // write_sums writes (or adds) the sums to `sums`, where row first of add is the first row.
    template <bool ADD> __device__ __forceinline__ void write_sums(float *sums, u32 apart, u32 last, u32 lane) const {
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            u32 row = lane / TEAM + i * apart;
            float *to = sums + row * PITCH + lane % TILES * 8;
            if (row < last && lane % TEAM < TILES)
#pragma unroll
                for (int j = 0; j < 8; j++) to[j] = ADD ? to[j] + x[i][j] : x[i][j];
        }
    }
};
// Aside is the remainder that warps of their own add while others multiply the streams; After is added by the warps of
// the streams when they are done.
#ifndef A_PRODUCERS
#define A_PRODUCERS 0
#endif
// ASIDE_ROWS is 4 where a producer warp of A takes the place of a remainder warp.
#define ASIDE_ROWS (A_PRODUCERS && TILES == 2 ? 4 : DEALT || TILES > 1 ? 3 : 2)
typedef Remainder<ASIDE_ROWS, ASIDE_ROWS == 4 ? 2 : DEALT || TILES == 1 ? 4 : 3> Aside;
typedef Remainder<2, DEALT && TILES == 4 ? 8 : 4> After;
