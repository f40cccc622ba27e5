// Panels × dense on tensor cores with B staged in shared memory, for panels that share most rows of B. A kernel's own
// file defines panel_at and row_of.
//
// Computes: C = alpha·A·B + beta·C for panels of V rows, f16 or bf16, sums in f32. The multiply is panel_gather.cuh's.
// Tile: a CTA computes WARPS·PANELS panels (V × 64 each), a consumer warp PANELS of them.
// Data movement: PRODUCERS producer warps copy B into a stage buffer of STAGES windows (WINDOW × 64), and every panel
// gathers from there. (panel_gather.cuh gathers each row of B from L1 once for each panel. There the four lanes of a
// quad read the same columns of four rows, which are in the same banks.) Staged rows are 160 bytes apart, so that rows
// that differ mod 4 differ in banks, and the encoder orders a panel's vectors so that the four rows that a quad reads
// together differ mod 4. mbarriers tell consumers that a window is full and producers that it is free, so warps may be
// some windows apart. A consumer warp prefetches the steps (16 vectors) of each of its panels DEPTH ahead.
// Bound by: shared-memory gathers.
//
// The format's lists are cut by window. ptr holds panels × windows + 1 offsets: list (panel, w) is the panel's vectors
// whose columns are in window w, padded to a multiple of 16. colind holds 16-bit columns within the window, two to a
// word.
//
// Constants: ENTRY, V (8, 16), ELEM (half.cuh), WINDOW, WARPS, PRODUCERS, PANELS (of a warp), STAGES (windows in shared
// memory), DEPTH (steps of a panel). Dynamic shared memory: LISTS bytes, and 4·WARPS·PANELS·(windows + 1) for the
// offsets of lists.

#pragma once
#include "barrier.cuh"

#define PITCH 160 // bytes from a staged row to the next
#define WINDOW_BYTES (WINDOW * PITCH)
#define VALUE_BYTES (16 * V * 2) // of a step
#define STEP_BYTES (VALUE_BYTES + 32) // with its columns
#define RING_BYTES (DEPTH * STEP_BYTES) // of one panel
#define LISTS (STAGES * WINDOW_BYTES + WARPS * PANELS * RING_BYTES)

__device__ __forceinline__ void barrier_wait(u32 bar, u32 parity) {
    while (!barrier_test(bar, parity)) {}
}

// The panel's vectors lie in lists[0] to lists[windows]; see panel.cuh's recompute.
static __device__ __noinline__ float recompute_windows(const u32 *lists, u32 windows, const u16 *local,
                                                       const u16 *values, const u32 *mask, const u16 *b, u32 ldb,
                                                       u32 row, u32 col) {
    Special s;
    for (u32 w = 0; w < windows; w++)
        for (u32 v = lists[w]; v < lists[w + 1]; v++)
            add_entry(s, values, mask, (u64)v * V + row, b[(u64)(w * WINDOW + local[v]) * ldb + col]);
    return s.result();
}

extern "C" __global__ void __launch_bounds__(32 * (WARPS + PRODUCERS), 1)
    ENTRY(const u32 *__restrict__ ptr, const u32 *__restrict__ colind, const u16 *__restrict__ values,
          const u32 *__restrict__ mask, const u16 *__restrict__ b, const float *__restrict__ bias, void *__restrict__ c,
          float *, Params p) {
    const u32 *rowmap = ptr + p.places;
    extern __shared__ __align__(128) unsigned char smem[];
    __shared__ u64 full[STAGES], empty[STAGES];
    const u16 *local = (const u16 *)colind;
    u32 buffer = shared_address(smem);
    u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    u32 windows = (p.cols + WINDOW - 1) / WINDOW;
    u32 base = blockIdx.y * 64;
    if (threadIdx.x == 0)
        for (int s = 0; s < STAGES; s++) {
            barrier_init(shared_address(&full[s]), 32 * PRODUCERS);
            barrier_init(shared_address(&empty[s]), WARPS);
        }
    __syncthreads();

    if (warp >= WARPS) { // producer warps
        u32 t = threadIdx.x - 32 * WARPS;
        // Columns past the leading dimension are read from its end instead and never stored. Rows past the matrix are
        // zeros.
        const u16 *from = b + min(base + 8 * (t & 7), p.ldb - 8);
        for (u32 w = 0; w < windows; w++) {
            u32 stage = w % STAGES;
            if (w >= STAGES) barrier_wait(shared_address(&empty[stage]), (w / STAGES - 1) & 1);
            u32 to = buffer + stage * WINDOW_BYTES + 16 * (t & 7);
#pragma unroll 4
            for (u32 r = t >> 3; r < WINDOW; r += 4 * PRODUCERS) {
                u32 k = w * WINDOW + r;
                int in = k < p.cols ? 16 : 0;
                copy<16>(to + r * PITCH, from + (in ? (u64)k * p.ldb : 0), in);
            }
            asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(&full[stage]))
                         : "memory");
        }
        asm volatile("cp.async.wait_all;" ::: "memory");
        return;
    }

    // Panels are sorted by weight, the heaviest first. They are dealt to CTAs in turn, and to warps in turn and back
    // again, so that all have about the same work.
    //
    // The offsets of this warp's lists, and its share of the copies of each panel's steps.
    u32 *lists = (u32 *)(smem + LISTS) + warp * PANELS * (windows + 1);
    u32 steps = buffer + STAGES * WINDOW_BYTES + warp * PANELS * RING_BYTES;
    u32 panel[PANELS], left[PANELS]; // steps of the panel yet to copy
    const char *from[PANELS];
    u32 stride = lane < 16 || V == 16 ? VALUE_BYTES : 32;
#pragma unroll
    for (int j = 0; j < PANELS; j++) {
        u32 stratum = j * WARPS + (j & 1 ? WARPS - 1 - warp : warp);
        u32 slot = stratum * gridDim.x * gridDim.z + blockIdx.x + blockIdx.z * p.width;
        panel[j] = slot < p.panels ? panel_at(rowmap, slot) : 0xffffffff;
        for (u32 w = lane; w <= windows; w += 32)
            lists[j * (windows + 1) + w] = panel[j] == 0xffffffff ? 0 : ptr[(u64)panel[j] * windows + w];
        __syncwarp();
        u32 first = lists[j * (windows + 1)];
        left[j] = (lists[j * (windows + 1) + windows] - first) / 16;
        from[j] = lane < 16 || V == 16 ? (const char *)(values + (u64)first * V) + 16 * lane
                                       : (const char *)(local + first) + 16 * (lane & 1);
    }
    auto fetch = [&](int j, u32 to) {
        if (left[j] > 0) {
            left[j]--;
            if (V == 16 || lane < 18) copy<16>(to + 16 * lane, from[j], 16);
            from[j] += stride;
        }
        copy_commit();
    };
    static_assert(V == 8, "a step of 16-row panels needs a second copy");
#pragma unroll
    for (int s = 0; s < DEPTH; s++)
#pragma unroll
        for (int j = 0; j < PANELS; j++) fetch(j, steps + j * RING_BYTES + s * STEP_BYTES);

    u32 values_at = (lane & 15) * 16; // ldmatrix: vector of a step
    u32 columns_at = VALUE_BYTES + (lane >> 3 & 1) * 16; // ldmatrix: half of a step's columns
    u32 chunk = (lane >> 2) * 16;
    u32 at[PANELS];
#pragma unroll
    for (int j = 0; j < PANELS; j++) at[j] = steps + j * RING_BYTES;

    float acc[PANELS][HALVES][1][4][4] = {};
    for (u32 w = 0; w < windows; w++) {
        u32 stage = w % STAGES;
        barrier_wait(shared_address(&full[stage]), w / STAGES & 1);
        u32 rows_at = buffer + stage * WINDOW_BYTES + chunk;
#pragma unroll
        for (int j = 0; j < PANELS; j++) {
            const u32 *list = lists + j * (windows + 1) + w;
            for (u32 n = (list[1] - list[0]) / 16; n > 0; n--) {
                copy_wait<DEPTH - 1>();
                __syncwarp();
                u32 k[2], a[HALVES][2];
                asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                             : "=r"(k[0]), "=r"(k[1])
                             : "r"(at[j] + columns_at));
                asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                             : "=r"(a[0][0]), "=r"(a[0][1])
                             : "r"(at[j] + values_at));
                Rows rows;
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    u32 row = i & 1 ? k[i >> 1] >> 16 : k[i >> 1] & 0xffff;
                    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                                 : "=r"(rows.v[i][0].x), "=r"(rows.v[i][0].y), "=r"(rows.v[i][0].z),
                                   "=r"(rows.v[i][0].w)
                                 : "r"(rows_at + row * PITCH));
                }
                __syncwarp(); // all lanes have read the step that the copy replaces
                fetch(j, at[j]);
                at[j] =
                    at[j] + STEP_BYTES == steps + (j + 1) * RING_BYTES ? steps + j * RING_BYTES : at[j] + STEP_BYTES;
                multiply(acc[j], rows, a);
            }
        }
        __syncwarp();
        if (lane == 0) barrier_arrive(shared_address(&empty[stage]));
    }
#pragma unroll
    for (int j = 0; j < PANELS; j++)
        if (panel[j] != 0xffffffff) {
            const u32 *list = lists + j * (windows + 1);
            store(
                acc[j], {c, bias}, p, base,
                [&](u32 row) {
                    return row_of(rowmap, {0, 0, panel[j] * V, base, NO_SLOT}, row);
                },
                [&](u32 row, u32 col) {
                    return recompute_windows(list, windows, local, values, mask, b, p.ldb, row, col);
                });
        }
}
