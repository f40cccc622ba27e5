// Jigsaw × dense on sparse tensor cores (mma.sp.m16n8k32), after Jigsaw (§3.4).
//
// A block of threads multiplies a block of BLOCK rows by COLS columns of B. Each of BLOCK/16 warps has a strip,
// whose steps it reads as the instruction wants them: 16 bytes of values for each lane, and metadata
// that are interleaved for two steps, so that one load of a word by each lane serves both (§3.4.3). They
// come straight to registers, AHEAD pairs of steps early.
//
// FEEDERS warps copy the rows of B that the block's columns name, in the order of its list, into a ring of
// STAGES granules of GRANULE rows in shared memory. Column numbers are loaded a granule before their rows are
// copied, and those are copied as far before they are used as the ring is long (§3.4.2). Every strip
// takes from the ring the rows that it needs: ldmatrix, which accepts an address for each row, gathers and
// transposes them. Rows are an odd number of 16 bytes apart (§3.4.1), and the encoder deals columns so that
// the eight rows read at once lie in different banks.
//
// mbarriers tell a warp that a granule is full, and the feeders that every warp is done with it. The last
// array of ptr says for each step up to which granule it reads and which ones no later step does.
//
// Compile-time constants: ENTRY, ELEM (F16, BF16), BLOCK, COLS (a multiple of 16), GRANULE, STAGES (a power of
// two), FEEDERS, AHEAD, RESIDENT (blocks of threads per multiprocessor, for the compiler). Dynamic shared
// memory: STAGES·GRANULE·PITCH bytes.

#include "zparams.h"
#include "../include/result.cuh"

#define STRIPS (BLOCK / 16)
#define PITCH (COLS * 2 + 16)          // bytes from a row of the ring to the next
#define CHUNKS (COLS / 8)              // 16-byte pieces of a row
#define PASS (32 * FEEDERS / CHUNKS)   // rows that the feeders copy at once
#define PASSES (GRANULE / PASS)
#define TILES (COLS / 8)               // tiles of 8 columns
#ifndef EARLY
#define EARLY 4
#endif

static_assert(PASS * CHUNKS == 32 * FEEDERS && PASSES * PASS == GRANULE, "feeders copy whole granules");
static_assert((STAGES & (STAGES - 1)) == 0 && TILES % 2 == 0, "");

__device__ __forceinline__ void barrier_init(u32 bar, u32 count) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}
__device__ __forceinline__ void barrier_arrive(u32 bar) {
    asm volatile("{ .reg .b64 t; mbarrier.arrive.shared.b64 t, [%0]; }" ::"r"(bar) : "memory");
}
__device__ __forceinline__ void barrier_wait(u32 bar, u32 parity) {
    u32 ready;
    do {
        asm volatile("{ .reg .pred p;\n mbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n selp.u32 %0, 1, 0, p; }"
                     : "=r"(ready) : "r"(bar), "r"(parity) : "memory");
    } while (!ready);
}

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
    const u32 *granules;

    __device__ __forceinline__ void load(Pair &to, u32 i) const {
        to.values[0] = __ldg(values + 64 * (u64)i);
        to.values[1] = __ldg(values + 64 * (u64)i + 32);
        to.metadata = __ldg(metadata + 32 * (u64)i);
        to.rows = __ldg(rows + 32 * (u64)i);
        to.granules = make_uint2(__ldg(granules + 2 * (u64)i), __ldg(granules + 2 * (u64)i + 1));
    }
};

// Where in ptr each array is.
struct Index {
    const u32 *blocks, *steps, *order, *granules;
    __device__ __forceinline__ Index(const u32 *ptr, const Params &p)
        : blocks(ptr), steps(blocks + p.blocks + 1), order(steps + p.blocks * STRIPS + 1), granules(order + p.blocks) {}
};

// The value of one output from its entries alone. Positions are found from rows of the ring and the least
// granule in use.
static __device__ __noinline__ float recompute(const u32 *ptr, const u32 *colidx, const u32 *rows, const u32 *metadata, const u16 *values,
                                               const u32 *mask, const u16 *b, const Params &p, u32 row, u32 col) {
    Index index(ptr, p);
    u32 strip = row / 16;
    const u32 *cols = colidx + index.blocks[strip / STRIPS];
    row %= 16;
    Special s;
    for (u32 n = index.steps[strip]; n < index.steps[strip + 1]; n++) {
        u32 from = (index.granules[n] & 0xffff) * GRANULE;
        for (u32 i = 0; i < 16; i++) { // quad i/4, tile i/2%2, entry i%2
            u32 q = i >> 2, t = i >> 1 & 1, e = i & 1;
            u64 slot = (u64)n * 256 + 8 * (4 * (row & 7) + q) + 4 * t + 2 * (row >> 3) + e;
            if (!(mask[slot >> 5] >> (slot & 31) & 1)) continue;
            u32 word = metadata[(u64)(n / 2) * 32 + 4 * (row & 7) + 2 * (n & 1) + t];
            u32 k = 16 * t + 4 * q + (word >> (16 * (row >> 3) + 4 * q + 2 * e) & 3);
            u32 at = rows[(u64)(n / 2) * 32 + k] >> (16 * (n & 1)) & 0xffff;
            u32 position = from + (at - from) % (STAGES * GRANULE);
            s.add(widen_lo<ELEM>(values[slot]), widen_lo<ELEM>(b[(u64)cols[position] * p.ldb + col]));
        }
    }
    return s.result();
}

// The warps that bring rows of B to the ring.
__device__ __forceinline__ void feed(u32 ring, const u64 *full, const u64 *empty, const u32 *__restrict__ cols, u32 count, const u16 *__restrict__ b,
                                     const Params &p) {
    u32 t = threadIdx.x - 32 * STRIPS, chunk = t % CHUNKS, row = t / CHUNKS;
    // Columns past the leading dimension are read from its end instead and never stored.
    const u16 *from = b + min(blockIdx.y * COLS + 8 * chunk, p.ldb - 8);
    u32 to = ring + row * PITCH + 16 * chunk;
    u32 next[PASSES];
    auto look = [&](u32 g) {
#pragma unroll
        for (int i = 0; i < PASSES; i++) {
            u32 position = g * GRANULE + i * PASS + row;
            next[i] = position < count ? __ldg(cols + position) : 0xffffffff;
        }
    };
    look(0);
    for (u32 g = 0; g * GRANULE < count; g++) {
        u32 stage = g % STAGES, now[PASSES];
#pragma unroll
        for (int i = 0; i < PASSES; i++) now[i] = next[i];
        look(g + 1);
        if (g >= STAGES) barrier_wait(shared_address(&empty[stage]), (g / STAGES - 1) & 1);
#pragma unroll
        for (int i = 0; i < PASSES; i++)
            if (now[i] != 0xffffffff) copy<16>(to + (stage * GRANULE + i * PASS) * PITCH, from + (u64)now[i] * p.ldb, 16);
        asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(shared_address(&full[stage])) : "memory");
    }
    asm volatile("cp.async.wait_all;" ::: "memory");
}

extern "C" __global__ void __launch_bounds__(32 * (STRIPS + FEEDERS), RESIDENT)
    ENTRY(const u32 *__restrict__ ptr, const u32 *__restrict__ colidx, const u32 *__restrict__ blockcolidx, const u32 *__restrict__ metadata,
          const u16 *__restrict__ values, const u32 *__restrict__ mask, const u16 *__restrict__ b, void *__restrict__ c, Params p) {
    extern __shared__ __align__(128) unsigned char smem[];
    __shared__ u64 full[STAGES], empty[STAGES];
    u32 slot = blockIdx.x + blockIdx.z * p.width;
    if (slot >= p.blocks) return;
    u32 warp = threadIdx.x >> 5, lane = threadIdx.x & 31;
    Index index(ptr, p);
    u32 block = index.order[slot], ring = shared_address(smem);
    const u32 *cols = colidx + ptr[block];
    u32 count = ptr[block + 1] - ptr[block];
    if (threadIdx.x < STAGES) {
        barrier_init(shared_address(&full[threadIdx.x]), 32 * FEEDERS);
        barrier_init(shared_address(&empty[threadIdx.x]), STRIPS);
    }
    __syncthreads();
    if (warp >= STRIPS) {
        feed(ring, full, empty, cols, count, b, p);
        return;
    }

    u32 strip = block * STRIPS + warp, first = index.steps[strip], pairs = (index.steps[strip + 1] - first) / 2;
    Pairs from = {(const uint4 *)values + (u64)first * 32 + lane, metadata + (u64)first * 16 + lane, blockcolidx + (u64)first * 16 + lane,
                  index.granules + first};
    Pair pair[AHEAD + 1];
#pragma unroll
    for (int i = 0; i < AHEAD; i++)
        if (i < pairs) from.load(pair[i], i);

    float acc[1][TILES][4] = {};
    u32 filled = 0, freed = 0; // granules known to be full, and given back
    auto step = [&](const uint4 &v, u32 meta, u32 row, u32 needs, bool second) {
        // The granules that no step from here on reads go back; the warp is past its reads of them.
        if (freed < (needs & 0xffff)) {
            __syncwarp();
#pragma unroll 1
            for (; freed < (needs & 0xffff); freed++)
                if (lane == 0) barrier_arrive(shared_address(&empty[freed % STAGES]));
        }
#pragma unroll 1
        for (; filled <= needs >> 16; filled++) barrier_wait(shared_address(&full[filled % STAGES]), filled / STAGES & 1);
        u32 at = ring + row * PITCH, a[4] = {v.x, v.y, v.z, v.w}, x[EARLY][4];
#pragma unroll
        for (int j = 0; j < EARLY; j++) ldmatrix_trans(x[j], at + 16 * j);
#pragma unroll
        for (int j = 0; j < TILES; j++) {
            mma_sparse<ELEM>(acc[0][j], a, x[j % EARLY], meta, second);
            if (j + EARLY < TILES) ldmatrix_trans(x[j % EARLY], at + 16 * (j + EARLY));
        }
    };
    for (u32 i = 0; i < pairs; i += AHEAD + 1) {
#pragma unroll
        for (int u = 0; u <= AHEAD; u++) {
            if (i + u >= pairs) break;
            Pair &now = pair[u];
            if (i + u + AHEAD < pairs) from.load(pair[(u + AHEAD) % (AHEAD + 1)], i + u + AHEAD);
            step(now.values[0], now.metadata, now.rows & 0xffff, now.granules.x, false);
            step(now.values[1], now.metadata, now.rows >> 16, now.granules.y, true);
        }
    }
    __syncwarp();
    for (; freed * GRANULE < count; freed++)
        if (lane == 0) barrier_arrive(shared_address(&empty[freed % STAGES]));

    store_tiles<1, TILES>(acc, c, p, strip * 16, blockIdx.y * COLS, [&](u32 row, u32 col) {
        return recompute(ptr, colidx, blockcolidx, metadata, values, mask, b, p, row, col);
    });
}
