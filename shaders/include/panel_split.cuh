// Split panels (split-K): a heavy panel's columns are divided among warps, whose partial sums go to the workspace.
// Phase 1 adds them in order. Needs panel.cuh and the file with locate.

#pragma once

// recompute returns an output from the entries in columns first to last - 1 alone: see result.cuh's Special.
static __device__ __noinline__ float recompute(u32 first, u32 last, const u32 *colind, const Elem *values,
                                               const u32 *mask, const Elem *b, u32 ldb, u32 row, u32 col) {
    Special s;
    for (u32 v = first; v < last; v++) add_entry(s, values, mask, (u64)v * V + row, b[(u64)colind[v] * ldb + col]);
    return s.result();
}

// keep writes COUNT (a multiple of 4) neighbouring partial sums of a row to its slot, whose rows have a multiple of 8
// columns.
template <int COUNT>
__device__ __forceinline__ void keep(float *part, const Params &p, u32 slot, u32 row, u32 col,
                                     const float (&x)[COUNT]) {
    u32 ld = (p.n + 7) & ~7u;
    if (col >= ld) return;
    float *to = part + ((u64)slot * V + row) * ld + col;
#pragma unroll
    for (int i = 0; i < COUNT; i += 4) __stcg((float4 *)(to + i), make_float4(x[i], x[i + 1], x[i + 2], x[i + 3]));
}

// add_parts is phase 1: a thread adds the partial sums of four columns of a row of a heavy panel. (It takes the
// parameters by value: if the address of the kernel's were taken, the kernel would read them from memory again and
// again.)
static __device__ __noinline__ void add_parts(const Params p, const u32 *work, const u32 *colind, const Elem *values,
                                              const u32 *mask, const Elem *b, const float *bias, void *c,
                                              const float *part) {
    u32 number = blockIdx.x + blockIdx.z * p.width, quads = ((p.n + 7) & ~7u) / 4;
    u32 at = blockIdx.y * blockDim.x + threadIdx.x, row = at / quads, col = at % quads * 4;
    if (number >= p.panels || row >= V || col >= p.n) return;
    Panel panel = panel_of(work, p, number, col);
    u32 slots = panel_of(work, p, number + 1, col).slot - panel.slot;
    const float4 *from = (const float4 *)part + ((u64)panel.slot * V + row) * quads + col / 4;
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 8
    for (u32 s = 0; s < slots; s++) {
        float4 x = __ldcg(from + (u64)s * V * quads);
        sum.x += x.x, sum.y += x.y, sum.z += x.z, sum.w += x.w;
    }
    float x[4] = {sum.x, sum.y, sum.z, sum.w};
    mend(p, row, col, x,
         [&](u32 r, u32 n) { return recompute(panel.first, panel.last, colind, values, mask, b, p.ldb, r, n); });
    store_row({c, bias}, p, row_of(work + p.places, panel, row), col, x);
}
