// Computes: C (rows × n) = alpha·A·B + beta·C reproducibly in fixed point (RFX-p, p = BITS) for few columns, A in strips
// of 16 rows, on matrix units of 8-bit integers (mma.m16n8k32). strips.go explains the packing.
// Tile: a CTA computes (16 × 8) at a time. Its warps take pieces of the strip, ranges of columns of A, by turns, and add
// their sums in shared memory.
// Data movement: bulk copies load a piece's masks and digits into the warp's stage buffer in shared memory, ahead of the
// strip's end. A lane loads the digits of its next four entries for four positions; byte permutes gather them by place,
// and bring them to the positions that four bits of the mask tell. Digits of B come in the order of fragments, one block
// ahead.
// Bound by: the bytes of A; with few entries by integer instructions, whose number does not depend on them.
// Constants: BITS (p), WARPS, RING (bytes of a warp's stage buffer), BLOCKS.

#include "store.cuh"
#include "../include/bulk.cuh"
#include "../include/launches.cuh"

#define ALL 0xffffffffu
#define S ((BITS + 1) / 8) // digits
#define DIAGS (2 * S - 1) // sums of places
#define ROWS 16 // of a strip
#define SLOTS 4 // stages, at most

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

// fragment takes register R of a step: four columns of a row, by place. `bits` has in its bits 0, 4, 8 and 12 which of
// them have an entry. The lane's digits are a stream of bits, whose words are 128 bytes apart from `at` on; `next` is the
// number of the next one.
template <int R> __device__ __forceinline__ void fragment(u32 (&a)[S][4], u32 at, u32 &next, u32 bits) {
    u32 w[S + 1], place[S];
    at += next / 32 * 128;
#pragma unroll
    for (int i = 0; i < S + (S % 4 != 0); i++) w[i] = shared(at + 128 * i);
    if (S % 4 != 0)
#pragma unroll
        for (int i = 0; i < S; i++) w[i] = __funnelshift_r(w[i], w[i + 1], next);
    next += (bits * 0x11110000u >> 28) * (8 * S); // the fourth digit is the sum of all
    gather(place, w);
    // A digit of the selector is the number of entries before it, plus 4, which selects a zero, where there is none.
    u32 selector = bits * (0x1110 - 4) + 0x4444;
#pragma unroll
    for (int d = 0; d < S; d++) a[d][R] = __byte_perm(place[d], 0, selector);
}

// step multiplies 32 columns of A, whose bits of the mask are those from BIT on.
template <int BIT>
__device__ __forceinline__ void step(int (&sum)[DIAGS][4], u32 mask, u32 at, u32 &next, const uint2 (&b)[S]) {
    u32 a[S][4];
    fragment<0>(a, at, next, mask >> (BIT + 0) & 0x1111);
    fragment<1>(a, at, next, mask >> (BIT + 1) & 0x1111);
    fragment<2>(a, at, next, mask >> (BIT + 2) & 0x1111);
    fragment<3>(a, at, next, mask >> (BIT + 3) & 0x1111);
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

// Pieces is the pieces of the strips that a warp loads, every WARPS-th of each, one strip after the other. Lane i knows
// where the i-th of this strip and of the next one begin and end, in units of 128 bytes: there are at most 32.
struct Pieces {
    const unsigned char *ints;
    const u32 *offsets; // of the warp's first piece of strip 0
    u32 of_strip, count, ring, barrier, slots, tiles, end, lane; // end: of numbers of tiles
    u32 number, piece, first, last, next_first, next_last;

    // look reads where the pieces of the next strip lie.
    __device__ __forceinline__ void look(u32 of) {
        if (of >= end || lane >= count) return;
        const u32 *at = offsets + (size_t)(of / tiles) * of_strip + lane * WARPS;
        next_first = __ldg(at), next_last = __ldg(at + 1);
    }
    // begin goes to a strip.
    __device__ __forceinline__ void begin(u32 of, u32 stride) {
        number = of, piece = 0, first = next_first, last = next_last;
        look(of + stride);
    }
    // fetch starts loading the next piece into a slot.
    __device__ __forceinline__ void fetch(u32 slot, u32 stride, const Params &p) {
        if (number >= end) return;
        u32 from = __shfl_sync(ALL, first, piece), n = __shfl_sync(ALL, last, piece) - from;
        if (lane == 0) {
            u32 bar = barrier + 8 * slot;
            barrier_expect(bar, n * 128);
            asm volatile(
                "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                    ring + slot * p.longest),
                "l"(ints + (size_t)from * 128), "r"(n * 128), "r"(bar)
                : "memory");
        }
        if (++piece == count) begin(number + stride, stride);
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
    int *sums = (int *)(memory + WARPS * RING);
    u32 lane = threadIdx.x % 32, warp = __shfl_sync(ALL, threadIdx.x / 32, 0), tiles = (p.n + 7) / 8;
    u32 number = blockIdx.x + blockIdx.z * p.width, stride = gridDim.x * gridDim.z, end = p.items * tiles;
    u32 count = warp < p.pieces ? (p.pieces - warp + WARPS - 1) / WARPS : 0;
    u32 slots = min((u32)RING / p.longest, (u32)SLOTS);
    Pieces pieces;
    pieces.ints = ints, pieces.offsets = rows + p.heavy + warp, pieces.of_strip = p.pieces, pieces.count = count;
    pieces.ring = shared_address(memory) + warp * RING, pieces.barrier = shared_address(&barriers[warp][0]);
    pieces.slots = slots, pieces.tiles = tiles, pieces.end = end, pieces.lane = lane;
    pieces.next_first = pieces.next_last = 0;
    if (number >= end) return;
    if (lane == 0) {
        for (u32 i = 0; i < SLOTS; i++) barrier_init(pieces.barrier + 8 * i, 1);
        barrier_fence();
    }
    pieces.look(number);
    __syncwarp();
    if (count > 0) {
        pieces.begin(number, stride);
        for (u32 i = 0; i < slots; i++) pieces.fetch(i, stride, p);
    }
    for (u32 i = threadIdx.x; i < 2 * DIAGS * 128; i += 32 * WARPS) sums[i] = 0;
    __syncthreads();
    launches_before();
    launches_after();
    const uint2 *digits = (const uint2 *)(q + p.first) + lane;
    u32 slot = 0, parity = 0, base = warp * p.per, tile_words = p.ldq * (2 * S * 32);
    uint2 now[2][S];
    if (count > 0) load(now, digits + (size_t)(number % tiles) * tile_words, base);
    for (u32 turn = 0; number < end; number += stride, turn ^= 1) {
        u32 strip = number / tiles, tile = number % tiles;
        const uint2 *here = digits + (size_t)tile * tile_words,
                    *behind = digits + (size_t)((number + stride) % tiles) * tile_words;
        int sum[DIAGS][4] = {};
#pragma unroll 1
        for (u32 i = 0; i < count; i++) {
            u32 first = base + i * WARPS * p.per, blocks = min(p.per, p.ldq - first);
            bool more = i + 1 < count;
            barrier_wait(pieces.barrier + 8 * slot, parity);
            u32 masks = pieces.ring + slot * p.longest + 4 * lane, at = masks + blocks * 128, next_bit = 0;
#pragma unroll 1
            for (u32 k = 0; k < blocks; k++) {
                uint2 next[2][S];
                bool inside = k + 1 < blocks;
                load(next, inside || more ? here : behind,
                     inside ? first + k + 1 : more ? first + WARPS * p.per : base);
                u32 mask = shared(masks + k * 128);
                step<0>(sum, mask, at, next_bit, now[0]);
                step<16>(sum, mask, at, next_bit, now[1]);
#pragma unroll
                for (int d = 0; d < S; d++) now[0][d] = next[0][d], now[1][d] = next[1][d];
            }
            __syncwarp();
            pieces.fetch(slot, stride, p);
            if (++slot == slots) slot = 0, parity ^= 1;
        }
        int *to = sums + turn * DIAGS * 128;
        if (count > 0) put(shared_address(to), sum, lane);
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
