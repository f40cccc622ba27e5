// Stage buffers of B: producer warps load B into shared memory for all consumer warps of a split. The including file
// defines B_ROWS, the rows of B that a step multiplies, and FIRST_SEGMENT(p, split), the first segment of a split.

#pragma once
#include "tiles.cuh"

#define LANES (32 * B_PRODUCERS / B_SPLITS) // that load B for one split

// remainder_sums returns the offset of a remainder warp's sums in shared memory: behind a stream's sums if a stage
// buffer has room for both, else behind everything else.
__device__ __forceinline__ u32 remainder_sums(u32 number) {
    return BUFFER_BYTES >= 2 * SUMS
               ? number * BUFFER_BYTES + SUMS
               : (WARPS * (BUFFER_BYTES + MOST_SLOTS * 16) + B_SPLITS * (B_BYTES + B_STAGES * 16) + 127) / 128 * 128 +
                     number * SUMS;
}

// barrier_test reports whether the barrier's phase of this parity has ended.
__device__ __forceinline__ bool barrier_test(u32 barrier, u32 parity) {
    u32 r;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(r)
                 : "r"(barrier), "r"(parity)
                 : "memory");
    return r;
}

// Panel is the stage buffers through which one split's rows of B pass.
struct Panel {
    u32 at, full, empty; // addresses of the first stage, and of its barriers
    u32 stages, stage; // how many; bytes of one

    __device__ __forceinline__ Panel(const Params &p, u32 at_, u32 barriers, u32 number) {
        stage = p.steps * B_ROWS * COLS * 2;
        stages = min(B_BYTES / stage, B_STAGES);
        at = at_ + number * B_BYTES, full = barriers + number * B_STAGES * 16, empty = full + B_STAGES * 8;
    }
};

// produce: body of the producer warps of B. LANES lanes load the B of each split; `any` says whether the split has
// consumers in this CTA, `straight` whether one bulk copy can load a stage. (It tests barriers and sleeps, because
// waiting at them slows down all other warps.)
__device__ __forceinline__ void produce(const Panel &panel, const u16 *b, const Params &p, u32 split, u32 col, bool any,
                                        bool straight, u32 lane) {
    u32 first = FIRST_SEGMENT(p, split), count = any ? FIRST_SEGMENT(p, split + 1) - first : 0, rows = p.steps * B_ROWS,
        slot = 0, parity = 1, j = 0;
    u32 l = lane % LANES;
#ifdef B_VECTOR // B is one column: four lanes load 8 rows of each step
    u32 row = first * rows + l % 4 * 8, to = l % 4 * (COLS * 16);
    const u16 *from = b;
#else
    u32 c = l % TILES, row = first * rows + l / TILES, to = l / TILES * COLS * 2;
    bool in = col + 8 * c < p.ldb;
    const u16 *from = b + (in ? col + 8 * c : 0);
#endif
    while (__any_sync(~0u, j < count)) {
        bool go = j < count && barrier_test(panel.empty + 8 * slot, parity);
        if (go) {
            u32 at = panel.at + slot * panel.stage, full = panel.full + 8 * slot;
            if (straight) {
                if (l == 0) {
                    barrier_expect(full, panel.stage);
                    StageBuffer::bulk(at, b + (u64)(first + j) * rows * COLS, panel.stage, full);
                }
            } else {
#ifdef B_VECTOR
                for (u32 s = 0; s < p.steps; s++, row += STEP_COLS)
                    if (l < 4)
                        copy<16>(at + to + s * (STEP_COLS * COLS * 2), from + row,
                                 row < p.cols ? 2 * min(p.cols - row, 8) : 0);
#else
#pragma unroll 4
                for (u32 k = 0; k < rows; k += LANES / TILES, row += LANES / TILES)
                    copy<16>(at + to + k * COLS * 2 + swizzled(k + l / TILES, c),
                             from + (u64)min(row, p.cols - 1) * p.ldb, in && row < p.cols ? 16 : 0);
#endif
                asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(full) : "memory");
            }
            j++;
            if (++slot == panel.stages) slot = 0, parity ^= 1;
        }
        if (!__any_sync(~0u, go)) __nanosleep(20);
    }
}
