// Computes: C (rows × n) = alpha·A·B + beta·C reproducibly in fixed point (RFX-p, p = BITS) for few columns, A in strips
// of 16 rows, on matrix units of 8-bit integers (mma.m16n8k32). strips.go explains the packing.
// Tile: a warp computes (16 × 8), a strip, at a time. Where there are few strips, all warps of a CTA take pieces of one,
// ranges of columns of A, by turns, and add their sums in shared memory. Else each has a strip of its own; they go
// through A's columns together, so that the digits of B come from the first-level cache.
// Data movement: bulk copies load a piece's masks and digits into the warp's stage buffer in shared memory, ahead of the
// strip's end. A lane loads the digits of its next four entries for four positions; byte permutes gather them by place,
// and bring them to the positions that four bits of the mask tell. Digits of B come in the order of fragments, one block
// ahead.
// Bound by: the bytes of A; at p = 31 and 47 by the matrix units, and with few entries by loads from shared memory.
// Constants: BITS (p), WARPS, RING (bytes of a warp's stage buffer), BLOCKS.

#include "store.cuh"
#include "../include/bulk.cuh"
#include "../include/launches.cuh"

#define ALL 0xffffffffu
#define S ((BITS + 1) / 8) // digits
#define DIAGS (2 * S - 1) // sums of places
#define ENTRY_BITS (8 * S) // of an entry's digits
#define ROWS 16 // of a strip
#define BLOCK 64 // columns of a mask word
#define SLOTS 4 // stages, at most
#ifndef SYNC
#define SYNC 1
#endif

// mma is d += a·b, exactly as long as sums fit.
__device__ __forceinline__ void mma(int (&d)[4], const u32 (&a)[4], uint2 b) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y));
}

// gather brings the digits of four entries, which lie one behind the other, into a word for each place.
__device__ __forceinline__ void gather(u32 (&place)[S], const u32 *w) {
#if S == 2
    place[0] = __byte_perm(w[0], w[1], 0x6420), place[1] = __byte_perm(w[0], w[1], 0x7531);
#elif S == 3
    place[0] = __byte_perm(__byte_perm(w[0], w[1], 0x0630), w[2], 0x5210);
    place[1] = __byte_perm(__byte_perm(w[0], w[1], 0x0741), w[2], 0x6210);
    place[2] = __byte_perm(__byte_perm(w[0], w[1], 0x0052), w[2], 0x7410);
#elif S == 4
    u32 a = __byte_perm(w[0], w[1], 0x5140), b = __byte_perm(w[2], w[3], 0x5140);
    place[0] = __byte_perm(a, b, 0x5410), place[1] = __byte_perm(a, b, 0x7632);
    a = __byte_perm(w[0], w[1], 0x7362), b = __byte_perm(w[2], w[3], 0x7362);
    place[2] = __byte_perm(a, b, 0x5410), place[3] = __byte_perm(a, b, 0x7632);
#else
    u32 a = __byte_perm(w[0], w[1], 0x7160), b = __byte_perm(w[3], w[4], 0x7160);
    place[0] = __byte_perm(a, b, 0x5410), place[1] = __byte_perm(a, b, 0x7632);
    a = __byte_perm(w[0], w[2], 0x5342), b = __byte_perm(w[3], w[5], 0x5342);
    place[2] = __byte_perm(a, b, 0x5410), place[3] = __byte_perm(a, b, 0x7632);
    a = __byte_perm(w[1], w[2], 0x7160), b = __byte_perm(w[4], w[5], 0x7160);
    place[4] = __byte_perm(a, b, 0x5410), place[5] = __byte_perm(a, b, 0x7632);
#endif
}

// shared loads a word of shared memory.
__device__ __forceinline__ u32 shared(u32 at) {
    u32 x;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(at));
    return x;
}

// Of four bits, the lower half of a word of the table is the selector that brings the first bytes to the places of
// those that are set, and zeros to the others; the upper half is the bits of the digits of as many entries.
__device__ __forceinline__ u32 table_word(u32 bits) {
    u32 selector = 0, rank = 0;
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        bool set = bits >> i & 1;
        selector |= (set ? rank : 4) << (4 * i);
        rank += set;
    }
    return selector | rank * ENTRY_BITS << 16;
}

// fragment takes register R of a step: four columns of a row, by place. The lane's digits are a stream of bits, whose
// words are 128 bytes apart from `at` on; `next` is the number of the next one. `word` is the table's for the columns.
template <int R> __device__ __forceinline__ void fragment(u32 (&a)[S][4], u32 at, u32 &next, u32 word) {
    u32 w[S + 1], place[S];
    at += next / 32 * 128;
#pragma unroll
    for (int i = 0; i < S + (S % 4 != 0); i++) w[i] = shared(at + 128 * i);
    if (S % 4 != 0)
#pragma unroll
        for (int i = 0; i < S; i++) w[i] = __funnelshift_r(w[i], w[i + 1], next);
    next += word >> 16;
    gather(place, w);
#pragma unroll
    for (int d = 0; d < S; d++) a[d][R] = __byte_perm(place[d], 0, word);
}

// step multiplies 32 columns of A.
__device__ __forceinline__ void step(int (&sum)[DIAGS][4], const u32 *words, u32 at, u32 &next, const uint2 (&b)[S]) {
    u32 a[S][4];
    fragment<0>(a, at, next, words[0]);
    fragment<1>(a, at, next, words[1]);
    fragment<2>(a, at, next, words[2]);
    fragment<3>(a, at, next, words[3]);
    // Sums of the same place are apart, so that none waits for the one before.
#pragma unroll
    for (int i = 0; i < S; i++)
#pragma unroll
        for (int k = 0; k < S; k++) {
            int j = i & 1 ? S - 1 - k : k;
            mma(sum[i + j], a[i], b[j]);
        }
}

// load reads the digits of B for a block.
__device__ __forceinline__ void load(uint2 (&b)[2][S], const uint2 *q, u32 block) {
#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
        for (int d = 0; d < S; d++) b[t][d] = __ldg(q + ((size_t)block * 2 + t) * (S * 32) + d * 32);
}

// Pieces is the pieces of the strips that a warp loads, every apart-th of each, one strip after the other. Of 32 pieces
// lane i knows where the i-th begins and ends, in units of 128 bytes, and of the 32 behind them.
struct Pieces {
    const unsigned char *ints;
    const u32 *offsets; // of the warp's first piece of strip 0
    u32 of_strip, count, apart, ring, barrier, slots, stride, tiles, end, lane; // stride, end: of numbers of tiles
    u32 number, piece, first, last, next_first, next_last;

    __device__ __forceinline__ void look(u32 of, u32 from) {
        if (of >= end || from + lane >= count) return;
        const u32 *at = offsets + (size_t)(of / tiles) * of_strip + (from + lane) * apart;
        next_first = __ldg(at), next_last = __ldg(at + 1);
    }
    // turn goes on to the next 32 pieces.
    __device__ __forceinline__ void turn() {
        u32 from = piece / 32 * 32 + 32;
        first = next_first, last = next_last;
        if (from < count) look(number, from);
        else look(number + stride, 0);
    }
    // fetch starts loading the next piece into a slot.
    __device__ __forceinline__ void fetch(u32 slot, const Params &p) {
        if (number >= end) return;
        u32 from = __shfl_sync(ALL, first, piece % 32), n = __shfl_sync(ALL, last, piece % 32) - from;
        if (lane == 0) {
            u32 bar = barrier + 8 * slot;
            barrier_expect(bar, n * 128);
            asm volatile(
                "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                    ring + slot * p.longest),
                "l"(ints + (size_t)from * 128), "r"(n * 128), "r"(bar)
                : "memory");
        }
        if (++piece == count) piece = 0, number += stride;
        if (piece % 32 == 0) turn();
    }
};

// put adds the warp's sums to the CTA's.
__device__ __forceinline__ void put(u32 sums, const int (&sum)[DIAGS][4], u32 lane) {
#pragma unroll
    for (int d = 0; d < DIAGS; d++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            asm volatile("red.shared.add.s32 [%0], %1;" ::"r"(sums + (d * 128 + i * 32 + lane) * 4), "r"(sum[d][i])
                         : "memory");
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)
    rfx(const u32 *__restrict__ rows, const unsigned char *__restrict__ ints, const void *__restrict__ values,
        const void *__restrict__ b, const u32 *__restrict__ q, const u32 *__restrict__ bias, u32 *c, void *part,
        const Params p) {
    extern __shared__ __align__(128) unsigned char memory[]; // stage buffers; behind them two sets of sums
    __shared__ u64 barriers[WARPS][SLOTS];
    __shared__ u32 table[16];
    int *sums = (int *)(memory + WARPS * RING);
    u32 lane = threadIdx.x % 32, warp = __shfl_sync(ALL, threadIdx.x / 32, 0), tiles = (p.n + 7) / 8;
    u32 together = across_of(p); // strips of the CTA at a time: 1, or each warp that works has one
    bool alone = together > 1;
    u32 mine = alone ? 0 : warp, apart = alone ? 1 : WARPS; // of the pieces of a strip
    Pieces pieces;
    pieces.ints = ints, pieces.offsets = rows + p.heavy + mine, pieces.lane = lane, pieces.apart = apart;
    pieces.count = mine < p.pieces ? (p.pieces - mine + apart - 1) / apart : 0;
    pieces.ring = shared_address(memory) + warp * RING, pieces.barrier = shared_address(&barriers[warp][0]);
    pieces.slots = min((u32)RING / p.longest, (u32)SLOTS), pieces.tiles = tiles, pieces.end = p.items * tiles;
    pieces.stride = gridDim.x * gridDim.z * together;
    pieces.next_first = pieces.next_last = 0;
    u32 number = (blockIdx.x + blockIdx.z * p.width) * together + (alone ? warp : 0), slots = pieces.slots;
    bool idle = alone && warp >= together;
    if (lane == 0) {
        for (u32 i = 0; i < SLOTS; i++) barrier_init(pieces.barrier + 8 * i, 1);
        barrier_fence();
    }
    if (threadIdx.x < 16) table[threadIdx.x] = table_word(threadIdx.x);
    if (idle) pieces.end = 0;
    pieces.of_strip = p.pieces, pieces.number = number, pieces.piece = 0;
    pieces.look(number, 0);
    __syncwarp();
    if (pieces.count > 0) {
        pieces.turn();
        for (u32 i = 0; i < slots; i++) pieces.fetch(i, p);
    }
    if (!alone)
        for (u32 i = threadIdx.x; i < 2 * DIAGS * 128; i += 32 * WARPS) sums[i] = 0;
    __syncthreads();
    launches_before();
    launches_after();
    const uint2 *digits = (const uint2 *)(q + p.first) + lane;
    u32 slot = 0, parity = 0, base = mine * p.per, tile_words = p.ldq * (2 * S * 32), words = shared_address(table);
    uint2 now[2][S];
    if (pieces.count > 0 && number < pieces.end) load(now, digits + (size_t)(number % tiles) * tile_words, base);
    u32 begin = number - (alone ? warp : 0), end = p.items * tiles; // of the CTA's numbers
    for (u32 turn = 0; begin < end; begin += pieces.stride, number += pieces.stride, turn ^= 1) {
        bool busy = number < pieces.end;
        u32 strip = number / tiles, tile = number % tiles;
        const uint2 *here = digits + (size_t)tile * tile_words,
                    *behind = digits + (size_t)((number + pieces.stride) % tiles) * tile_words;
        int sum[DIAGS][4] = {};
#pragma unroll 1
        for (u32 i = 0; i < pieces.count; i++) {
            u32 first = base + i * apart * p.per, blocks = min(p.per, p.ldq - first);
            bool more = i + 1 < pieces.count;
            if (SYNC && alone && i > 0) __syncthreads();
            if (!busy) continue;
            barrier_wait(pieces.barrier + 8 * slot, parity);
            u32 masks = pieces.ring + slot * p.longest + 4 * lane, at = masks + blocks * 128, next_bit = 0;
#pragma unroll 1
            for (u32 k = 0; k < blocks; k++) {
                uint2 next[2][S];
                bool inside = k + 1 < blocks;
                load(next, inside || more ? here : behind,
                     inside ? first + k + 1 : more ? first + apart * p.per : base);
                u32 mask = shared(masks + k * 128), word[8];
#pragma unroll
                for (int r = 0; r < 8; r++)
                    word[r] = shared(words + (r == 0 ? mask << 2 & 60 : mask >> (4 * r - 2) & 60));
                step(sum, word, at, next_bit, now[0]);
                step(sum, word + 4, at, next_bit, now[1]);
#pragma unroll
                for (int d = 0; d < S; d++) now[0][d] = next[0][d], now[1][d] = next[1][d];
            }
            __syncwarp();
            pieces.fetch(slot, p);
            if (++slot == slots) slot = 0, parity ^= 1;
        }
        if (!busy) continue;
        if (alone) {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                i128 t = 0;
#pragma unroll
                for (int d = DIAGS - 1; d >= 0; d--) t = (t << 8) + sum[d][i];
                u32 row = strip * ROWS + lane / 4 + i / 2 * 8, col = 8 * tile + 2 * (lane % 4) + i % 2;
                if (row < p.heavy / 2 - 1 && col < p.n) store(row, col, t, rows, values, b, q, bias, c, p);
            }
            continue;
        }
        int *to = sums + turn * DIAGS * 128;
        if (pieces.count > 0) put(shared_address(to), sum, lane);
        __syncthreads();
        u32 o = threadIdx.x, row = strip * ROWS + o % 32 / 4 + o / 64 * 8, col = 8 * tile + 2 * (o % 4) + o / 32 % 2;
        if (o >= 128) continue;
        i128 t = 0;
#pragma unroll
        for (int d = DIAGS - 1; d >= 0; d--) {
            t = (t << 8) + to[d * 128 + o];
            to[d * 128 + o] = 0; // for the strip after the next one
        }
        if (row < p.heavy / 2 - 1 && col < p.n) store(row, col, t, rows, values, b, q, bias, c, p);
    }
}
