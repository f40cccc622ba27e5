// Computes: C = alpha·A·B + beta·C, A (rows × cols) in Jigsaw's format, 2:4 after its columns are reordered block by
// block, f16 or bf16, sums in f32, on sparse tensor cores (mma.sp.m16n8k32). After Jigsaw (§3.4).
// Tile: a CTA computes (BLOCK × COLS), each of its BLOCK/16 consumer warps a strip (16 × COLS).
// Data movement: PRODUCERS producer warps copy the rows of B that the block's columns name, in the order of its list,
// into a stage buffer of STAGES granules (GRANULE = 32·PRODUCERS rows each). Column numbers are loaded DEEP granules
// before their rows are copied (§3.4.2). Consumer warps gather and transpose from there with ldmatrix, one row address
// a lane. Rows are an odd number of 16 bytes apart (§3.4.1), and the encoder deals columns so that the eight rows read
// at once lie in different banks. A's values (16 bytes a lane and step) and its metadata, interleaved for two steps
// (§3.4.3), are prefetched to registers PREFETCH pairs of steps early.
// Synchronisation: mbarriers say that a granule is full, and that every warp is done with it. index says for each step
// up to which granule it reads and which granules no later step reads. A warp releases no granule before it was full:
// else a barrier could count a warp that is ahead twice.
// Bound by: shared memory, and gathers of rows of B from L2.
// Constants: ENTRY, ELEM (F16, BF16), BLOCK, COLS (a multiple of 16), GRANULE, STAGES (a power of two), PRODUCERS,
// PREFETCH, RESIDENT (CTAs of a multiprocessor, for the compiler). Dynamic shared memory: STAGES·GRANULE·PITCH bytes.

#include "params.h"
#include "../include/result.cuh"
#include "../include/barrier.cuh"

#define STRIPS (BLOCK / 16)
#define PITCH (COLS * 2 + 16) // bytes from a row of the buffer to the next
#define CHUNKS (COLS / 8) // 16-byte chunks of a row
#define PASS (32 / CHUNKS) // rows that a producer warp copies at once
#define DEEP 4 // granules whose column numbers are being loaded
#define TILES (COLS / 8) // tiles of 8 columns

static_assert(GRANULE == 32 * PRODUCERS && 32 % CHUNKS == 0, "a feeder copies 32 rows of each granule");
static_assert((STAGES & (STAGES - 1)) == 0 && TILES % EARLY == 0, "");

__device__ __forceinline__ void barrier_wait(u32 bar, u32 parity) {
    while (!barrier_test(bar, parity)) __nanosleep(20);
}

// The part of the buffer that a warp reads: granules below filled are known to be full, those below freed are
// given back.
struct Window {
    u32 full, empty; // barriers
    u32 filled, freed;

    __device__ __forceinline__ void fill(u32 until) {
#pragma unroll 1
        for (; filled < until; filled++) barrier_wait(full + 8 * (filled % STAGES), filled / STAGES & 1);
    }
    __device__ __forceinline__ void free(u32 until) { // the warp is past its reads of them
        if (freed >= until) return;
        __syncwarp();
#pragma unroll 1
        for (; freed < until; freed++) {
            fill(freed + 1);
            if ((threadIdx.x & 31) == 0) barrier_arrive(empty + 8 * (freed % STAGES));
        }
    }
};

// Two steps of a strip as a lane holds them.
struct Pair {
    uint4 values[2];
    u32 metadata, rows;
    uint2 granules; // of each step: least needed from now on, most needed << 16
};

// Where a strip's pairs are, for one lane.
struct Pairs {
    const uint4 *values;
    const u32 *metadata, *rows;
    const uint2 *granules;

    __device__ __forceinline__ void load(Pair &to, u32 i) const {
        to.values[0] = __ldg(values + 64 * (u64)i);
        to.values[1] = __ldg(values + 64 * (u64)i + 32);
        to.metadata = __ldg(metadata + 32 * (u64)i);
        to.rows = __ldg(rows + 32 * (u64)i);
        to.granules = __ldg(granules + (u64)i);
    }
};

// What index says of a block: its number, where its columns begin in colidx and how many they are, and where the
// steps of its strips begin and end. A word for each step comes after all blocks.
struct Block {
    u32 number, cols, count, steps[STRIPS + 1];
};

__device__ __forceinline__ const u32 *granules_of(const u32 *index, const Params &p) {
    return index + (p.blocks * (sizeof(Block) / 4) + 1) / 2 * 2;
}

// finite tells whether the first columns of a quad, as many as C has, are finite. (What lies beyond in B's rows is
// anybody's: it must not decide how C is computed.)
__device__ __forceinline__ bool finite(const float (&x)[4], u32 columns) {
    u32 top = 0;
#pragma unroll
    for (int i = 0; i < 4; i++) top = max(top, i < columns ? __float_as_uint(x[i]) & 0x7fffffff : 0);
    return top < 0x7f800000;
}

// put writes COUNT neighbouring columns of a row, without those from n on: C = alpha·x + beta·C, with an
// epilogue.
template <int COUNT>
__device__ __forceinline__ void put(Dest to, const Params &p, u32 row, u32 col, const float (&x)[COUNT]) {
    u64 at = (u64)row * p.ldc + col;
    u32 type = store_type(p.store);
    float *f = (float *)to.c + at, y[COUNT];
    u16 *h = (u16 *)to.c + at;
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        y[i] = p.alpha * x[i];
        if (col + i >= p.n) continue;
        if (p.beta != 0)
            y[i] += p.beta * (type == F32 ? f[i] : type == F16 ? widen_lo<F16>(h[i]) : widen_lo<BF16>(h[i]));
        if (has_epilogue(p.store)) y[i] = epilogue(y[i], p.store, to.bias, row, col + i);
    }
    if (COUNT == 4 && type != F32 && col + 4 <= p.n && (p.ldc & 3) == 0) {
        *(uint2 *)h = make_uint2(narrow(y[0], y[1 % COUNT], type), narrow(y[2 % COUNT], y[3 % COUNT], type));
        return;
    }
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        if (col + i < p.n) {
            if (type == F32) f[i] = y[i];
            else h[i] = (u16)narrow(y[i], 0, type);
        }
}

// The value of one output of this warp's strip from its entries alone. Positions are found from rows of the buffer and
// the least granule in use.
static __device__ __noinline__ float recompute(const Block *block, const u32 *granules, const u32 *colidx,
                                               const u32 *rows, const u32 *metadata, const u16 *values, const u32 *mask,
                                               const u16 *b, u32 ldb, u32 row, u32 col) {
    const u32 *cols = colidx + block->cols;
    u32 strip = threadIdx.x / 32;
    Special s;
    for (u32 n = block->steps[strip]; n < block->steps[strip + 1]; n++) {
        u32 from = (granules[n] & 0xffff) * GRANULE;
        for (u32 i = 0; i < 16; i++) { // quad i/4, tile i/2%2, entry i%2
            u32 q = i >> 2, t = i >> 1 & 1, e = i & 1;
            u64 slot = (u64)n * 256 + 8 * (4 * (row & 7) + q) + 4 * t + 2 * (row >> 3) + e;
            if (!(mask[slot >> 5] >> (slot & 31) & 1)) continue;
            u32 word = metadata[(u64)(n / 2) * 32 + 4 * (row & 7) + 2 * (n & 1) + t];
            u32 k = 16 * t + 4 * q + (word >> (16 * (row >> 3) + 4 * q + 2 * e) & 3);
            u32 at = rows[(u64)(n / 2) * 32 + k] >> (16 * (n & 1)) & 0xffff;
            u32 position = from + (at - from) % (STAGES * GRANULE);
            s.add(widen_lo<ELEM>(values[slot]), widen_lo<ELEM>(b[(u64)cols[position] * ldb + col]));
        }
    }
    return s.result();
}

// copy_row copies 16 bytes of row k of B, whose first 16 are at from and whose rows are stride bytes apart.
__device__ __forceinline__ void copy_row(u32 to, u64 from, u32 k, u32 stride) {
    asm volatile(
        "{ .reg .b64 at;\n mad.wide.u32 at, %1, %2, %3;\n cp.async.cg.shared.global [%0], [at], 16; }" ::"r"(to),
        "r"(k), "r"(stride), "l"(from)
        : "memory");
}

// The producer warps of B. Each has 32 rows of every granule; a lane looks their columns up for
// all lanes.
__device__ __forceinline__ void produce(u32 buffer, u32 full, u32 empty, const u32 *__restrict__ cols, u32 count,
                                        const u16 *__restrict__ b, const Params &p) {
    u32 lane = threadIdx.x & 31, warp = (threadIdx.x >> 5) - STRIPS, chunk = lane % CHUNKS, row = lane / CHUNKS;
    // Columns past the leading dimension are read from its end instead and never stored.
    u64 from = (u64)__cvta_generic_to_global(b + min(blockIdx.y * COLS + 8 * chunk, p.ldb - 8));
    u32 stride = 2 * p.ldb, to = buffer + (32 * warp + row) * PITCH + 16 * chunk;
    auto look = [&](u32 g) { return __ldg(cols + min(g * GRANULE + 32 * warp + lane, count - 1)); };
    u32 next[DEEP]; // of granules, a column for each lane
    if (count > 0)
#pragma unroll
        for (int d = 0; d < DEEP; d++) next[d] = look(d);
    __syncthreads(); // the barriers are ready
    int left = count - 32 * warp - row; // rows of the list from this lane's first in a granule on
    for (u32 g = 0; g * GRANULE < count; g += DEEP)
#pragma unroll
        for (int d = 0; d < DEEP; d++) {
            if ((g + d) * GRANULE >= count) break;
            u32 stage = (g + d) % STAGES, now = next[d], at = to + stage * (GRANULE * PITCH);
            next[d] = look(g + d + DEEP);
            if (g + d >= STAGES) barrier_wait(empty + 8 * stage, ((g + d) / STAGES - 1) & 1);
#pragma unroll
            for (int i = 0; i < CHUNKS; i++) {
                u32 k = __shfl_sync(0xffffffff, now, i * PASS + row);
                if (left > i * PASS) copy_row(at + i * PASS * PITCH, from, k, stride);
            }
            left -= GRANULE;
            asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(full + 8 * stage) : "memory");
        }
    asm volatile("cp.async.wait_all;" ::: "memory");
}

extern "C" __global__ void __launch_bounds__(32 * (STRIPS + PRODUCERS), RESIDENT)
    ENTRY(const u32 *__restrict__ index, const u32 *__restrict__ colidx, const u32 *__restrict__ metadata,
          const u16 *__restrict__ values, const u32 *__restrict__ mask, const u16 *__restrict__ b,
          const float *__restrict__ bias, void *__restrict__ c, Params p) {
    extern __shared__ __align__(128) unsigned char smem[];
    __shared__ u64 barriers[2 * STAGES];
    u32 slot = blockIdx.x + blockIdx.z * p.width;
    if (slot >= p.blocks) return;
    u32 warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    const Block *block = (const Block *)index + slot;
    u32 count = block->count, buffer = shared_address(smem), full = shared_address(barriers), empty = full + 8 * STAGES;
    if (threadIdx.x < STAGES) {
        barrier_init(full + 8 * threadIdx.x, 32 * PRODUCERS);
        barrier_init(empty + 8 * threadIdx.x, STRIPS);
    }
    if (warp >= STRIPS) {
        produce(buffer, full, empty, colidx + p.lists + block->cols, count, b, p);
        return;
    }

    u32 strip = block->number * STRIPS + warp, first = block->steps[warp], pairs = (block->steps[warp + 1] - first) / 2;
    Pairs from = {(const uint4 *)values + (u64)first * 32 + lane, metadata + (u64)first * 16 + lane,
                  colidx + (u64)first * 16 + lane, (const uint2 *)(granules_of(index, p) + first)};
    Pair next, after; // the next pair and the one after it
    if (pairs > 0) from.load(next, 0);
    if (PREFETCH > 1 && pairs > 1) from.load(after, 1);
    __syncthreads(); // the barriers are ready

    float acc[TILES][4] = {};
    Window window = {full, empty, 0, 0};
    auto step = [&](const uint4 &v, u32 meta, u32 row, u32 needs, bool second) __attribute__((always_inline)) {
        window.free(needs & 0xffff);
        window.fill((needs >> 16) + 1);
        u32 at = buffer + row * PITCH, a[4] = {v.x, v.y, v.z, v.w}, x[EARLY][4];
#pragma unroll
        for (int j = 0; j < EARLY; j++) ldmatrix_trans(x[j], at + 16 * j);
#pragma unroll
        for (int j = 0; j < TILES; j++) {
            mma_sparse<ELEM>(acc[j], a, x[j % EARLY], meta, second);
            if (j + EARLY < TILES) ldmatrix_trans(x[j % EARLY], at + 16 * (j + EARLY));
        }
    };
#pragma unroll 1
    for (u32 i = 0; i < pairs; i++) {
        Pair now = next;
        if (PREFETCH > 1) next = after;
        if (i + PREFETCH < pairs) from.load(PREFETCH > 1 ? after : next, i + PREFETCH);
        step(now.values[0], now.metadata, now.rows & 0xffff, now.granules.x, false);
        step(now.values[1], now.metadata, now.rows >> 16, now.granules.y, true);
    }
    if (count > STAGES * GRANULE) window.free((count - 1) / GRANULE + 1 - STAGES); // those that are filled again

    // Lanes swap halves of neighbouring tiles, so that each has quads of neighbouring columns. Quads that are not
    // finite wait until the sums' registers are free: a call amid the stores would move the sums to memory.
    u32 odd = lane & 1, row = strip * 16 + lane / 4, col = blockIdx.y * COLS + 8 * odd + 4 * (lane >> 1 & 1), bad = 0;
    bool plain = p.store == F32 && p.beta == 0 && (p.ldc & 3) == 0 && (blockIdx.y + 1) * COLS <= p.n;
    auto write = [&](bool simple) {
#pragma unroll
        for (int i = 0; i < TILES; i++) { // half h of tiles j and j + 1
            int h = i / (TILES / 2), j = i % (TILES / 2) * 2;
            float *mine = &acc[j][2 * h], *other = &acc[j + 1][2 * h], got[2];
#pragma unroll
            for (int e = 0; e < 2; e++) got[e] = __shfl_xor_sync(0xffffffff, odd ? mine[e] : other[e], 1);
            float x[4] = {odd ? got[0] : mine[0], odd ? got[1] : mine[1], odd ? other[0] : got[0],
                          odd ? other[1] : got[1]};
            u32 r = row + 8 * h, n = col + 8 * j;
            if (r >= p.rows || n >= p.n) continue;
            if (!finite(x, simple ? 4 : p.n - n)) bad |= 1u << i;
            else if (simple)
                *(float4 *)((float *)c + (u64)r * p.ldc + n) =
                    make_float4(p.alpha * x[0], p.alpha * x[1], p.alpha * x[2], p.alpha * x[3]);
            else put({c, bias}, p, r, n, x);
        }
    };
    if (plain) write(true);
    else write(false);
    for (; bad; bad &= bad - 1) {
        u32 i = __ffs(bad) - 1, r = row + 8 * (i / (TILES / 2)), n = col + 16 * (i % (TILES / 2));
        for (u32 e = 0; e < 4 && n + e < p.n; e++) {
            float x[1] = {recompute(block, granules_of(index, p), colidx + p.lists, colidx, metadata, values, mask, b,
                                    p.ldb, r % 16, n + e)};
            put({c, bias}, p, r, n + e, x);
        }
    }
}
