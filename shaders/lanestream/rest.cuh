// The rest of staged.cu and few.cu: what the streams leave out.

#pragma once
#include "tiles.cuh"

// Rest is a warp's work on rows of the rest. Of a row TILES lanes have 8 columns each, and a lane has ROWS rows at once: all go through
// B's rows from the first to the last, so that those which rows of A share are found in the first-level cache. While rows of B are on
// their way, the next entries are, too.
template <int ROWS, int AT_ONCE> struct Rest {
    static const int TOGETHER = 32 / TILES; // rows of a warp that are neighbours
    float x[ROWS][8];

    // add does rows first to first + TOGETHER - 1, then those `apart` further, and so on, all before `last`.
    __device__ __forceinline__ void add(const Index &index, const u16 *values, const u16 *b, const Params &p, u32 first, u32 apart, u32 last, u32 col, u32 lane) {
        col += lane % TILES * 8;
        const u16 *from = b + (col < p.ldb ? col : 0), *rest = index.rest_values(values);
        const u32 *cols = index.rest_cols(p);
        u32 at[ROWS], end[ROWS], k[ROWS][AT_ONCE], v[ROWS][AT_ONCE];
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            u32 row = first + lane / TILES + i * apart;
            at[i] = end[i] = 0;
            if (row < last) at[i] = index.rest_at(row), end[i] = index.rest_at(row + 1);
#pragma unroll
            for (int n = 0; n < AT_ONCE; n++) k[i][n] = 0;
#pragma unroll
            for (int j = 0; j < 8; j++) x[i][j] = 0;
        }
        auto load = [&] {
            bool some = false;
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                some |= at[i] < end[i];
#pragma unroll
                for (int n = 0; n < AT_ONCE; n++) {
                    v[i][n] = 0; // past the end the column stays: a row of B that was read
                    if (at[i] + n < end[i]) k[i][n] = __ldg(cols + at[i] + n), v[i][n] = __ldg(rest + at[i] + n);
                }
                at[i] += AT_ONCE;
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
                for (int n = 0; n < AT_ONCE; n++) y[i][n] = __ldg((const uint4 *)(from + (u64)k[i][n] * p.ldb)), f[i][n] = widen_lo<ELEM>(v[i][n]);
            some = load();
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
        }
    }
    // leave writes the sums of rows as add says to rows of sums of which the first is at `sums`, or adds them to what is there.
    template <bool ADD> __device__ __forceinline__ void leave(float *sums, u32 apart, u32 last, u32 lane) const {
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            u32 row = lane / TILES + i * apart;
            float *to = sums + row * PITCH + lane % TILES * 8;
            if (row < last)
#pragma unroll
                for (int j = 0; j < 8; j++) to[j] = ADD ? to[j] + x[i][j] : x[i][j];
        }
    }
};
// What is done beside the streams, and what after them.
typedef Rest<TILES == 1 ? 2 : 3, TILES == 1 ? 4 : 3> Aside;
typedef Rest<2, 4> After;
#define ASIDE_ROWS (TILES == 1 ? 2 : 3)
