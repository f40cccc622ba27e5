// Panels × dense on tensor cores, after SSpMM (transpose mapping §III-B, register shuffle §IV-B, Algorithm 2). A
// kernel's own file defines locate and row_of.
//
// Computes: C = alpha·A·B + beta·C for panels of V rows, f16 or bf16, sums in f32, on mma.m16n8k16.
// Tile: a warp computes a panel (V × 64·CHUNKS), transposed: Cᵀ = Bᵀ·Aᵀ. The panel's rows take the instruction's n = 8,
// and 16 columns of B its m = 16. The instruction's k slots may have a step's columns of A in any order, as long as A
// and B agree. Here pairs of slots are assigned so that a lane's columns are neighbours, whose numbers are one load.
// Data movement: a lane loads 8 neighbouring columns of a gathered row of B with one 128-bit load. A byte permute of
// two such rows gives the pairs along k of the operand (shuffle in). The accumulators of 4 instructions are 8
// neighbouring columns of C again (shuffle out), so no value crosses lanes. Each warp loads its panel's values and
// column numbers into its own STAGES stage buffers in shared memory by cp.async: there is no CTA-wide barrier. On
// compute capability 9.0 the first values are prefetched while the launch before still runs.
// Bound by: L1, which delivers each row of B once for each panel that needs it.
//
// Constants: ENTRY, V (8, 16), ELEM (half.cuh), STEP (16, 8: the instruction's k), CHUNKS, WARPS, STAGES. Panels have
// multiples of STEP columns.

#pragma once
#include "launches.cuh"
#include "panel_split.cuh"

#define TILE 32 // columns of a stage: one per lane
#define STEPS (TILE / STEP) // steps of a stage
#define VBYTES (V * 2) // bytes of a column's values
#define STAGE_BYTES (TILE * VBYTES + TILE * 4)

__device__ __forceinline__ void gather(Rows &r, const u16 *__restrict__ b, u32 ldb, const u32 *cols,
                                       const u32 (&at)[CHUNKS]) {
    u32 k[QUAD];
#if QUAD == 4
    uint4 t = *(const uint4 *)cols;
    k[0] = t.x;
    k[1] = t.y;
    k[2] = t.z;
    k[3] = t.w;
#else
    uint2 t = *(const uint2 *)cols;
    k[0] = t.x;
    k[1] = t.y;
#endif
#pragma unroll
    for (int i = 0; i < QUAD; i++)
#pragma unroll
        for (int c = 0; c < CHUNKS; c++) r.v[i][c] = __ldg((const uint4 *)(b + (u64)k[i] * ldb + at[c]));
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    ENTRY(const u32 *__restrict__ work, const u32 *__restrict__ colind, const u16 *__restrict__ values,
          const u32 *__restrict__ mask, const u16 *__restrict__ b, const float *__restrict__ bias, void *__restrict__ c,
          float *__restrict__ part, Params p) {
    __shared__ __align__(16) unsigned char stages[WARPS][STAGES][STAGE_BYTES];
    if (p.phase == 1) {
#if __CUDA_ARCH__ >= 900
        launches_before();
        launches_after();
#endif
        add_parts(p, work, colind, values, mask, b, bias, c, part);
        return;
    }
    u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    Panel panel;
    if (!locate(work, p, warp, 64 * CHUNKS, panel)) return;
    u32 g = lane >> 2, q = lane & 3;
    u32 first = panel.first, count = panel.last - first, base = panel.base;

    // Columns past the leading dimension are read from its end instead; they are never stored.
    u32 at[CHUNKS];
#pragma unroll
    for (int i = 0; i < CHUNKS; i++) at[i] = min(base + 64 * i + 8 * g, p.ldb - 8);

    // Asynchronous copies: each lane copies one column's values and its number.
    u32 ring = shared_address(&stages[warp][0][0]);
    const char *from = (const char *)values + ((u64)first + lane) * VBYTES;
    const u32 *index = colind + first + lane;
    auto fetch = [&](u32 tile, u32 stage) {
        u32 t = tile * TILE + lane;
        int in = t < count;
        u64 skip = in ? (u64)tile * TILE : 0;
        u32 to = ring + stage * STAGE_BYTES;
        const char *f = in ? from + skip * VBYTES : (const char *)values;
#pragma unroll
        for (int i = 0; i < VBYTES / 16; i++) copy<16>(to + lane * VBYTES + 16 * i, f + 16 * i, in ? 16 : 0);
        copy<4>(to + TILE * VBYTES + 4 * lane, in ? index + skip : colind, in ? 4 : 0);
    };

    u32 tiles = (count + TILE - 1) / TILE;
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) {
        if (s < tiles) fetch(s, s);
        copy_commit();
    }
#if __CUDA_ARCH__ >= 900
    launches_before();
#endif

    float acc[HALVES][CHUNKS][4][4] = {};
    // ldmatrix: lane l names row l%8 of 8×8 matrix l/8; matrix m of a step holds k slots 8m..8m+7.
    // Slot 8m+r is column QUAD·(r/2) + 2m + r%2 of the step.
    u32 r = lane & 7, m = lane >> 3;
#if STEP == 16
    u32 row = (QUAD * (r >> 1) + 2 * (m & 1) + (r & 1));
    u32 half = m >> 1; // V = 16: the second pair of matrices is rows 8..15; V = 8: the next step
    u32 lds = V == 16 ? row * VBYTES + half * 16 : (row + STEP * half) * VBYTES;
#else
    u32 row = r;
    u32 lds = V == 16 ? (row + STEP * (m >> 1)) * VBYTES + (m & 1) * 16 : (row + STEP * m) * VBYTES;
#endif
    Rows rows[2];
    auto columns = [&](u32 stage, int step) {
        return (const u32 *)(&stages[warp][stage][TILE * VBYTES]) + step * STEP + QUAD * q;
    };

    if (tiles > 0) {
        copy_wait<STAGES - 2>();
        __syncwarp();
        gather(rows[0], b, p.ldb, columns(0, 0), at);
    }
    u32 stage = 0;
    for (u32 tile = 0; tile < tiles; tile++) {
        u32 next = stage + 1 == STAGES ? 0 : stage + 1;
        u32 last = stage == 0 ? STAGES - 1 : stage - 1;
        if (tile + STAGES - 1 < tiles) fetch(tile + STAGES - 1, last);
        copy_commit();
        // The A operands of the whole stage.
        u32 a[STEPS][HALVES][STEP / 8];
        u32 lm = ring + stage * STAGE_BYTES + lds;
#pragma unroll
        for (int i = 0; i < TILE * V / 256; i++) {
            u32 x[4];
            u32 off = lm + i * 256 * 2;
            asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                         : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                         : "r"(off)
                         : "memory");
#pragma unroll
            for (int e = 0; e < 4; e++) {
                int flat = 4 * i + e; // the matrices' order in shared memory: see lds
#if STEP == 16
                if (V == 16) a[i][e >> 1][e & 1] = x[e];
                else a[flat >> 1][0][flat & 1] = x[e];
#else
                if (V == 16) a[flat >> 1][flat & 1][0] = x[e];
                else a[flat][0][0] = x[e];
#endif
            }
        }
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
            u32 done = tile * TILE + (s + 1) * STEP;
            if (s + 1 < STEPS) {
                if (done < count) gather(rows[(s + 1) & 1], b, p.ldb, columns(stage, s + 1), at);
            } else if (tile + 1 < tiles) {
                copy_wait<STAGES - 2>();
                __syncwarp();
                gather(rows[(s + 1) & 1], b, p.ldb, columns(next, 0), at);
            }
            if (done <= count) multiply(acc, rows[s & 1], a[s]);
        }
        stage = next;
    }
#if __CUDA_ARCH__ >= 900
    launches_after();
#endif

    if (panel.slot != NO_SLOT) {
        each_row(acc, base, [&](u32 row, u32 col, float(&x)[8]) { keep(part, p, panel.slot, row, col, x); });
        return;
    }
    store(
        acc, {c, bias}, p, base, [&](u32 row) { return row_of(work + p.places, panel, row); },
        [&](u32 row, u32 col) { return recompute(first, first + count, colind, values, mask, b, p.ldb, row, col); });
}
