// Panels × dense in f32 without tensor cores.
//
// Computes: C = alpha·A·B + beta·C for panels of V rows.
// Tile: a warp computes a panel (V × 128), a lane (V × 4): a 128-bit load of a row of B feeds 4·V multiply-adds. UNROLL
// columns are in flight; panels have multiples of UNROLL columns. A CTA has WARPS warps.
// Data movement: straight from L1 to registers.
// Bound by: FMA if C has many columns, else L1.

#pragma once
#include "panel_split.cuh"

// LEAST is the CTAs of a multiprocessor, by which ptxas limits registers. (With 7, panels of 8 rows take up to a fifth
// longer.)
#define LEAST (V == 8 ? 6 : 4)

extern "C" __global__ void __launch_bounds__(32 * WARPS, LEAST)
    ENTRY(const u32 *__restrict__ work, const u32 *__restrict__ colind, const float *__restrict__ values,
          const u32 *__restrict__ mask, const float *__restrict__ b, const float *__restrict__ bias,
          void *__restrict__ c, float *__restrict__ part, Params p) {
    if (p.phase == 1) {
        add_parts(p, work, colind, values, mask, b, bias, c, part);
        return;
    }
    Panel panel;
    if (!locate(work, p, threadIdx.x >> 5, 128, panel)) return;
    u32 first = panel.first, last = panel.last, col = panel.base + 4 * (threadIdx.x & 31);
    const float *from = b + min(col, p.ldb - 4); // columns past the leading dimension are never stored
    float acc[V][4] = {};
    for (u32 v = first; v < last; v += UNROLL) {
        float4 row[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; u++) row[u] = __ldg((const float4 *)(from + (u64)__ldg(colind + v + u) * p.ldb));
#pragma unroll
        for (int u = 0; u < UNROLL; u++)
#pragma unroll
            for (int r = 0; r < V; r += 4) {
                float4 a = __ldg((const float4 *)(values + (u64)(v + u) * V + r));
                float x[4] = {a.x, a.y, a.z, a.w};
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    acc[r + i][0] = fmaf(x[i], row[u].x, acc[r + i][0]);
                    acc[r + i][1] = fmaf(x[i], row[u].y, acc[r + i][1]);
                    acc[r + i][2] = fmaf(x[i], row[u].z, acc[r + i][2]);
                    acc[r + i][3] = fmaf(x[i], row[u].w, acc[r + i][3]);
                }
            }
    }
    if (panel.slot != NO_SLOT) {
#pragma unroll
        for (int r = 0; r < V; r++) keep(part, p, panel.slot, r, col, acc[r]);
        return;
    }
#pragma unroll
    for (int r = 0; r < V; r++) {
        mend(p, r, col, acc[r],
             [&](u32 i, u32 n) { return recompute(first, last, colind, values, mask, b, p.ldb, i, n); });
        store_row({c, bias}, p, row_of(work + p.places, panel, r), col, acc[r]);
    }
}
