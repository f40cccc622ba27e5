// Computes: C (rows × n) = alpha·A·B + beta·C reproducibly in fixed point (RFX-p, p = BITS) for few columns, A in strips
// of 16 rows, on matrix units of 8-bit integers (mma.m16n8k32). strips.go explains the packing.
// Tile: a CTA computes (16 × 8) at a time. Its warps take pieces of the strip, ranges of columns of A, by turns, and add
// their sums in shared memory.
// Data movement: bulk copies load a piece's masks and integers into the warp's stage buffer in shared memory, ahead of
// the strip's end. A lane loads its next four integers for four positions; byte permutes put their digits into operand
// words, and the digits to the positions that four bits of the mask tell. Digits of B come in the order of fragments,
// one block ahead.
// Bound by: the bytes of A; at p = 31 and 47 by the matrix units, and with few entries by loads from shared memory.
// Constants: BITS (p), WARPS, RING (bytes of a warp's stage buffer), BLOCKS.

#include "store.cuh"
#include "../include/bulk.cuh"
#include "../include/launches.cuh"

#define ALL 0xffffffffu
#define S ((BITS + 1) / 8) // digits
#define DIAGS (2 * S - 1) // sums of places
#define CHAINS (BITS == 15 ? 2 : 1) // of a lane: integers that it takes one after the other
#define ROWS 16 // of a strip
#define BLOCK 64 // columns of a mask word
#define SLOTS 4 // stages, at most

// mma is d += a·b, exactly as long as sums fit.
__device__ __forceinline__ void mma(int (&d)[4], const u32 (&a)[4], uint2 b) {
    asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y));
}

// transpose gathers four integers' bytes by place.
__device__ __forceinline__ void transpose(u32 (&place)[4], const u32 (&x)[4]) {
    u32 a = __byte_perm(x[0], x[1], 0x5140), b = __byte_perm(x[2], x[3], 0x5140);
    place[0] = __byte_perm(a, b, 0x5410), place[1] = __byte_perm(a, b, 0x7632);
    a = __byte_perm(x[0], x[1], 0x7362), b = __byte_perm(x[2], x[3], 0x7362);
    place[2] = __byte_perm(a, b, 0x5410), place[3] = __byte_perm(a, b, 0x7632);
}

// shared loads a word, or a half, of shared memory.
__device__ __forceinline__ u32 shared(u32 at) {
    u32 x;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(at));
    return x;
}
__device__ __forceinline__ u32 shared_half(u32 at) {
    u32 x;
    asm volatile("ld.shared.u16 %0, [%1];" : "=r"(x) : "r"(at));
    return x;
}

// Of four bits, the lower half of a word of the table is the selector that brings the first bytes to the places of
// those that are set, and zeros to the others; the upper half is 128 for each that is set.
__device__ __forceinline__ u32 table_word(u32 bits) {
    u32 selector = 0, rank = 0;
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        bool set = bits >> i & 1;
        selector |= (set ? rank : 4) << (4 * i);
        rank += set;
    }
    return selector | rank << 23;
}

// Chains is where the next integers of the lane are: at p = 15 for rows 0 to 7 and 8 to 15 apart; at p = 47 the upper 16
// bits too.
struct Chains {
    u32 at[CHAINS], high;
};

// fragment takes register R of a step: four columns of a row, by place. `word` is the table's for their bits.
template <int R> __device__ __forceinline__ void fragment(u32 (&a)[S][4], Chains &c, u32 word) {
    u32 &at = c.at[R % CHAINS], x[4], place[4];
#pragma unroll
    for (int i = 0; i < 4; i++) x[i] = BITS == 15 ? shared_half(at + 128 * i) : shared(at + 128 * i);
    at += word >> 16;
    transpose(place, x);
#pragma unroll
    for (int d = 0; d < (S < 4 ? S : 4); d++) a[d][R] = __byte_perm(place[d], 0, word);
#if S > 4
#pragma unroll
    for (int i = 0; i < 4; i++) x[i] = shared_half(c.high + 64 * i);
    c.high += word >> 17;
    transpose(place, x);
    a[4][R] = __byte_perm(place[0], 0, word), a[5][R] = __byte_perm(place[1], 0, word);
#endif
}

// step multiplies 32 columns of A.
__device__ __forceinline__ void step(int (&sum)[DIAGS][4], const u32 *words, Chains &chains, const uint2 (&b)[S]) {
    u32 a[S][4];
    fragment<0>(a, chains, words[0]);
    fragment<1>(a, chains, words[1]);
    fragment<2>(a, chains, words[2]);
    fragment<3>(a, chains, words[3]);
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

// Pieces is the pieces of the strips that a warp loads, one strip after the other. Lane i knows where the i-th of this
// strip and of the next one begin and end, in units of 128 bytes; and the units of the piece in slot i.
struct Pieces {
    const unsigned char *ints;
    const u32 *offsets; // of the warp's first piece of strip 0
    u32 count, ring, barrier, slots, stride, tiles, end, lane; // stride: CTAs; end: of numbers of tiles
    u32 number, piece, first, last, next_first, next_last, units;

    __device__ __forceinline__ void look(u32 of, u32 per_strip) {
        if (of >= end || lane >= count) return;
        const u32 *at = offsets + (size_t)(of / tiles) * per_strip + lane * WARPS;
        next_first = __ldg(at), next_last = __ldg(at + 1);
    }
    // begin goes to a tile.
    __device__ __forceinline__ void begin(u32 of, u32 per_strip) {
        number = of, piece = 0, first = next_first, last = next_last;
        look(of + stride, per_strip);
    }
    // fetch starts loading the next piece into a slot.
    __device__ __forceinline__ void fetch(u32 slot, const Params &p) {
        if (number >= end) return;
        u32 from = __shfl_sync(ALL, first, piece), n = __shfl_sync(ALL, last, piece) - from;
        if (lane == slot) units = n;
        if (lane == 0) {
            u32 bar = barrier + 8 * slot;
            barrier_expect(bar, n * 128);
            asm volatile(
                "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                    ring + slot * p.longest),
                "l"(ints + (size_t)from * 128), "r"(n * 128), "r"(bar)
                : "memory");
        }
        if (++piece == count) begin(number + stride, p.pieces);
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
    Pieces pieces;
    pieces.ints = ints, pieces.offsets = rows + p.heavy + warp, pieces.lane = lane;
    pieces.count = warp < p.pieces ? (p.pieces - warp + WARPS - 1) / WARPS : 0;
    pieces.ring = shared_address(memory) + warp * RING, pieces.barrier = shared_address(&barriers[warp][0]);
    pieces.slots = min((u32)RING / p.longest, (u32)SLOTS), pieces.tiles = tiles, pieces.end = p.items * tiles;
    pieces.stride = gridDim.x * gridDim.z;
    pieces.next_first = pieces.next_last = pieces.units = 0;
    u32 number = blockIdx.x + blockIdx.z * p.width, slots = pieces.slots;
    if (number >= pieces.end) return;
    if (lane == 0) {
        for (u32 i = 0; i < SLOTS; i++) barrier_init(pieces.barrier + 8 * i, 1);
        barrier_fence();
    }
    if (threadIdx.x < 16) table[threadIdx.x] = table_word(threadIdx.x);
    pieces.look(number, p.pieces);
    __syncwarp();
    if (pieces.count > 0) {
        pieces.begin(number, p.pieces);
        for (u32 i = 0; i < slots; i++) pieces.fetch(i, p);
    }
    for (u32 i = threadIdx.x; i < 2 * DIAGS * 128; i += 32 * WARPS) sums[i] = 0;
    __syncthreads();
    launches_before();
    launches_after();
    const uint2 *digits = (const uint2 *)(q + p.first) + lane;
    u32 slot = 0, parity = 0, base = warp * p.per, tile_words = p.ldq * (2 * S * 32), words = shared_address(table);
    uint2 now[2][S];
    if (pieces.count > 0) load(now, digits + (size_t)(number % tiles) * tile_words, base);
    for (u32 turn = 0; number < pieces.end; number += pieces.stride, turn ^= 1) {
        u32 strip = number / tiles, tile = number % tiles;
        const uint2 *mine = digits + (size_t)tile * tile_words,
                    *behind = digits + (size_t)((number + pieces.stride) % tiles) * tile_words;
        int sum[DIAGS][4] = {};
#pragma unroll 1
        for (u32 i = 0; i < pieces.count; i++) {
            u32 first = base + i * WARPS * p.per, blocks = min(p.per, p.ldq - first);
            bool more = i + 1 < pieces.count;
            barrier_wait(pieces.barrier + 8 * slot, parity);
            u32 masks = pieces.ring + slot * p.longest + 4 * lane;
            Chains chains;
#pragma unroll
            for (int h = 0; h < CHAINS; h++) chains.at[h] = masks + blocks * 128 + 2 * h;
#if BITS == 47
            u32 units = __shfl_sync(ALL, pieces.units, slot) - blocks; // rows of 128 bytes, then as many of 64
            chains.high = masks + blocks * 128 + units / 3 * 256 - 2 * lane;
#endif
#pragma unroll 1
            for (u32 k = 0; k < blocks; k++) {
                uint2 next[2][S];
                bool here = k + 1 < blocks;
                load(next, here || more ? mine : behind, here ? first + k + 1 : more ? first + WARPS * p.per : base);
                u32 mask = shared(masks + k * 128), word[8];
#pragma unroll
                for (int r = 0; r < 8; r++)
                    word[r] = shared(words + (r == 0 ? mask << 2 & 60 : mask >> (4 * r - 2) & 60));
                step(sum, word, chains, now[0]);
                step(sum, word + 4, chains, now[1]);
#pragma unroll
                for (int d = 0; d < S; d++) now[0][d] = next[0][d], now[1][d] = next[1][d];
            }
            __syncwarp();
            pieces.fetch(slot, p);
            if (++slot == slots) slot = 0, parity ^= 1;
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
