// Computes: C (rows × n) = alpha·A·B + beta·C, A (rows × cols) as lane streams (package formats/lanestream), f16 or
// bf16, sums in f32, on mma.m16n8k16.
// Tile: a cluster of CLUSTER CTAs (1 before compute capability 9.0) computes (64·p.each × COLS), COLS 8, 16 or 32. A
// group of 64 rows is split along K into p.splits streams, a warp each; the warps of a split are neighbours and share
// B's rows in L1. Partial sums are added in order through (distributed) shared memory.
// Data movement: a warp loads its stream into its own stage buffer of BUFFER_BYTES bytes, by cp.async or, on compute
// capability 9.0 (HOPPER), by bulk copies. A bit of the mask says whether half a register of operand A takes the next
// value of its chain. A taken value is one predicated 16-bit load, from a bank that no other lane uses. B goes from L1
// straight to registers.
// Bound by: the bytes of A in memory, then instructions that expand the masks.
// Constants: ENTRY, ELEM (half.cuh), WARPS, CLUSTER, COLS, BUFFER_BYTES, HOPPER.

#include "tiles.cuh"

#define HALVES (TILES == 1 ? 2 : 1)

// The lane's elements of B for one word of the mask (16 columns of A). Lane 4g + q has columns TILES·g to TILES·g +
// TILES - 1 of the CTA's, so that column g of tile i is the CTA's column TILES·g + i. It has rows q, q + 4, q + 8 and q
// + 12, so that the four lanes of equal g load four neighbouring rows.
struct Columns {
    u32 x[4][(TILES + 1) / 2];

    __device__ __forceinline__ void load(int i, const unsigned char *from) {
        if constexpr (TILES == 1) asm volatile("ld.global.nc.u16 %0, [%1];" : "=r"(x[i][0]) : "l"(from));
        else if constexpr (TILES == 2) asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(x[i][0]) : "l"(from));
        else asm volatile("ld.global.nc.v2.u32 {%0, %1}, [%2];" : "=r"(x[i][0]), "=r"(x[i][TILES / 4]) : "l"(from));
    }
    // operand returns register r of the fragment of B for tile t. With one tile (TILES 1) each half of a register is a
    // register of its own, and h says which half.
    __device__ __forceinline__ u32 operand(int r, int t, int h) const {
        if (TILES == 1) return x[2 * r + h][0];
        return __byte_perm(x[2 * r][t / 2], x[2 * r + 1][t / 2], t % 2 ? 0x7632 : 0x5410);
    }
};

// Reader reads the lane's elements of B, 16 rows at a time.
struct Reader {
    const unsigned char *b; // the lane's columns in row 0
    u32 row, last, pitch; // the lane's first row of the next 16; the last row of B; bytes of a row

    __device__ __forceinline__ Reader(const u16 *b_, const Params &p, u32 first, u32 col, u32 lane)
        : row(first + lane % 4), last(p.cols - 1), pitch(2 * p.ldb) {
        col += TILES * (lane / 4);
        b = (const unsigned char *)(b_ + (col < p.ldb ? col : 0));
    }
    // next reads the next 16 rows. Rows past the last row of B are read as the last one: A has zeros there.
    __device__ __forceinline__ void next(Columns &c) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const unsigned char *from;
            asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(from) : "r"(min(row + 4 * i, last)), "r"(pitch), "l"(b));
            c.load(i, from);
        }
        row += 16;
    }
};

// Warp multiplies one stream.
struct Warp {
    float acc[4][HALVES][TILES][4]; // sums of 16 rows each
    u32 next[2]; // addresses in shared memory: the next value of each of the lane's two chains

    // add multiplies the i-th 16 rows of A: x[r] is the lower half of register r, x[4 + r] the upper one.
    __device__ __forceinline__ void add(int i, const u32 (&x)[8], const Columns &b) {
        if constexpr (HALVES == 2) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
                u32 a[4] = {x[4 * h], x[4 * h + 1], x[4 * h + 2], x[4 * h + 3]};
                mma<ELEM>(acc[i][h][0], a, b.operand(0, 0, h), b.operand(1, 0, h));
            }
        } else {
            u32 a[4];
#pragma unroll
            for (int r = 0; r < 4; r++) a[r] = x[4 + r] * 65536 + x[r];
#pragma unroll
            for (int t = 0; t < TILES; t++) mma<ELEM>(acc[i][0][t], a, b.operand(0, t, 0), b.operand(1, t, 0));
        }
    }

    // word multiplies 16 columns of A, whose bits are in the mask word. The buffer's rows of values end at `end`; from
    // there a chain goes back by `wrap` bytes.
    __device__ __forceinline__ void word(u32 mask, u32 end, u32 wrap, const Columns &b) {
        u32 x[2][8];
        take<0>(mask, next, x[0]);
        take<1>(mask, next, x[1]);
        add(0, x[0], b);
        take<2>(mask, next, x[0]);
        add(1, x[1], b);
        take<3>(mask, next, x[1]);
        add(2, x[0], b);
        add(3, x[1], b);
#pragma unroll
        for (int h = 0; h < 2; h++)
            if (next[h] >= end) next[h] -= wrap;
    }

    // multiply does the whole stream. `first` is the stream's first segment, col the CTA's first column.
    __device__ __forceinline__ void multiply(const StageBuffer &buffer, const u16 *b, const Params &p, u32 first,
                                             u32 col, u32 lane) {
#pragma unroll
        for (int i = 0; i < 4 * HALVES * TILES * 4; i++) (&acc[0][0][0][0])[i] = 0;
        if (buffer.count == 0) return;
        next[0] = buffer.at + 4 * lane, next[1] = next[0] + 2;
        for (u32 j = 0; j < min(buffer.slots, buffer.total); j++) buffer.fetch(j, j, lane);
        Columns even, odd;
        Reader reader(b, p, first * p.steps * STEP_COLS, col, lane);
        reader.next(even);
        reader.next(odd);
        u32 wrap = buffer.slots * buffer.segment_rows * ROW_BYTES, end = buffer.at + wrap, slot = 0;
#ifdef HOPPER
        u32 arriving = 0, parity = 0; // the slot of the next segment to wait for, and its barrier's parity
        auto wait = [&] {
            barrier_wait(buffer.barriers + 8 * arriving, parity);
            if (++arriving == buffer.slots) arriving = 0, parity ^= 1;
        };
        for (u32 j = 0; j < min(p.window - 1, buffer.total); j++) wait();
#endif
#pragma unroll 1
        for (u32 j = 0; j < buffer.count; j++) {
#ifdef HOPPER
            if (j + p.window <= buffer.total) wait();
#else
            wait(buffer.total - j > buffer.slots ? buffer.slots - p.window : 0);
            __syncwarp();
#endif
            u32 bits = buffer.masks + slot * buffer.mask_bytes + 8 * lane;
#pragma unroll 1
            for (u32 s = 0; s < p.steps; s++, bits += STEP_BYTES) {
                uint2 m = shared_words(bits);
                word(m.x, end, wrap, even);
                reader.next(even);
                word(m.y, end, wrap, odd);
                reader.next(odd);
            }
            __syncwarp();
            if (j + buffer.slots < buffer.total) buffer.fetch(j + buffer.slots, slot, lane);
            if (++slot == buffer.slots) slot = 0;
        }
        __syncwarp();
    }

#ifndef HOPPER
    // wait waits until at most `pending` segments are in flight.
    static __device__ __forceinline__ void wait(u32 pending) {
        switch (pending) {
        case 0: copy_wait<0>(); break;
        case 1: copy_wait<1>(); break;
        case 2: copy_wait<2>(); break;
        case 3: copy_wait<3>(); break;
        default: copy_wait<4>(); break;
        }
    }
#endif

    // write_sums writes the sums to shared memory.
    __device__ __forceinline__ void write_sums(float *sums, u32 lane) const {
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int t = 0; t < TILES; t++)
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    float x = acc[i][0][t][e];
                    if (HALVES == 2) x += acc[i][HALVES - 1][t][e];
                    sums[(16 * i + 8 * (e / 2) + lane / 4) * PITCH + TILES * (2 * (lane % 4) + e % 2) + t] = x;
                }
        __syncwarp();
    }
};

// add_remainder adds to `sums` the entries of a group's COO remainder that are this split's: every p.splits-th of a
// row. TILES lanes share a row, each with 8 columns.
__device__ __forceinline__ void add_remainder(float *sums, const Index &index, const u16 *values, const u16 *b,
                                              const Params &p, u32 group, u32 split, u32 col, u32 lane) {
    const int AT_ONCE = 4;
    u32 at = lane % TILES * 8, from = col + at < p.ldb ? col + at : 0;
    const u32 *cols = index.remainder_cols(p);
    const u16 *remainder = index.remainder_values(values);
#pragma unroll 1
    for (u32 r = lane / TILES; r < GROUP_ROWS; r += 32 / TILES) {
        u32 row = group * GROUP_ROWS + r;
        if (row >= p.rows) break;
        u32 end = index.remainder_at(row + 1);
        float x[8] = {};
        for (u32 i = index.remainder_at(row) + split; i < end; i += AT_ONCE * p.splits) {
            uint4 y[AT_ONCE];
            float v[AT_ONCE];
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) {
                u32 e = i + k * p.splits;
                v[k] = 0, y[k] = make_uint4(0, 0, 0, 0);
                if (e < end)
                    v[k] = widen_lo<ELEM>(remainder[e]), y[k] = *(const uint4 *)(b + (u64)cols[e] * p.ldb + from);
            }
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) {
                u32 words[4] = {y[k].x, y[k].y, y[k].z, y[k].w};
#pragma unroll
                for (int j = 0; j < 4; j++)
                    x[2 * j] = fmaf(v[k], widen_lo<ELEM>(words[j]), x[2 * j]),
                          x[2 * j + 1] = fmaf(v[k], widen_hi<ELEM>(words[j]), x[2 * j + 1]);
            }
        }
#pragma unroll
        for (int j = 0; j < 8; j++) sums[r * PITCH + at + j] += x[j];
    }
}

#ifdef HOPPER
extern "C" __global__ void __launch_bounds__(32 * WARPS, 1) __cluster_dims__(CLUSTER, 1, 1)
#else
extern "C" __global__ void __launch_bounds__(32 * WARPS, 1)
#endif
    ENTRY(const u32 *__restrict__ index_, const u32 *__restrict__ mask, const u16 *__restrict__ values,
          const u16 *__restrict__ b, const float *__restrict__ bias, void *__restrict__ c,
          const __grid_constant__ Params p) {
    extern __shared__ __align__(128) unsigned char smem[];
    u32 warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0), lane = threadIdx.x % 32, rank = blockIdx.x % CLUSTER,
        stream = rank * WARPS + warp;
    u32 first = blockIdx.x / CLUSTER * p.each, split = stream / p.each, group = first + stream % p.each,
        col = blockIdx.y * COLS;
    u32 buffer = shared_address(smem) + warp * BUFFER_BYTES,
        barriers = shared_address(smem) + WARPS * BUFFER_BYTES + warp * MOST_SLOTS * 8;
#ifdef HOPPER
    if (lane == 0) {
        for (int i = 0; i < MOST_SLOTS; i++) barrier_init(barriers + 8 * i, 1);
        barrier_fence();
    }
    __syncwarp();
#endif
    Index index(index_, p);
    if (split < p.splits && group < p.groups) {
        Warp w;
        w.multiply(StageBuffer(index, mask, values, p, group, split, buffer, barriers), b, p, first_segment(p, split),
                   col, lane);
        float *sums = (float *)(smem + warp * BUFFER_BYTES);
        w.write_sums(sums, lane);
        add_remainder(sums, index, values, b, p, group, split, col, lane);
    }
    __syncwarp();
#ifdef HOPPER
    cluster_sync();
#else
    __syncthreads();
#endif
    Entries entries{index, mask, values, b, &p};
    Out<Params> out({c, bias}, p);
    for (u32 i = rank * 32 * WARPS + threadIdx.x; i < p.each * GROUP_ROWS * (COLS / 4); i += CLUSTER * 32 * WARPS) {
        u32 of = i / (GROUP_ROWS * (COLS / 4)), r = i / (COLS / 4) % GROUP_ROWS, at = i % (COLS / 4) * 4,
            row = (first + of) * GROUP_ROWS + r;
        if (row >= p.rows) break;
        if (col + at >= p.n) continue;
        float4 x = make_float4(0, 0, 0, 0);
        add_splits(x, smem, of, r, at, p);
        out.store(row, col + at, x, entries);
    }
#ifdef HOPPER
    __syncwarp();
    cluster_sync(); // no CTA exits while the other reads its sums
#endif
}
