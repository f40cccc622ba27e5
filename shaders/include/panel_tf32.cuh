// Panels × dense on tensor cores in tf32: f32 operands are rounded to 11 significant bits.
//
// Computes: C = alpha·A·B + beta·C for panels of 8 rows, on mma.m16n8k8, by panel_gather.cuh's mapping.
// Tile: a warp computes a panel (8 × 32·CHUNKS). A CTA has WARPS warps. Panels have multiples of 8 columns.
// Data movement: straight from L1 to registers. A lane loads 4 neighbouring columns of a gathered row of B with one
// 128-bit load. A register holds a single k, so nothing is permuted: words j and j + 1 of two rows are the
// instruction's operand A as they are. Lane (g, q) holds values of row g of columns q and q + 4.
// Bound by: L1, which delivers each row of B once a panel.

#pragma once
#include "panel_split.cuh"
#include "tf32.cuh"

// Step is a lane's share of a step: the values of two vectors in its row, and their rows of B.
struct Step {
    u32 a[2], k[2];
    uint4 b[2][CHUNKS];
};

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    ENTRY(const u32 *__restrict__ work, const u32 *__restrict__ colind, const float *__restrict__ values,
          const u32 *__restrict__ mask, const float *__restrict__ b, const float *__restrict__ bias,
          void *__restrict__ c, float *__restrict__ part, Params p) {
    if (p.phase == 1) {
        add_parts(p, work, colind, values, mask, b, bias, c, part);
        return;
    }
    u32 lane = threadIdx.x & 31, g = lane >> 2, q = lane & 3;
    Panel panel;
    if (!locate(work, p, threadIdx.x >> 5, 32 * CHUNKS, panel)) return;
    u32 first = panel.first, last = panel.last, base = panel.base;
    u32 at[CHUNKS]; // columns past the leading dimension are read from its end and never stored
#pragma unroll
    for (int i = 0; i < CHUNKS; i++) at[i] = min(base + 32 * i + 4 * g, p.ldb - 4);

    auto index = [&](Step &s, u32 v) {
#pragma unroll
        for (int i = 0; i < 2; i++)
            s.k[i] = __ldg(colind + v + q + 4 * i), s.a[i] = __ldg((const u32 *)values + (u64)(v + q + 4 * i) * V + g);
    };
    auto gather = [&](Step &s) {
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int j = 0; j < CHUNKS; j++) s.b[i][j] = __ldg((const uint4 *)(b + (u64)s.k[i] * p.ldb + at[j]));
    };
    float acc[CHUNKS][2][4] = {};
    Step now, next;
    if (first < last) index(now, first), gather(now);
    if (first + 8 < last) index(next, first + 8);
    for (u32 v = first; v < last; v += 8) {
        Step after = next;
        if (v + 8 < last) gather(after);
        if (v + 16 < last) index(next, v + 16);
        u32 b0 = tf32(now.a[0]), b1 = tf32(now.a[1]);
#pragma unroll
        for (int j = 0; j < CHUNKS; j++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                mma8(acc[j][h], tf32(word(now.b[0][j], 2 * h)), tf32(word(now.b[0][j], 2 * h + 1)),
                     tf32(word(now.b[1][j], 2 * h)), tf32(word(now.b[1][j], 2 * h + 1)), b0, b1);
        now = after;
    }
#pragma unroll
    for (int e = 0; e < 2; e++)
#pragma unroll
        for (int j = 0; j < CHUNKS; j++) {
            float x[4] = {acc[j][0][e], acc[j][0][2 + e], acc[j][1][e], acc[j][1][2 + e]};
            u32 row = 2 * q + e, col = base + 32 * j + 4 * g;
            if (panel.slot != NO_SLOT) {
                keep(part, p, panel.slot, row, col, x);
                continue;
            }
            mend(p, row, col, x,
                 [&](u32 r, u32 n) { return recompute(first, last, colind, values, mask, b, p.ldb, r, n); });
            store_row({c, bias}, p, row_of(work + p.places, panel, row), col, x);
        }
}
