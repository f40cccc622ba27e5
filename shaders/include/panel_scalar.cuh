// Panels × dense in f32 without tensor cores: a lane keeps V rows × 4 columns of C, so that each 128-bit
// load of a row of B feeds 4·V multiply-adds. One warp multiplies one panel by 128 columns, WARPS
// warps a block; UNROLL columns are in flight. Panels have multiples of UNROLL columns.

#pragma once

// See result.cuh's Special.
static __device__ __noinline__ float recompute(u32 first, u32 last, const u32 *colind, const float *values, const u32 *mask, const float *b,
                                               u32 ldb, u32 row, u32 col) {
    Special s;
    for (u32 v = first; v < last; v++) add_entry(s, values, mask, (u64)v * V + row, b[(u64)colind[v] * ldb + col]);
    return s.result();
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    ENTRY(const u32 *__restrict__ ptr, const u32 *__restrict__ colind, const float *__restrict__ values, const u32 *__restrict__ mask,
          const u32 *__restrict__ rowmap, const float *__restrict__ b, const float *__restrict__ bias,
          void *__restrict__ c, Params p) {
    Panel panel;
    if (!locate(ptr, rowmap, p, threadIdx.x >> 5, 128, panel)) return;
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
#pragma unroll
    for (int r = 0; r < V; r++) {
        mend(p, r, col, acc[r], [&](u32 i, u32 n) { return recompute(first, last, colind, values, mask, b, p.ldb, i, n); });
        store_row({c, bias}, p, row_of(rowmap, panel, r), col, acc[r]);
    }
}
