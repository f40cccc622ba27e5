// Computes: C (rows × n) = alpha·A·B + beta·C reproducibly in fixed point (RFX-p, p = BITS) for few columns, A in
// strips of 16 rows as pairs of entries, on sparse matrix units of 8-bit integers (mma.sp.m16n8k64). pairs.go explains
// the packing.
// Tile: a CTA computes (16·p.warps × 8). A warp takes a strip, or some of its segments if there are more warps than
// strips; sums of a strip are added in shared memory.
// Data movement: bulk copies load segments into the warp's stage buffer in shared memory, ahead of time. A lane loads
// the pairs that eight bits tell, one behind the other; a byte permute for each digit puts two of them into a register.
// Digits of B come in the order of fragments, one block ahead, for all warps from the first-level cache.
// Bound by: latency, of the loads of B and of a block's instructions, which a multiprocessor has few warps to hide.
// Constants: BITS (p), WARPS, STAGE (bytes of a warp's stage buffer), CTAS (of a multiprocessor).

#include "store.cuh"
#include "../include/bulk.cuh"
#include "../include/launches.cuh"

#define S ((BITS + 1) / 8) // digits
#define DIAGS (2 * S - 1) // sums of places
#define ROWS 16 // of a strip
#define SLOTS 4 // stages, at most
#define PAIR (4 * WORDS) // bytes of a pair: those of the lowest digits first
#define DOUBLED 0x80000000u // of a strip's extra blocks: see rfx.Pairs
#define WORDS ((S + 1) / 2) // registers of a pair: of two digits each

// mma is d += a·b, exactly as long as sums fit. `places` has the columns of a's elements.
__device__ __forceinline__ void mma(int (&d)[4], const u32 (&a)[4], uint2 lower, uint2 upper, u32 places) {
    asm("mma.sp.sync.aligned.m16n8k64.row.col.s32.s8.s8.s32 "
        "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9,%10,%11},{%0,%1,%2,%3},%12,0;"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(lower.x), "r"(lower.y), "r"(upper.x), "r"(upper.y),
          "r"(places));
}

// pair takes a lane's next pair if it has one there, else zeros.
template <int BIT> __device__ __forceinline__ void pair(u32 (&w)[WORDS], u32 &at, u32 bits) {
#if S == 2
    asm volatile("{ .reg .pred p; .reg .b32 t; and.b32 t, %2, %3; setp.ne.b32 p, t, 0; mov.b32 %0, 0; "
                 "@p ld.shared.b32 %0, [%1]; @p add.u32 %1, %1, %4; }"
                 : "=&r"(w[0]), "+r"(at)
                 : "r"(bits), "n"(1 << BIT), "n"(PAIR));
#elif WORDS == 2
    asm volatile("{ .reg .pred p; .reg .b32 t; and.b32 t, %3, %4; setp.ne.b32 p, t, 0; mov.b32 %0, 0; mov.b32 %1, 0; "
                 "@p ld.shared.v2.b32 {%0, %1}, [%2]; @p add.u32 %2, %2, %5; }"
                 : "=&r"(w[0]), "=&r"(w[1]), "+r"(at)
                 : "r"(bits), "n"(1 << BIT), "n"(PAIR));
#else
    asm volatile("{ .reg .pred p; .reg .b32 t; and.b32 t, %4, %5; setp.ne.b32 p, t, 0; "
                 "mov.b32 %0, 0; mov.b32 %1, 0; mov.b32 %2, 0; "
                 "@p ld.shared.b32 %0, [%3]; @p ld.shared.b32 %1, [%3+4]; @p ld.shared.b32 %2, [%3+8]; "
                 "@p add.u32 %3, %3, %6; }"
                 : "=&r"(w[0]), "=&r"(w[1]), "=&r"(w[2]), "+r"(at)
                 : "r"(bits), "n"(1 << BIT), "n"(PAIR));
#endif
}

// fragment takes register R of a block: two pairs, which are of eight columns of a row, by digits.
template <int R> __device__ __forceinline__ void fragment(u32 (&a)[S][4], u32 &at, u32 bits) {
    u32 x[WORDS], y[WORDS];
    pair<2 * R>(x, at, bits);
    pair<2 * R + 1>(y, at, bits);
#pragma unroll
    for (int d = 0; d < S; d++)
        a[d][R] = __byte_perm(x[d / 2], y[d / 2], d % 2 != 0 ? 0x7632 : 0x5410);
}

// Block is a block as a lane sees it: the address of its first pair, its bits, and the columns of slots.
struct Block {
    u32 at, bits, places;
};

// shared and shared16 load a word and half of one from shared memory.
__device__ __forceinline__ u32 shared(u32 at) {
    u32 x;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(at));
    return x;
}
__device__ __forceinline__ u32 shared16(u32 at) {
    u32 x;
    asm volatile("ld.shared.u16 %0, [%1];" : "=r"(x) : "r"(at));
    return x;
}

// Segment is n blocks in shared memory: see rfx.Pairs.
struct Segment {
    u32 groups, starts, places, lanes, pairs; // addresses; places and lanes of this lane

    __device__ __forceinline__ Segment(u32 at, u32 n, bool extra, u32 lane) {
        groups = at;
        starts = groups + (extra ? 32 * n : 0);
        places = starts + (2 * n + 15 & ~15u) + 4 * lane;
        lanes = places + 128 * n - 2 * lane;
        pairs = places - 4 * lane + 192 * n;
    }
    __device__ __forceinline__ Block block(u32 k) const {
        u32 lane = shared16(lanes + 64 * k);
        return {pairs + (shared16(starts + 2 * k) + (lane >> 8)) * PAIR, lane & 255, shared(places + 128 * k)};
    }
};

// step multiplies a block.
__device__ __forceinline__ void step(int (&sum)[DIAGS][4], Block block, const uint2 (&b)[2][S]) {
    u32 a[S][4];
    fragment<0>(a, block.at, block.bits);
    fragment<1>(a, block.at, block.bits);
    fragment<2>(a, block.at, block.bits);
    fragment<3>(a, block.at, block.bits);
    // Sums of the same place are apart, so that none waits for the one before.
#pragma unroll
    for (int i = 0; i < S; i++)
#pragma unroll
        for (int k = 0; k < S; k++) {
            int j = i & 1 ? S - 1 - k : k;
            mma(sum[i + j], a[i], b[0][j], b[1][j], block.places);
        }
}

// load reads the digits of B for a block of 64 columns.
__device__ __forceinline__ void load(uint2 (&b)[2][S], const uint2 *q, u32 block) {
#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
        for (int d = 0; d < S; d++) b[t][d] = __ldg(q + ((size_t)block * 2 + t) * (S * 32) + d * 32);
}

// gather reads the digits of B for an extra block: of the groups of four columns that a list in shared memory names.
__device__ __forceinline__ void gather(uint2 (&b)[2][S], const u32 *q, u32 list, u32 lane) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        u32 g = shared16(list + 8 * i + lane % 4 * 2);
        const u32 *from = q + (size_t)(g / 8) * (S * 64) + (lane / 4 * 4 + g % 4) * 2 + g / 4 % 2;
#pragma unroll
        for (int d = 0; d < S; d++) (i % 2 != 0 ? b[i / 2][d].y : b[i / 2][d].x) = __ldg(from + d * 64);
    }
}

// Stream is the segments that a warp loads, ahead of those that it multiplies.
struct Stream {
    const unsigned char *ints;
    const u32 *offsets; // of the strip's segments
    u32 next, end; // numbers of the next segment and past the last one
    u32 from, to; // where the next one lies, in units of 16 bytes
    u32 ring, barriers, longest;

    __device__ __forceinline__ void look() {
        if (next < end) from = __ldg(offsets + next), to = __ldg(offsets + next + 1);
    }
    // fetch starts loading the next segment into a slot.
    __device__ __forceinline__ void fetch(u32 slot, u32 lane) {
        if (next >= end) return;
        if (lane == 0) {
            u32 bar = barriers + 8 * slot;
            barrier_expect(bar, (to - from) * 16);
            asm volatile(
                "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                    ring + slot * longest),
                "l"(ints + (size_t)from * 16), "r"((to - from) * 16), "r"(bar)
                : "memory");
        }
        next++;
        look();
    }
};

extern "C" __global__ void __launch_bounds__(32 * WARPS, CTAS)
    rfx(const u32 *__restrict__ rows, const unsigned char *__restrict__ ints, const void *__restrict__ values,
        const void *__restrict__ b, const u32 *__restrict__ q, const u32 *__restrict__ bias, u32 *c, void *part,
        const __grid_constant__ Params p) {
    extern __shared__ __align__(128) unsigned char memory[]; // stage buffers, later each warp's sums
    __shared__ u64 barriers[WARPS][SLOTS];
    u32 lane = threadIdx.x % 32, warp = __shfl_sync(0xffffffffu, threadIdx.x / 32, 0), tiles = (p.n + 7) / 8;
    u32 number = blockIdx.x + blockIdx.z * p.width, tile = number % tiles, first = number / tiles * p.warps;
    u32 shares = WARPS / p.warps, share = warp / p.warps, strip = first + warp % p.warps;
    int sum[DIAGS][4] = {};
    if (share < shares && strip < p.items) {
        u32 extras = __ldg(rows + p.heavy + 2 * strip + 1), slots = min((u32)STAGE / p.longest, (u32)SLOTS);
        u32 doubled = extras / DOUBLED, regular = p.ldq << doubled, segments = (regular + p.per - 1) / p.per;
        extras %= DOUBLED;
        u32 all = segments + (extras + p.per - 1) / p.per, i = all * share / shares, end = all * (share + 1) / shares;
        Stream stream;
        stream.ints = ints, stream.offsets = rows + p.heavy + 2 * p.items + __ldg(rows + p.heavy + 2 * strip);
        stream.next = i, stream.end = end, stream.longest = p.longest, stream.from = stream.to = 0;
        stream.ring = shared_address(memory) + warp * STAGE, stream.barriers = shared_address(&barriers[warp][0]);
        if (lane == 0) {
            for (u32 k = 0; k < SLOTS; k++) barrier_init(stream.barriers + 8 * k, 1);
            barrier_fence();
        }
        __syncwarp();
        stream.look();
        for (u32 k = 0; k < slots; k++) stream.fetch(k, lane);
        launches_before();
        launches_after();
        const u32 *digits = q + p.first + (size_t)tile * p.ldq * (2 * S * 64);
        u32 slot = 0, parity = 0, next_block = i * p.per;
        uint2 now[2][S];
        if (i < min(end, segments)) load(now, (const uint2 *)digits + lane, next_block >> doubled);
#pragma unroll 1
        for (; i < end; i++) {
            bool extra = i >= segments;
            u32 n = extra ? min(p.per, extras - (i - segments) * p.per) : min(p.per, regular - i * p.per);
            barrier_wait(stream.barriers + 8 * slot, parity);
            Segment segment(stream.ring + slot * p.longest, n, extra, lane);
            if (extra) {
#pragma unroll 1
                for (u32 k = 0; k < n; k++) {
                    gather(now, digits, segment.groups + 32 * k, lane);
                    step(sum, segment.block(k), now);
                }
            } else {
                Block block = segment.block(0);
#if BUFFERS == 1
#pragma unroll 1
                for (u32 k = 0; k < n; k++) {
                    next_block++;
                    Block behind = segment.block(min(k + 1, n - 1));
                    step(sum, block, now);
                    block = behind;
                    load(now, (const uint2 *)digits + lane, min(next_block, regular - 1) >> doubled);
                }
#else
#pragma unroll 2 // so that nothing waits for the digits of B of the next block
                for (u32 k = 0; k < n; k++) {
                    uint2 next[2][S];
                    next_block++;
                    load(next, (const uint2 *)digits + lane, min(next_block, regular - 1) >> doubled);
                    Block behind = segment.block(min(k + 1, n - 1));
                    step(sum, block, now);
                    block = behind;
#pragma unroll
                    for (int d = 0; d < S; d++) now[0][d] = next[0][d], now[1][d] = next[1][d];
                }
#endif
            }
            __syncwarp();
            stream.fetch(slot, lane);
            if (++slot == slots) slot = 0, parity ^= 1;
        }
    } else {
        launches_before();
        launches_after();
    }
    int *sums = (int *)(memory + warp * STAGE);
#pragma unroll
    for (int d = 0; d < DIAGS; d++)
#pragma unroll
        for (int i = 0; i < 4; i++) sums[d * 128 + i * 32 + lane] = sum[d][i];
    __syncthreads();
#pragma unroll 1
    for (u32 o = threadIdx.x; o < 128 * p.warps; o += 32 * WARPS) {
        u32 of = o / 128, at = o % 128, i = at / 32;
        u32 row = (first + of) * ROWS + at % 32 / 4 + i / 2 * 8, col = 8 * tile + at % 4 * 2 + i % 2;
        if (row >= p.heavy / 2 - 1 || col >= p.n) continue;
        i128 t = 0;
#pragma unroll
        for (int d = DIAGS - 1; d >= 0; d--) {
            int x = 0;
            for (u32 k = of; k < shares * p.warps; k += p.warps) x += ((int *)(memory + k * STAGE))[d * 128 + at];
            t = (t << 8) + x;
        }
        store(row, col, t, rows, values, b, q, bias, c, p);
    }
}
