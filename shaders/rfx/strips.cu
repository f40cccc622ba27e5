// Computes: C (rows × n) = alpha·A·B + beta·C reproducibly in fixed point (RFX-p, p = BITS) for few columns, A in strips
// of 16 rows, on matrix units of 8-bit integers (mma.m16n8k32). strips.go explains the packing.
// Tile: a CTA computes (16 × 8). Its warps take pieces of the strip, ranges of columns of A, by turns, and add their
// sums in shared memory.
// Data movement: bulk copies load a piece's masks and integers into the warp's stage buffer in shared memory. A lane
// takes an integer for each bit of its mask, and byte permutes put digits of four columns into an operand word. Digits
// of B come in the order of fragments, one step ahead.
// Bound by: the bytes of A, and one load from shared memory for each position of A.
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
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
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

// take reads four positions, the bits from BIT on of a mask: an integer, the next one of the chain at `at`, or 0. At p =
// 47 the chain at `high` has the upper 16 bits. (Branches around the loads become predicates, seven of them by one
// instruction.)
#define TAKE(LABEL, BIT, LOAD) \
    "and.b32 t, %5, " BIT "; setp.eq.u32 none, t, 0; @none bra " LABEL "; " LOAD " add.u32 %0, %0, 128; " LABEL ":\n"
#define BITS_OF(BIT) "n"(1u << (BIT)), "n"(2u << (BIT)), "n"(4u << (BIT)), "n"(8u << (BIT))
#if BITS == 15
#define LOAD(X) "ld.shared.u16 " X ", [%0];"
#else
#define LOAD(X) "ld.shared.u32 " X ", [%0];"
#endif
template <int BIT> __device__ __forceinline__ void take(u32 mask, u32 &at, u32 (&x)[4]) {
    // clang-format off
    asm volatile("{.reg .pred none; .reg .b32 t;\n"
                 "mov.b32 %1, 0; mov.b32 %2, 0; mov.b32 %3, 0; mov.b32 %4, 0;\n"
                 TAKE("L0", "%6", LOAD("%1")) TAKE("L1", "%7", LOAD("%2"))
                 TAKE("L2", "%8", LOAD("%3")) TAKE("L3", "%9", LOAD("%4"))
                 "}\n"
                 : "+&r"(at), "=&r"(x[0]), "=&r"(x[1]), "=&r"(x[2]), "=&r"(x[3])
                 : "r"(mask), BITS_OF(BIT)
                 : "memory");
    // clang-format on
}
#define TAKE_LONG(LABEL, BIT, X, Y) \
    "and.b32 t, %10, " BIT "; setp.eq.u32 none, t, 0; @none bra " LABEL "; ld.shared.u32 " X ", [%0]; ld.shared.u16 " Y \
    ", [%1]; add.u32 %0, %0, 128; add.u32 %1, %1, 64; " LABEL ":\n"
template <int BIT>
__device__ __forceinline__ void take_long(u32 mask, u32 &at, u32 &high, u32 (&x)[4], u32 (&y)[4]) {
    // clang-format off
    asm volatile("{.reg .pred none; .reg .b32 t;\n"
                 "mov.b32 %2, 0; mov.b32 %3, 0; mov.b32 %4, 0; mov.b32 %5, 0;\n"
                 "mov.b32 %6, 0; mov.b32 %7, 0; mov.b32 %8, 0; mov.b32 %9, 0;\n"
                 TAKE_LONG("L0", "%11", "%2", "%6") TAKE_LONG("L1", "%12", "%3", "%7")
                 TAKE_LONG("L2", "%13", "%4", "%8") TAKE_LONG("L3", "%14", "%5", "%9")
                 "}\n"
                 : "+&r"(at), "+&r"(high), "=&r"(x[0]), "=&r"(x[1]), "=&r"(x[2]), "=&r"(x[3]), "=&r"(y[0]), "=&r"(y[1]),
                   "=&r"(y[2]), "=&r"(y[3])
                 : "r"(mask), BITS_OF(BIT)
                 : "memory");
    // clang-format on
}

// fragment takes register R of step T of a block: four columns of a row, by place.
template <int T, int R>
__device__ __forceinline__ void fragment(u32 (&a)[S][4], u32 mask, u32 (&at)[CHAINS], u32 &high) {
    u32 x[4], place[4];
#if BITS == 47
    u32 y[4];
    take_long<16 * T + 4 * R>(mask, at[0], high, x, y);
#else
    take<16 * T + 4 * R>(mask, at[R % CHAINS], x);
#endif
    transpose(place, x);
#pragma unroll
    for (int d = 0; d < (S < 4 ? S : 4); d++) a[d][R] = place[d];
#if S > 4
    transpose(place, y);
    a[4][R] = place[0], a[5][R] = place[1];
#endif
}

// step multiplies 32 columns of A.
template <int T>
__device__ __forceinline__ void step(int (&sum)[DIAGS][4], u32 mask, u32 (&at)[CHAINS], u32 &high,
                                     const uint2 (&b)[S]) {
    u32 a[S][4];
    fragment<T, 0>(a, mask, at, high);
    fragment<T, 1>(a, mask, at, high);
    fragment<T, 2>(a, mask, at, high);
    fragment<T, 3>(a, mask, at, high);
#pragma unroll
    for (int i = 0; i < S; i++)
#pragma unroll
        for (int j = 0; j < S; j++) mma(sum[i + j], a[i], b[j]);
}

__device__ __forceinline__ u32 shared_word(u32 at) {
    u32 x;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(at) : "memory");
    return x;
}

// load reads the digits of B for a block.
__device__ __forceinline__ void load(uint2 (&b)[2][S], const uint2 *q, u32 block) {
#pragma unroll
    for (int t = 0; t < 2; t++)
#pragma unroll
        for (int d = 0; d < S; d++) b[t][d] = __ldg(q + ((size_t)block * 2 + t) * (S * 32) + d * 32);
}

// Pieces is a warp's pieces of a strip. Lane i knows where the i-th begins and ends, in units of 128 bytes.
struct Pieces {
    const unsigned char *ints;
    u32 begin, end, slot_bytes, ring, barrier;

    // fetch starts loading piece i into a slot.
    __device__ __forceinline__ void fetch(u32 i, u32 slot, u32 lane) const {
        u32 first = __shfl_sync(ALL, begin, i), bytes = (__shfl_sync(ALL, end, i) - first) * 128;
        if (lane != 0) return;
        u32 bar = barrier + 8 * slot;
        barrier_expect(bar, bytes);
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                         ring + slot * slot_bytes),
                     "l"(ints + (size_t)first * 128), "r"(bytes), "r"(bar)
                     : "memory");
    }
};

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)
    rfx(const u32 *__restrict__ rows, const unsigned char *__restrict__ ints, const void *__restrict__ values,
        const void *__restrict__ b, const u32 *__restrict__ q, const u32 *__restrict__ bias, u32 *c, void *part,
        const Params p) {
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ u64 barriers[WARPS][SLOTS];
    u32 lane = threadIdx.x % 32, warp = __shfl_sync(ALL, threadIdx.x / 32, 0), strip = blockIdx.x, tile = blockIdx.y;
    Pieces pieces = {ints, 0, 0, p.longest, shared_address(memory) + warp * RING, shared_address(&barriers[warp][0])};
    u32 count = warp < p.pieces ? (p.pieces - warp + WARPS - 1) / WARPS : 0;
    if (lane < count) {
        const u32 *at = rows + p.heavy + (size_t)strip * p.pieces + warp + lane * WARPS;
        pieces.begin = __ldg(at), pieces.end = __ldg(at + 1);
    }
    if (lane == 0) {
        for (u32 i = 0; i < SLOTS; i++) barrier_init(pieces.barrier + 8 * i, 1);
        barrier_fence();
    }
    __syncwarp();
    u32 slots = min((u32)RING / p.longest, (u32)SLOTS);
    for (u32 i = 0; i < min(slots, count); i++) pieces.fetch(i, i, lane);
    launches_before();
    launches_after();
    int sum[DIAGS][4] = {};
    const uint2 *digits = (const uint2 *)(q + p.first) + (size_t)tile * p.width * (2 * S * 32) + lane;
    u32 slot = 0, parity = 0;
    uint2 now[2][S];
    if (count > 0) load(now, digits, warp * p.per);
#pragma unroll 1
    for (u32 i = 0; i < count; i++) {
        u32 first = (warp + i * WARPS) * p.per, blocks = min(p.per, p.width - first),
            ahead = i + 1 < count ? first + WARPS * p.per : first;
        barrier_wait(pieces.barrier + 8 * slot, parity);
        u32 masks = pieces.ring + slot * p.longest + 4 * lane, chains = masks + blocks * 128, at[CHAINS], high = 0;
#pragma unroll
        for (int h = 0; h < CHAINS; h++) at[h] = chains + 2 * h;
#if BITS == 47
        u32 units = __shfl_sync(ALL, pieces.end - pieces.begin, i) - blocks;
        high = chains + units / 3 * 256 - 2 * lane; // rows of 128 bytes, then as many of 64
#endif
#pragma unroll 1
        for (u32 k = 0; k < blocks; k++) {
            uint2 next[2][S];
            load(next, digits, k + 1 < blocks ? first + k + 1 : ahead);
            u32 mask = shared_word(masks + k * 128);
            step<0>(sum, mask, at, high, now[0]);
            step<1>(sum, mask, at, high, now[1]);
#pragma unroll
            for (int d = 0; d < S; d++) now[0][d] = next[0][d], now[1][d] = next[1][d];
        }
        __syncwarp();
        if (i + slots < count) pieces.fetch(i + slots, slot, lane);
        if (++slot == slots) slot = 0, parity ^= 1;
    }
    __syncthreads(); // the stage buffers are done with
    int *sums = (int *)memory;
#pragma unroll
    for (int d = 0; d < DIAGS; d++)
        *(int4 *)(sums + (warp * DIAGS + d) * 128 + 4 * lane) = make_int4(sum[d][0], sum[d][1], sum[d][2], sum[d][3]);
    __syncthreads();
    u32 lines = p.heavy / 2 - 1; // rows of C
    for (u32 o = threadIdx.x; o < 128; o += 32 * WARPS) {
        u32 row = strip * ROWS + o / 16 + 8 * (o >> 1 & 1), col = 8 * tile + 2 * (o / 4 % 4) + (o & 1);
        if (row >= lines || col >= p.n) continue;
        i128 t = 0;
#pragma unroll
        for (int d = DIAGS - 1; d >= 0; d--) {
            int s = 0;
#pragma unroll
            for (int w = 0; w < WARPS; w++) s += sums[(w * DIAGS + d) * 128 + o];
            t = (t << 8) + s;
        }
        store(row, col, t, rows, values, b, q, bias, c, p);
    }
}
