// Computes: C (rows × n) = alpha·A·B + beta·C, A (rows × cols) as lane streams, f32 on CUDA cores: scalar.comp for
// CUDA.
// Tile: a CTA computes (64·p.each × 64). It has TEAMS teams of two warps. Each team takes a stream of a group, or every
// n-th stream if the group has more than its teams. A thread computes (16 × 4). If C has fewer columns, threads with
// the same outputs divide the 16 columns of A among themselves (slices). Partial sums of slices and streams are added
// in order at the end.
// Data movement: 16 columns of A at a time are expanded to a dense tile in shared memory; each thread of a team takes
// the values of one chain. Rows of B come straight from memory.
// Bound by: FMA.
// Constants: ENTRY, TEAMS.

#include "params.h"
#include "../include/result.cuh"

#define GROUP_ROWS 64
#define STEP_COLS 32
#define CHAINS 64
#define ROWS 16 // of a thread
#define QUADS 16 // of four columns: the tile's columns of C

// Streams finds the arrays in `index` (package formats/lanestream).
struct Streams {
    const u32 *words, *mask;
    const float *values;
    const Params &p;

    __device__ __forceinline__ u64 count() const { return (u64)p.groups * p.splits; }
    __device__ __forceinline__ u64 value(u32 group, u32 split) const {
        return (u64)words[(u64)group * p.splits + split] * CHAINS;
    }
    __device__ __forceinline__ const u32 *remainder_ptr() const { return words + 2 * count() + 1; }
    __device__ __forceinline__ const u32 *remainder_cols() const { return remainder_ptr() + p.rows + 1; }
    __device__ __forceinline__ const float *remainder() const { return values + (u64)words[count()] * CHAINS; }
    __device__ __forceinline__ bool stored(u64 value) const {
        return remainder_cols()[remainder_ptr()[p.rows] + (value >> 5)] >> (value & 31) & 1;
    }
    __device__ __forceinline__ u32 first_step(u32 split) const {
        return (u32)((u64)p.segments * split / p.splits) * p.steps;
    }
    // word returns the positions of a chain's word in a step, at even bits.
    __device__ __forceinline__ u32 word(u32 group, u32 step, u32 chain, u32 w) const {
        return mask[((u64)group * p.segments * p.steps + step) * 64 + chain / 2 * 2 + w] >> (chain & 1);
    }
};

// Entries computes an output again from its row's entries alone: the finite repair.
struct Entries {
    Streams a;
    const float *b;

    __device__ __forceinline__ float operator()(u32 row, u32 col) const {
        Special s;
        u32 r = row % GROUP_ROWS, group = row / GROUP_ROWS,
            mine = (r >> 3 & 1) | r >> 4 << 2; // the row's positions, without their bit 1
        for (u32 split = 0; split < a.p.splits; split++)
            for (u32 chain = 8 * (r % 8); chain < 8 * (r % 8) + 8; chain++) {
                u64 at = a.value(group, split) + chain;
                for (u32 step = a.first_step(split); step < a.first_step(split + 1); step++)
                    for (u32 w = 0; w < 2; w++) {
                        u32 word = a.word(group, step, chain, w);
                        for (u32 i = 0; i < 16; i++) {
                            if (!(word >> (2 * i) & 1)) continue;
                            u64 k = (u64)step * STEP_COLS + 16 * w + 8 * (i >> 1 & 1) + 4 * (chain & 1) + chain / 2 % 4;
                            if ((i & 13) == mine && a.stored(at)) s.add(a.values[at], b[k * a.p.ldb + col]);
                            at += CHAINS;
                        }
                    }
            }
        for (u32 i = a.remainder_ptr()[row]; i < a.remainder_ptr()[row + 1]; i++)
            s.add(a.remainder()[i], b[(u64)a.remainder_cols()[i] * a.p.ldb + col]);
        return s.result();
    }
};

__device__ __forceinline__ void add(float4 &to, float a, float4 x) {
    to.x = fmaf(a, x.x, to.x), to.y = fmaf(a, x.y, to.y), to.z = fmaf(a, x.z, to.z), to.w = fmaf(a, x.w, to.w);
}

// Tile is a team's 16 columns of 64 rows of A. Quad i of column k, which has rows 4i to 4i+3, is at 16·k + (i ^ k & 7),
// so that the rows that threads write at the same time are in different banks.
struct Tile {
    float4 quads[256];

    // keep writes the values that a chain has for one word of the mask.
    __device__ __forceinline__ void keep(u32 chain, const float (&x)[16]) {
        float *to = (float *)quads;
        u32 g = chain >> 3, col = 4 * (chain & 1) + (chain >> 1 & 3);
#pragma unroll
        for (u32 i = 0; i < 16; i++) {
            u32 k = 8 * (i >> 1 & 1) + col, r = 16 * (i >> 2) + 8 * (i & 1) + g;
            to[64 * k + 4 * (r >> 2 ^ (k & 7)) + (r & 3)] = x[i];
        }
    }
};

// fetch loads the values that a chain has for one word of the mask.
__device__ __forceinline__ void fetch(float (&x)[16], u32 word, const float *&next) {
#pragma unroll
    for (u32 i = 0; i < 16; i++) {
        x[i] = 0;
        if (word >> (2 * i) & 1) x[i] = __ldg(next), next += CHAINS;
    }
}

extern "C" __global__ void __launch_bounds__(64 * TEAMS)
    ENTRY(const u32 *__restrict__ index, const u32 *__restrict__ mask, const float *__restrict__ values,
          const float *__restrict__ b, const float *__restrict__ bias, void *__restrict__ c,
          const __grid_constant__ Params p) {
    __shared__ Tile tiles[TEAMS];
    float4 *sums = tiles[0].quads; // at the end: one row's sums of each thread
    Streams a{index, mask, values, p};
    u32 base = blockIdx.y * 64, first = blockIdx.x * p.each, team = threadIdx.x / 64, me = threadIdx.x % 64;
    u32 share = team / p.each, shares = min(TEAMS / p.each, p.splits), group = first + team % p.each;
    bool works = share < shares && group < p.groups;

    u32 width = 1;
    while (width < QUADS && 4 * width < p.n - base) width *= 2;
    u32 slices = QUADS / width, slice = me % QUADS / width, rows = me / QUADS * ROWS, j = base + me % width * 4;
    const float *from = b + min(j, p.ldb - 4); // columns past the last are never stored

    float4 acc[ROWS] = {};
    u32 most = (p.segments + p.splits - 1) / p.splits * p.steps * 2; // words of the longest split
    for (u32 round = 0; round < p.splits; round += shares) {
        u32 split = round + share, words = 0, begin = 0;
        const float *next = values;
        if (works && split < p.splits) {
            begin = a.first_step(split);
            words = 2 * (a.first_step(split + 1) - begin);
            next += a.value(group, split) + me;
        }
        // While a word is multiplied, the values of the next word are loaded, and the mask of the one after it.
        float x[16];
        fetch(x, words > 0 ? a.word(group, begin, me, 0) : 0, next);
        u32 bits = words > 1 ? a.word(group, begin, me, 1) : 0;
        for (u32 w = 0; w < most; w++) {
            __syncthreads();
            if (w < words) tiles[team].keep(me, x);
            __syncthreads();
            fetch(x, bits, next);
            bits = w + 2 < words ? a.word(group, begin + (w + 2) / 2, me, w & 1) : 0;
            if (w >= words) continue;
            for (u32 k = slice; k < 16; k += slices) {
                float4 z = __ldg((const float4 *)(from + (u64)min(begin * STEP_COLS + 16 * w + k, p.cols - 1) * p.ldb));
#pragma unroll
                for (int r = 0; r < ROWS; r += 4) {
                    float4 y = tiles[team].quads[16 * k + ((rows + r) / 4 ^ (k & 7))];
                    add(acc[r], y.x, z), add(acc[r + 1], y.y, z), add(acc[r + 2], y.z, z), add(acc[r + 3], y.w, z);
                }
            }
        }
    }

    Out<Params> out({c, bias}, p);
    u32 row = group * GROUP_ROWS + rows;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        if (works && row + r < p.rows)
            for (u32 i = a.remainder_ptr()[row + r] + share * slices + slice; i < a.remainder_ptr()[row + r + 1];
                 i += shares * slices)
                add(acc[r], a.remainder()[i], __ldg((const float4 *)(from + (u64)a.remainder_cols()[i] * p.ldb)));
        if (shares * slices > 1) {
            __syncthreads();
            sums[threadIdx.x] = acc[r];
            __syncthreads();
        }
        if (works && share == 0 && slice == 0 && j < p.n && row + r < p.rows) {
            float4 x = acc[r];
            for (u32 i = 1; i < shares * slices; i++) {
                float4 y = sums[threadIdx.x + i / slices * p.each * 64 + i % slices * width];
                x.x += y.x, x.y += y.y, x.z += y.z, x.w += y.w;
            }
            out.store(row + r, j, x, Entries{a, b});
        }
    }
}
