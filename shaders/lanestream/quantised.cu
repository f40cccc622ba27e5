// Computes: C (rows × n) = alpha·A·B + beta·C, A (rows × cols) as lane streams of 8-bit codes with scales, B of f16 or
// bf16, sums in f32, on mma.m16n8k16 of compute capability 9.0.
// Tile: as staged.cu: a cluster computes (64·p.each × COLS), COLS 8 or 16, a consumer warp one stream. SCALE_COLS
// columns of A have one scale: their partial sums are multiplied by it and added to totals.
// Data movement: as staged.cu. A value of the stream is a pair of codes of two neighbouring columns: one 16-bit load
// makes a whole register of operand A. Producer warps load B and some of the streams (producer.cuh); REMAINDER_WARPS
// warps add the COO remainder meanwhile.
// Bound by: instructions that expand masks and codes, then the bytes of A.
// Constants: ENTRY, ELEM (half.cuh), QUANT (quantised.cuh), WARPS, CLUSTER, COLS, BUFFER_BYTES, B_SPLITS, B_BYTES,
// B_STAGES, B_PRODUCERS, A_PRODUCERS, REMAINDER_WARPS.

#define MASK_BYTES 256 // of a step's mask
#define REPEATED (MIRROR * ROW_BYTES) // of the buffer
#define LATE 0
#define B_ROWS 64
#define FIRST_SEGMENT first_segment
#include "producer.cuh"
#include "../include/quantised.cuh"

#define SCALE_STEPS (SCALE_COLS / B_ROWS)

// Scales finds the scales of A. Each group of rows has 64 for each SCALE_COLS columns; those of rows r, r + 8, r + 16
// and so on are neighbours.
struct Scales {
    const float *at;
    u32 groups; // of SCALE_COLS columns

    __device__ __forceinline__ Scales(const u32 *index, const Params &p)
        : at((const float *)index), groups((p.cols + SCALE_COLS - 1) / SCALE_COLS) {}
    // block returns the scales of a group of rows and the cols-th group of columns.
    __device__ __forceinline__ const float *block(u32 group, u32 cols) const {
        return at + ((u64)group * groups + cols) * GROUP_ROWS;
    }
    // of returns an element's scale.
    __device__ __forceinline__ float of(u32 row, u32 col) const {
        return __ldg(block(row / GROUP_ROWS, col / SCALE_COLS) + row % 8 * 8 + row % GROUP_ROWS / 8);
    }
    // after returns what follows the scales in `index`.
    __device__ __forceinline__ const u32 *after(const Params &p) const { return (const u32 *)block(p.groups, 0); }
};

// Warp multiplies one stream.
struct Warp {
    float acc[4][TILES][4]; // sums of 16 rows each over the columns of the current scale, not yet multiplied by it
    float total[4][TILES][4]; // sums over the columns before these
    float scale[8]; // of the lane's rows
    u32 next[2]; // offsets in the buffer of the next values of the lane's chains

    // load_scales loads the scales of the lane's rows and the cols-th group of columns, if there is one.
    __device__ __forceinline__ void load_scales(const Scales &scales, u32 group, u32 cols, u32 lane) {
        const float4 *from = (const float4 *)(scales.block(group, min(cols, scales.groups - 1)) + lane / 4 * 8);
        *(float4 *)scale = __ldg(from), *(float4 *)(scale + 4) = __ldg(from + 1);
        if (UNIT != 1)
#pragma unroll
            for (int i = 0; i < 8; i++) scale[i] *= 1 / UNIT;
    }
    // settle adds the sums of the current scale's columns to the totals.
    __device__ __forceinline__ void settle() {
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int t = 0; t < TILES; t++)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    total[i][t][e] = fmaf(scale[2 * i + e / 2], acc[i][t][e], total[i][t][e]), acc[i][t][e] = 0;
    }

    // word multiplies 32 columns of A by b, which has four registers for each tile of columns. The stream's values are
    // pairs of codes: bit 2r + h of a byte of the mask says that register r takes the next pair of chain h, which has
    // columns 8h to 8h + 7 and 8h + 16 to 8h + 23.
    __device__ __forceinline__ void word(u32 mask, u32 base, u32 wrap, const u32 (&b)[TILES][4]) {
        take_word<ZERO_CODE * 0x101>(*this, mask, base, wrap, b);
    }
    // add multiplies the i-th 16 rows of A.
    __device__ __forceinline__ void add(int i, const u32 (&x)[8], const u32 (&b)[TILES][4]) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            u32 a[4];
#pragma unroll
            for (int r = 0; r < 4; r++) a[r] = elements<0>(x[4 * h + r]);
#pragma unroll
            for (int t = 0; t < TILES; t++) mma<ELEM>(acc[i][t], a, b[t][2 * h], b[t][2 * h + 1]);
        }
    }

    // lane_row returns where a stage of B has the row whose address the lane gives to ldmatrix: in each 32 rows the
    // four matrices begin at rows 0, 16, 8 and 24.
    static __device__ __forceinline__ u32 lane_row(u32 lane) {
        u32 r = lane % 8 + (lane & 8) * 2 + (lane & 16) / 2;
        return r * COLS * 2 + swizzled(r, 0);
    }

    // multiply does the whole stream, with segments of STEPS steps.
    template <int STEPS>
    __device__ __forceinline__ void multiply(Stream &stream, const Panel &panel, const Scales &scales, const Params &p,
                                             u32 group, u32 first, bool produced, u32 lane) {
#pragma unroll
        for (int i = 0; i < 4 * TILES * 4; i++) (&acc[0][0][0])[i] = 0;
#pragma unroll
        for (int i = 0; i < 4 * TILES * 4; i++) (&total[0][0][0])[i] = 0;
        if (stream.count == 0) return;
        if (!produced) stream.begin();
        u32 wrap = stream.slots * stream.segment_bytes, slot = 0, from = panel.at + lane_row(lane), stage = 0, full = 0;
        u32 step = first * STEPS; // of the group's columns
        load_scales(scales, group, step / SCALE_STEPS, lane);
        next[0] = next[1] = 4 * lane;
        u32 arriving = 0, parity = 0; // the slot of the next segment to wait for, and its barrier's parity
        auto wait = [&] {
            barrier_wait(stream.barriers + 8 * arriving, parity);
            if (++arriving == stream.slots) arriving = 0, parity ^= 1;
        };
        for (u32 j = 0; j < stream.lookahead; j++) wait();
#pragma unroll 1
        for (u32 j = 0; j < stream.count; j++) {
            wait();
            barrier_wait(panel.full + 8 * stage, full);
            u32 bits = stream.masks + slot * stream.mask_bytes + 8 * lane, rows = from + stage * panel.stage;
#pragma unroll
            for (int s = 0; s < STEPS; s++) {
                uint2 words = shared_words(bits + s * MASK_BYTES);
#pragma unroll
                for (int w = 0; w < 2; w++, rows += 32 * COLS * 2) {
                    u32 y[TILES][4];
#pragma unroll
                    for (int t = 0; t < TILES; t++) ldmatrix_trans(y[t], rows ^ (t * 16));
                    word(w ? words.y : words.x, stream.at, wrap, y);
                }
            }
            __syncwarp();
            if (StageBuffer::elected()) barrier_arrive_here(panel.empty + 8 * stage);
            if (++stage == panel.stages) stage = 0, full ^= 1;
            done_with(stream, produced, slot, slot);
            if (++slot == stream.slots) slot = 0;
            step += STEPS;
            if (step % SCALE_STEPS == 0) settle(), load_scales(scales, group, step / SCALE_STEPS, lane);
        }
        if (step % SCALE_STEPS != 0) settle();
        __syncwarp();
    }

    // write_sums writes the sums to shared memory.
    __device__ __forceinline__ void write_sums(float *sums, u32 lane) const {
        write_sum_pairs(sums, lane,
                        [&](int i, int t, int h) { return make_float2(total[i][t][2 * h], total[i][t][2 * h + 1]); });
    }
};

// Remainder is a warp's sums of its share of a group's COO remainder: every of-th entry of a row. Four lanes work on a
// row: TILES lanes, each with 8 columns, times SPLIT lanes that take entries alternately. 8 rows are done at a time.
struct Remainder {
    static const int SPLIT = 4 / TILES, ROUNDS = GROUP_ROWS / 8, MINE = 8 / SPLIT, AT_ONCE = 8;
    float x[ROUNDS][MINE]; // of the 8 columns that SPLIT lanes share, the MINE that this lane keeps

    __device__ __forceinline__ void add(const Index &index, const Scales &scales, const u16 *values, const u16 *b,
                                        const Params &p, u32 group, u32 share, u32 of, u32 col, u32 lane) {
        u32 at = lane % TILES * 8, step = of * SPLIT;
        const u16 *from = b + (col + at < p.ldb ? col + at : 0);
        const unsigned char *remainder = (const unsigned char *)index.remainder_values(values);
        const u32 *cols = index.remainder_cols(p);
#pragma unroll
        for (int i = 0; i < ROUNDS; i++) {
            u32 row = group * GROUP_ROWS + 8 * i + lane / 4;
            float sum[8] = {};
            u32 e = 0, end = 0;
            if (row < p.rows)
                e = index.remainder_at(row) + share + lane / TILES % SPLIT * of, end = index.remainder_at(row + 1);
            for (; e < end; e += AT_ONCE * step) {
                u32 k[AT_ONCE];
                float f[AT_ONCE];
                uint4 y[AT_ONCE];
#pragma unroll
                for (int n = 0; n < AT_ONCE; n++) {
                    u32 there = min(e + n * step, end - 1);
                    k[n] = __ldg(cols + there),
                    f[n] = e + n * step < end ? level(__ldg(remainder + there)) * scales.of(row, k[n]) : 0;
                }
#pragma unroll
                for (int n = 0; n < AT_ONCE; n++) y[n] = __ldg((const uint4 *)(from + (u64)k[n] * p.ldb));
#pragma unroll
                for (int n = 0; n < AT_ONCE; n++) {
                    u32 words[4] = {y[n].x, y[n].y, y[n].z, y[n].w};
#pragma unroll
                    for (int j = 0; j < 4; j++)
                        sum[2 * j] = fmaf(f[n], widen_lo<ELEM>(words[j]), sum[2 * j]),
                                sum[2 * j + 1] = fmaf(f[n], widen_hi<ELEM>(words[j]), sum[2 * j + 1]);
                }
            }
            reduce(sum, x[i], lane);
        }
    }
    // reduce adds the sums of SPLIT lanes; each lane keeps some of the columns.
    static __device__ __forceinline__ void reduce(float (&sum)[8], float (&x)[MINE], u32 lane) {
        __syncwarp();
        int n = 4;
#pragma unroll
        for (int apart = 2; apart >= TILES && apart >= 1; apart /= 2) {
            bool upper = lane & apart;
#pragma unroll
            for (int j = 0; j < 4; j++)
                if (j < n) {
                    float other = __shfl_xor_sync(~0u, upper ? sum[j] : sum[j + n], apart);
                    sum[j] = (upper ? sum[j + n] : sum[j]) + other;
                }
            n /= 2;
        }
#pragma unroll
        for (int j = 0; j < MINE; j++) x[j] = sum[j];
    }
    // write_sums writes the sums, or adds them to those that are there.
    template <bool ADD> __device__ __forceinline__ void write_sums(float *sums, u32 lane) const {
        u32 first = lane % TILES * 8;
        if (SPLIT == 2) first += lane / 2 % 2 * 4;
        if (SPLIT == 4) first += lane / 2 % 2 * 4 + lane % 2 * 2;
#pragma unroll
        for (int i = 0; i < ROUNDS; i++)
#pragma unroll
            for (int j = 0; j < MINE; j++) {
                float *to = sums + (8 * i + lane / 4) * PITCH + first + j;
                *to = ADD ? *to + x[i][j] : x[i][j];
            }
    }
};

// QuantisedEntries computes an output again from its row's entries alone (finite repair). Two bits of Stored say of
// each pair which of its codes are entries.
struct QuantisedEntries {
    Index index;
    Scales scales;
    const u32 *mask;
    const u16 *values, *b;
    const Params *p;

    __device__ __forceinline__ void add(Special &s, u32 row, u32 code, u64 k, u32 col) const {
        s.add(level(code) * scales.of(row, (u32)k), widen_lo<ELEM>(b[k * p->ldb + col]));
    }
    __device__ __forceinline__ float operator()(u32 row, u32 col) const {
        Special s;
        u32 r = row % GROUP_ROWS, group = row / GROUP_ROWS,
            mine = (r >> 3 & 1) | r >> 4 << 2; // the row's positions, without their bit 1
        const u32 *stored = index.remainder_cols(*p) + index.remainder_at(p->rows);
        for (u32 split = 0; split < p->splits; split++)
            for (u32 chain = 8 * (r % 8); chain < 8 * (r % 8) + 8; chain++) {
                u64 at = (u64)index.row((u64)group * p->splits + split) * 64 + chain;
                for (u32 step = first_segment(*p, split) * p->steps; step < first_segment(*p, split + 1) * p->steps;
                     step++)
                    for (u32 w = 0; w < 2; w++) {
                        u32 word =
                            mask[((u64)group * p->segments * p->steps + step) * 64 + chain / 2 * 2 + w] >> (chain & 1);
                        for (u32 i = 0; i < 16; i++) {
                            if (!(word >> (2 * i) & 1)) continue;
                            u64 k = 2 * ((u64)step * STEP_COLS + 16 * w + 8 * (i >> 1 & 1) + 4 * (chain & 1) +
                                         chain / 2 % 4);
                            u32 has = (i & 13) == mine ? stored[at >> 4] >> (2 * (at & 15)) : 0;
                            if (has & 1) add(s, row, values[at] & 255, k, col);
                            if (has & 2) add(s, row, values[at] >> 8, k + 1, col);
                            at += 64;
                        }
                    }
            }
        const unsigned char *remainder = (const unsigned char *)index.remainder_values(values);
        for (u32 i = index.remainder_at(row); i < index.remainder_at(row + 1); i++)
            add(s, row, remainder[i], index.remainder_cols(*p)[i], col);
        return s.result();
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
    if (warp >= WARPS && warp < WARPS + B_PRODUCERS) {
        u32 which = (warp - WARPS) * 32 / LANES + lane / LANES, at = first_split + which;
        u32 lo = max(at * p.each, rank * WARPS),
            hi = min(at * p.each + min(p.each, p.groups - first), rank * WARPS + WARPS);
        bool any = at < p.splits && lo < hi, straight = COLS == 8 && p.ldb == 8 && p.cols % (p.steps * B_ROWS) == 0;
        Panel panel(p, panels, barriers, which);
        if (lane % LANES == 0)
            for (int i = 0; i < B_STAGES; i++)
                barrier_init(panel.full + 8 * i, straight ? 1 : LANES),
                    barrier_init(panel.empty + 8 * i, any ? hi - lo : 1);
        barrier_fence();
        __syncthreads();
        launches_before();
        launches_after(); // the next launch may load its A from here on
        produce(panel, b, p, at, col, any, straight, lane);
    } else {
        if (warp < WARPS && lane == 0) {
            for (int i = 0; i < 2 * MOST_SLOTS; i++) barrier_init(own + (warp * 2 * MOST_SLOTS + i) * 8, 1);
            barrier_fence();
        }
        __syncthreads();
    }
    Scales scales(index_, p);
    Index index(scales.after(p), p);
    bool producing = QUANT == S8 || p.steps > 1; // e4m3's segments of one step take less time than the producer needs
    u32 shares = CLUSTER * REMAINDER_WARPS / p.each; // remainder warps of a group
    bool concurrent = shares > 0; // remainder warps add the remainder meanwhile
    if (warp < WARPS && split < p.splits && group < p.groups) {
        Warp w;
        Stream stream(index, mask, values, p, group, split, buffers + warp * BUFFER_BYTES,
                      own + warp * MOST_SLOTS * 16);
        Panel panel(p, panels, barriers, split - first_split);
        if (p.steps == 2)
            w.multiply<2>(stream, panel, scales, p, group, first_segment(p, split), producing && is_produced(warp),
                          lane);
        else
            w.multiply<1>(stream, panel, scales, p, group, first_segment(p, split), producing && is_produced(warp),
                          lane);
        float *sums = (float *)(smem + warp * BUFFER_BYTES);
        w.write_sums(sums, lane);
        if (!concurrent) {
            launches_before();
            Remainder remainder;
            remainder.add(index, scales, values, b, p, group, split, p.splits, col, lane);
            remainder.write_sums<true>(sums, lane);
        }
    } else if (A_PRODUCERS > 0 && warp >= WARPS + B_PRODUCERS && warp < WARPS + B_PRODUCERS + A_PRODUCERS) {
        u32 of = produced_stream(lane), n = rank * WARPS + of, q = n / p.each, g = first + n % p.each;
        bool any = producing && of < WARPS && q < p.splits && g < p.groups;
        Stream stream(index, mask, values, p, any ? g : 0, any ? q : 0, buffers + of * BUFFER_BYTES,
                      own + of * MOST_SLOTS * 16);
        produce_a(stream, any);
    }
#if REMAINDER_WARPS > 0
    __syncwarp();
    Remainder remainder;
    u32 unit = rank * REMAINDER_WARPS + warp - WARPS - B_PRODUCERS - A_PRODUCERS;
    bool aside = concurrent && warp >= WARPS + B_PRODUCERS + A_PRODUCERS && unit < p.each * shares &&
                 first + unit / shares < p.groups;
    if (aside) {
        launches_before();
        remainder.add(index, scales, values, b, p, first + unit / shares, unit % shares, shares, col, lane);
    }
    __syncthreads(); // the stage buffers are free: sums go there
    if (aside)
        remainder.write_sums<false>((float *)(smem + remainder_sums(warp - WARPS - B_PRODUCERS - A_PRODUCERS)), lane);
#endif
    __syncwarp();
    cluster_sync();
    QuantisedEntries entries{index, scales, mask, values, b, &p};
    Out<Params> out({c, bias}, p);
    launches_before();
    for (u32 i = warp < WARPS ? rank * 32 * WARPS + threadIdx.x : ~0u; i < p.each * GROUP_ROWS * (COLS / 4);
         i += CLUSTER * 32 * WARPS) {
        u32 of = i / (GROUP_ROWS * (COLS / 4)), r = i / (COLS / 4) % GROUP_ROWS, at = i % (COLS / 4) * 4,
            row = (first + of) * GROUP_ROWS + r;
        if (row >= p.rows) break;
        if (col + at >= p.n) continue;
        float4 x = added(smem, of, r, at, p);
        if (concurrent)
            for (u32 q = of * shares; q < of * shares + shares; q++) {
                float4 y = cluster_load4(shared_address(smem) + remainder_sums(q % max(REMAINDER_WARPS, 1)) +
                                             (r * PITCH + at) * 4,
                                         q / max(REMAINDER_WARPS, 1));
                x.x += y.x, x.y += y.y, x.z += y.z, x.w += y.w;
            }
        out.store(row, col + at, x, entries);
    }
    __syncwarp();
    cluster_sync(); // no CTA exits while the other reads its sums
}
