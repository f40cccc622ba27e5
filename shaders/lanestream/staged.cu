// Computes: C (rows × n) = alpha·A·B + beta·C, A (rows × cols) as lane streams of many rows, f16 or bf16, sums in f32,
// on compute capability 9.0. Layout Places multiplies on mma.m16n8k16, layout Pairs (PAIRS) on mma.sp.m16n8k32.
// Tile: as kernel.cu: a cluster computes (64·p.each × COLS), a consumer warp one stream.
// Data movement: B_PRODUCERS producer warps load B into shared memory for all consumer warps of a split. A stage has as
// many rows of B as a segment of a stream has columns. A_PRODUCERS producer warps load some of the streams
// (producer.cuh); the other consumer warps load their own. REMAINDER_WARPS warps add the COO remainder meanwhile.
// Bound by: instructions that expand the masks, then the bytes of A.
// Constants: ENTRY, ELEM (half.cuh), WARPS, CLUSTER, COLS (8, 16 or 32), BUFFER_BYTES, PAIRS, B_SPLITS, B_BYTES,
// B_STAGES, B_PRODUCERS, A_PRODUCERS, REMAINDER_WARPS.

#define B_ROWS STEP_COLS
// first_segment in 32 bits: there are fewer than 2^26 segments, and at most 32 splits.
#define FIRST_SEGMENT(p, split) ((p).segments * (split) / (p).splits)
#include "pairs.cuh"
#include "remainder.cuh"
#include "warp.cuh"
#include "producer.cuh"

// Staged provides the rows of B that producer warps load, as a source of Warp::multiply.
struct Staged {
    const Panel &panel;
    bool produced; // a producer warp loads the stream
    u32 from, stage = 0, full = 0; // the lane's row in stage 0; the next stage, and its barrier's parity

    __device__ __forceinline__ Staged(const Panel &panel, bool produced) : panel(panel), produced(produced) {}
    __device__ __forceinline__ void begin(u32 lane) { from = panel.at + Warp::lane_row(lane); }
    __device__ __forceinline__ void wait() const { barrier_wait(panel.full + 8 * stage, full); }
    template <int STEPS> __device__ __forceinline__ u32 at(u32) const { return from + stage * panel.stage; }
    template <int STEPS> __device__ __forceinline__ void done(Stream &stream, u32 slot, u32 mask_slot) {
        if (StageBuffer::elected()) barrier_arrive_here(panel.empty + 8 * stage);
        if (++stage == panel.stages) stage = 0, full ^= 1;
        done_with(stream, produced, slot, mask_slot);
    }
};

extern "C" __global__ void __launch_bounds__(32 * (WARPS + B_PRODUCERS + A_PRODUCERS + REMAINDER_WARPS), 1)
    __cluster_dims__(CLUSTER, 1, 1)
        ENTRY(const u32 *__restrict__ index_, const u32 *__restrict__ mask, const u16 *__restrict__ values,
              const u16 *__restrict__ b, const float *__restrict__ bias, void *__restrict__ c,
              const __grid_constant__ Params p) {
    extern __shared__ __align__(128) unsigned char smem[];
    u32 warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0), lane = threadIdx.x % 32, rank = blockIdx.x % CLUSTER,
        number = rank * WARPS + warp;
    u32 first = blockIdx.x / CLUSTER * p.each, split = number / p.each, group = first + number % p.each,
        col = blockIdx.y * COLS;
    u32 buffers = shared_address(smem), panels = buffers + WARPS * BUFFER_BYTES, barriers = panels + B_SPLITS * B_BYTES,
        own = barriers + B_SPLITS * B_STAGES * 16;
    u32 first_split = rank * WARPS / p.each;
    auto split_groups = [&](u32 q) { // the number of groups of rows whose split q is this CTA's
        u32 lo = max(q * p.each, rank * WARPS),
            hi = min(q * p.each + min(p.each, p.groups - first), rank * WARPS + WARPS);
        return q < p.splits && lo < hi ? hi - lo : 0;
    };
#ifdef B_VECTOR
    bool straight = false;
#else
    bool straight = COLS == 8 && p.ldb == 8 && p.cols % (p.steps * STEP_COLS) == 0;
#endif
    if (lane == 0) { // (One lane of each warp, and few barriers each, are fastest.)
        if (warp < WARPS)
            for (int i = 0; i < 2 * MOST_SLOTS; i++) barrier_init(own + (warp * 2 * MOST_SLOTS + i) * 8, 1);
        for (u32 i = warp; i < B_SPLITS * 2 * B_STAGES; i += WARPS + B_PRODUCERS + A_PRODUCERS + REMAINDER_WARPS) {
            u32 full = straight ? 1 : LANES, empty = max(split_groups(first_split + i / (2 * B_STAGES)), 1);
            barrier_init(barriers + 8 * i, i / B_STAGES % 2 ? empty : full);
        }
        barrier_fence();
    }
    __syncwarp();
    Index index(index_, p);
    // Remainder warps add the remainder meanwhile, if they can hold the sums of all rows.
    bool concurrent = CLUSTER * REMAINDER_WARPS * ASIDE_ROWS * Aside::TOGETHER >= p.each * GROUP_ROWS;
    bool streams = warp < WARPS && split < p.splits && group < p.groups;
    if (streams) {
        Warp w;
        Stream stream(index, mask, values, p, group, split, buffers + warp * BUFFER_BYTES,
                      own + warp * MOST_SLOTS * 16);
        Panel panel(p, panels, barriers, split - first_split);
        Staged source(panel, is_produced(warp));
        __syncthreads();
        if (!source.produced) stream.begin();
        if (p.steps == 4) w.multiply<4>(stream, source, lane);
        else if (p.steps == 2) w.multiply<2>(stream, source, lane);
        else w.multiply<1>(stream, source, lane);
        float *sums = (float *)(smem + warp * BUFFER_BYTES);
        w.write_sums(sums, lane);
        if (!concurrent) { // each split adds the remainder of some rows
            u32 share = (GROUP_ROWS + p.splits - 1) / p.splits, end = min(share * split + share, GROUP_ROWS);
            launches_before();
            for (u32 r = share * split; r < end; r += 2 * After::TOGETHER) {
                After remainder;
                remainder.add(index, values, b, p, group * GROUP_ROWS + r, After::TOGETHER,
                              min(group * GROUP_ROWS + end, p.rows), col, lane);
                remainder.write_sums<true>(sums + r * PITCH, After::TOGETHER, end - r, lane);
            }
        }
    } else if (warp >= WARPS + B_PRODUCERS && warp < WARPS + B_PRODUCERS + A_PRODUCERS) {
        u32 of = produced_stream(lane), n = rank * WARPS + of, q = n / p.each, g = first + n % p.each;
        bool any = of < WARPS && q < p.splits && g < p.groups;
        Stream stream(index, mask, values, p, any ? g : 0, any ? q : 0, buffers + of * BUFFER_BYTES,
                      own + of * MOST_SLOTS * 16);
        __syncthreads();
        produce_a(stream, any);
    } else {
        __syncthreads();
        if (warp >= WARPS && warp < WARPS + B_PRODUCERS) {
            launches_before();
            launches_after(); // the next launch may load its A from here on
            u32 which = (warp - WARPS) * 32 / LANES + lane / LANES;
            produce(Panel(p, panels, barriers, which), b, p, first_split + which, col,
                    split_groups(first_split + which) > 0, straight, lane);
        }
    }
    __syncwarp();
#if REMAINDER_WARPS > 0
    if (warp < WARPS + B_PRODUCERS + A_PRODUCERS) __syncthreads();
    else {
        Aside remainder;
        u32 unit = rank * REMAINDER_WARPS + warp - WARPS - B_PRODUCERS - A_PRODUCERS,
            apart = CLUSTER * REMAINDER_WARPS * Aside::TOGETHER;
        if (concurrent) {
            launches_before();
            remainder.add(index, values, b, p, first * GROUP_ROWS + unit * Aside::TOGETHER, apart,
                          min((first + p.each) * GROUP_ROWS, p.rows), col, lane);
        }
        __syncthreads(); // the stage buffers are free: sums go there
        if (concurrent)
            remainder.write_sums<false>((float *)(smem + remainder_sums(warp - WARPS - B_PRODUCERS - A_PRODUCERS)),
                                        Aside::TOGETHER, ~0u, lane);
        __syncwarp();
    }
#endif
    cluster_sync();
    RowEntries entries{index, mask, values, b, &p};
    Output out{{c, bias}, p};
    launches_before();
    for (u32 i = warp < WARPS ? rank * 32 * WARPS + threadIdx.x : ~0u; i < p.each * GROUP_ROWS * (COLS / 4);
         i += CLUSTER * 32 * WARPS) {
        Quad q(i);
        u32 of = q.of, r = q.r, at = q.at, row = (first + of) * GROUP_ROWS + r;
        if (row >= p.rows && !Quad::ROWS) break;
        if (row >= p.rows || col + at >= p.n) continue;
        float4 x = added(smem, of, r, at, p);
        if (concurrent) {
            u32 remainder_row = of * GROUP_ROWS + r,
                unit = remainder_row / Aside::TOGETHER % (CLUSTER * max(REMAINDER_WARPS, 1)),
                i = remainder_row / Aside::TOGETHER / (CLUSTER * max(REMAINDER_WARPS, 1));
            u32 from = remainder_sums(unit % max(REMAINDER_WARPS, 1)) +
                       ((i * Aside::TOGETHER + r % Aside::TOGETHER) * PITCH + at) * 4;
            float4 y = cluster_load4(shared_address(smem) + from, unit / max(REMAINDER_WARPS, 1));
            x.x += y.x, x.y += y.y, x.z += y.z, x.w += y.w;
        }
        out.store(row, col + at, x, entries);
    }
    __syncwarp();
    cluster_exit(); // no CTA exits while the other reads its sums
}
