// Computes: C = alpha·A·B + beta·C, A (rows × cols) in HRPB, f32 data: in tf32, or with SPLIT as three bf16 summands
// that hold all bits of f32.
// Tile: as kernel.cu: a team of one, two or four warps computes (16 × COLS) for a run of a panel's blocks. Lane (g, q),
// g = lane/4, has rows g and g + 8 of column q of both bricks: bit `lane` of each pattern word.
// Data movement: rows of B and blocks go through shared memory by cp.async, DEPTH copies deep, each warp on its own.
// (Straight to registers is slower: the lanes of an operand read four rows at a time, which takes L1 four times as long
// as shared memory.) Staged rows are 32 bytes out of step, and lanes are dealt quads of columns (quad), so that neither
// reads of shared memory nor stores to C waste bandwidth.
// Bound by: matrix instructions with SPLIT, shared memory else.
//
// SPLIT cuts a number into its first 8 significant bits, the next 8 and the last 8. Products of bf16 summands are
// exact. Six of the nine are summed: the others add less than 2^-21 of the whole product, and nothing where the numbers
// are short enough for sums to be exact in f32. The five small products have sums of their own, which are added at the
// end, so that the large sums lose no more than with bf16 data (docs/bound.md). All summands have the number's sign.
// Where a summand would be below bf16's range, or a number is not finite, outputs become NaN and are computed again
// from the entries alone.
//
// Constants: ENTRY, COLS (32, 64 or 128), WARPS = 4, BLOCK = 8, DEPTH, SPLIT (0 or 1), LEAST (CTAs that a
// multiprocessor has room for).

#include "params.h"

typedef float Elem;
__device__ __forceinline__ float to_float(float x) { return x; }
#include "hrpb.cuh"
#include "../include/tf32.cuh"

#define TILES (COLS / 8) // instructions along a row
#define QUADS (COLS / 32) // of a row: what a lane has of it
#define SUM_PITCH (COLS * 4 + 16) // bytes from a row of sums to the next
#define ACROSS (COLS / 4) // lanes that a row has, when it is copied or stored by rows
#define COPIES (BLOCK * ACROSS / 32) // of a lane, for a block
#define PITCH (COLS * 4 + 32) // bytes from a staged row to the next
#define PACKED (BLOCK * PITCH) // where a stage has the block
#define VALUES (PACKED + 2 * BLOCK) // and its values
#define STAGE (VALUES + ROWS * BLOCK * 4)
#define RING (DEPTH * STAGE) // bytes of a warp, and room for its sums

#include "sums.cuh"

// copy16 as in sums.cuh of the first bytes, then zeros.
__device__ __forceinline__ void copy16(u32 to, const void *from, u32 bytes) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
}

// quad returns the number, among 8 neighbouring quads of columns of C, of the quad that the instruction's column g has.
// The quads of even columns make whole sectors of C, and so do those of odd columns: one store writes the former,
// another the latter.
__device__ __forceinline__ u32 quad(u32 g) { return 0x65742130u >> (4 * g) & 7; }

// staged reads a lane's elements of a staged row. (These instructions keep their order, so that few registers hold
// prefetched values.)
__device__ __forceinline__ void staged(uint4 &x, const unsigned char *from) {
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "r"(shared_address(from))
                 : "memory");
}

// Values is a lane's elements of a block: of A rows g and g + 8 of column q of both bricks; of B two rows.
struct Values {
    u32 a[4];
    const unsigned char *from; // the rows
    // at is where the lane reads in a staged row.
    __device__ __forceinline__ Values(const unsigned char *stage, u32 lane, u32 at) : from(stage + at) {
        uint4 pattern = *(const uint4 *)(stage + PACKED);
        u32 bit = 1u << lane, w[4] = {pattern.x, pattern.y, pattern.z, pattern.w};
        const u32 *v = (const u32 *)(stage + VALUES);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            u32 value = v[__popc(w[i] & (bit - 1))]; // where the slot is empty it is there, but means nothing
            a[i] = w[i] & bit ? value : 0;
            v += __popc(w[i]);
        }
    }
    // quads reads quads i of both rows.
    __device__ __forceinline__ void quads(uint4 &x, uint4 &y, int i) const {
        staged(x, from + 128 * i), staged(y, from + 128 * i + 4 * PITCH);
    }
    // each calls f for all quads and prefetches the next one.
    template <class F> __device__ __forceinline__ void each(F f) const {
        uint4 x[2], y[2];
        quads(x[0], y[0], 0);
#pragma unroll
        for (int i = 0; i < QUADS; i++) {
            if (i + 1 < QUADS) quads(x[(i + 1) % 2], y[(i + 1) % 2], i + 1);
            f(i, x[i % 2], y[i % 2]);
        }
    }
};

#if SPLIT
// Summands of a number, each in the upper half of a word, truncated; lost collects the bits below the last.
struct Parts {
    u32 x[3];
    __device__ __forceinline__ Parts(u32 v, u32 &lost) {
        x[0] = v;
        x[1] = rest(x[0]);
        x[2] = rest(x[1]);
        lost |= x[2];
    }
    static __device__ __forceinline__ u32 rest(u32 v) {
        return __float_as_uint(__uint_as_float(v) - __uint_as_float(v & 0xffff0000u));
    }
};

// pairs makes operands of the parts of two numbers.
__device__ __forceinline__ void pairs(u32 (&p)[3], u32 u, u32 v, u32 &lost) {
    Parts x(u, lost), y(v, lost);
#pragma unroll
    for (int i = 0; i < 3; i++) p[i] = __byte_perm(x.x[i], y.x[i], 0x7632);
}

// Sums of a warp.
struct Sums {
    float acc[TILES][4] = {}, low[TILES][4] = {};
    u32 lost = 0;

    // multiply adds the products of a block. The sums of element j of quad 8·i + u are in tile 4·i + j.
    __device__ __forceinline__ void multiply(const Values &v) {
        u32 a0[3], a1[3];
        pairs(a0, v.a[0], v.a[2], lost);
        pairs(a1, v.a[1], v.a[3], lost);
        v.each([&](int i, const uint4 &x, const uint4 &y) {
            u32 b[4][3];
#pragma unroll
            for (int j = 0; j < 4; j++) pairs(b[j], word(x, j), word(y, j), lost);
            // Four tiles in turn: the sums of one wait for each other.
            each(acc, a0[0], a1[0], b, 0, i);
            each(low, a0[2], a1[2], b, 0, i);
            each(low, a0[1], a1[1], b, 1, i);
            each(low, a0[0], a1[0], b, 2, i);
            each(low, a0[1], a1[1], b, 0, i);
            each(low, a0[0], a1[0], b, 1, i);
        });
    }
    static __device__ __forceinline__ void each(float (&d)[TILES][4], u32 a0, u32 a1, const u32 (&b)[4][3], int part,
                                                int i) {
#pragma unroll
        for (int j = 0; j < 4; j++) mma_k8<BF16>(d[4 * i + j], a0, a1, b[j][part]);
    }
    // finish makes acc the sums.
    __device__ __forceinline__ void finish() {
        bool all = !__any_sync(ALL, lost & 0xffff);
#pragma unroll
        for (int i = 0; i < TILES; i++)
#pragma unroll
            for (int e = 0; e < 4; e++) acc[i][e] = all ? acc[i][e] + low[i][e] : __uint_as_float(0x7fffffff);
    }
};
#else
// rounded is the nearest tf32: the instruction itself would cut the low bits off.
__device__ __forceinline__ u32 rounded(u32 x) {
#if __CUDA_ARCH__ >= 900
    u32 r;
    asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(r) : "f"(__uint_as_float(x)));
    return r;
#else
    return tf32(x); // two instructions there
#endif
}

// Sums of a warp.
struct Sums {
    float acc[TILES][4] = {};

    // multiply adds the products of a block. The sums of element j of quad 8·i + u are in tile 4·i + j.
    __device__ __forceinline__ void multiply(const Values &v) {
        u32 a[4] = {rounded(v.a[0]), rounded(v.a[1]), rounded(v.a[2]), rounded(v.a[3])};
        v.each([&](int i, const uint4 &x, const uint4 &y) {
#pragma unroll
            for (int j = 0; j < 4; j++)
                mma8(acc[4 * i + j], a[0], a[1], a[2], a[3], rounded(word(x, j)), rounded(word(y, j)));
        });
    }
    __device__ __forceinline__ void finish() {}
};
#endif

// StageBuffer loads a warp's blocks into its stages. Column numbers and the block's end are prefetched a block early.
struct StageBuffer {
    u32 to, put = 0; // the buffer, in shared memory, and the stage that is filled next
    u32 count, lane; // blocks
    const u32 *columns, *sizes;
    const char *packed, *b;
    u32 pitch; // bytes from a row of B to the next
    u32 start = 0, end = 0;
    u32 bytes; // of a row that are the lane's and of B's columns: what lies past them must not matter
    u32 col[COPIES];

    __device__ __forceinline__ void look(u32 s) {
        s = min(s, count - 1);
        const u32 *c = columns + BLOCK * s + lane / ACROSS * COPIES;
        if (COPIES == 2) {
            uint2 v = __ldg((const uint2 *)c);
            col[0] = v.x, col[1] = v.y;
        } else
#pragma unroll
            for (int i = 0; i < COPIES; i += 4) {
                uint4 v = __ldg((const uint4 *)(c + i));
                col[i] = v.x, col[i + 1] = v.y, col[i + 2] = v.z, col[i + 3] = v.w;
            }
        end = __ldg(sizes + s + 1);
    }
    __device__ __forceinline__ void copy() {
        if (bytes > 0)
#pragma unroll
            for (int k = 0; k < COPIES; k++)
                copy16(to + put + (lane / ACROSS * COPIES + k) * PITCH + lane % ACROSS * 16, step(b, col[k], pitch),
                       bytes);
        for (u32 i = lane; i < end - start; i += 32) copy16(to + put + PACKED + 16 * i, packed + 16 * (u64)(start + i));
    }
    // clear zeroes the lane's columns past B's last, which copies skip.
    __device__ __forceinline__ void clear() {
#pragma unroll 1
        for (u32 i = 0; i < DEPTH * COPIES; i++)
            asm volatile(
                "st.shared.v4.u32 [%0], {%1, %1, %1, %1};" ::"r"(
                    to + i / COPIES * STAGE + (lane / ACROSS * COPIES + i % COPIES) * PITCH + lane % ACROSS * 16),
                "r"(0)
                : "memory");
    }
    __device__ __forceinline__ void first() {
        if (count == 0) return;
        start = __ldg(sizes);
        look(0);
    }
    // fetch copies block s, if there is one.
    __device__ __forceinline__ void fetch(u32 s) {
        if (s < count) {
            copy();
            start = end;
            look(s + 1);
            put = put == (DEPTH - 1) * STAGE ? 0 : put + STAGE;
        }
        copy_commit();
    }
};

extern "C" __global__ void __launch_bounds__(32 * WARPS, LEAST)
    ENTRY(const uint4 *__restrict__ work, const u32 *__restrict__ columns, const u32 *__restrict__ sizes,
          const u32 *__restrict__ packed, const Elem *__restrict__ b, const float *__restrict__ bias,
          void *__restrict__ c, float *__restrict__ part, const __grid_constant__ Params p) {
    extern __shared__ __align__(16) unsigned char shared[];
    u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, group = blockIdx.x + blockIdx.z * p.width,
        base = blockIdx.y * COLS;
    if (p.phase == 1) {
        launches_before();
        launches_after();
        add_slots(&p, work, {columns, sizes, packed, b}, {c, bias}, part, group * WARPS + warp);
        return;
    }
    Share mine(work, p, group, warp);
    uint4 w = mine.part;
    u32 g = lane >> 2, q = lane & 3, skip = w.y + mine.skip, count = mine.count, at = q * PITCH + 16 * quad(g),
        take = 0;

    unsigned char *own = shared + warp * RING;
    StageBuffer buffer;
    buffer.to = shared_address(own), buffer.count = count, buffer.lane = lane;
    buffer.columns = columns + (u64)skip * BLOCK, buffer.sizes = sizes + skip, buffer.packed = (const char *)packed,
    buffer.pitch = p.ldb * sizeof(Elem);
    buffer.b = (const char *)(b + base + 4 * (lane % ACROSS)),
    buffer.bytes = 4 * (u32)min(4, max(0, (int)(p.n - base - 4 * (lane % ACROSS))));
    if (buffer.bytes == 0) buffer.clear();
    buffer.first();
    launches_before();
    launches_after();
#pragma unroll 1
    for (u32 s = 0; s < DEPTH - 1; s++) buffer.fetch(s);

    // Where the sums go: C, or the slot. The rows are looked up while copies are on their way.
    bool whole = w.w == NO_SLOT;
    float *out = whole ? (float *)c : part;
    u32 ld = whole ? p.ldc : p.ldp, rows = whole ? p.rows : ALL, place = (whole ? w.x : w.w) * ROWS;
    auto row_at = [&](u32 r) { return whole ? row_in(p, (const u32 *)work, place + r) : place + r; };
    u32 line[2] = {row_at(g), row_at(g + 8)};

    Sums sums;
#pragma unroll 1
    for (u32 s = 0; s < count; s++) {
        copy_wait<DEPTH - 2>();
        __syncwarp();
        buffer.fetch(s + DEPTH - 1);
        sums.multiply(Values(own + take, lane, at));
        take = take == (DEPTH - 1) * STAGE ? 0 : take + STAGE;
    }
    sums.finish();
    float(&acc)[TILES][4] = sums.acc;

    // Whether sums can go as they are.
    bool plain = !whole || p.store == F32 && p.alpha == 1 && p.beta == 0 && (ld & 3) == 0;
    if (mine.shift == 0) {
        float all[4] = {};
        check(all, acc);
        bool finite = fabsf(fmaf(all[0], all[1], all[2]) * all[3]) < INFINITY;
        if (__all_sync(ALL, plain && base + COLS <= p.n && place + ROWS <= rows && (finite || !whole))) {
            if (!mine.busy) return;
#pragma unroll
            for (int h = 0; h < 2; h++)
#pragma unroll
                for (int e = 0; e < 2; e++)
#pragma unroll
                    for (int j = 0; j < TILES; j += 4)
                        __stcs((float4 *)(out + (u64)line[h] * ld + base + quad(2 * q + e) * 4 +
                                          8 * j), // it is B that is to stay in the cache
                               four(acc, j, 2 * h + e));
            return;
        }
    }

    // The sums through shared memory: first as lanes have them, then by rows, the team's added up.
    __syncwarp();
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int e = 0; e < 2; e++)
#pragma unroll
            for (int j = 0; j < TILES; j += 4)
                *(float4 *)(own + (g + 8 * h) * SUM_PITCH + 4 * (quad(2 * q + e) * 4 + 8 * j)) =
                    four(acc, j, 2 * h + e);
    if (mine.shift > 0) __syncthreads();
    else __syncwarp();
    u32 col = base + 4 * (lane % ACROSS);
    if (!mine.busy || col >= p.n) return;
    const unsigned char *team = own - mine.member * RING + 16 * (lane % ACROSS);
#pragma unroll 1
    for (u32 r = (mine.member * ROWS >> mine.shift) + lane / ACROSS; r < (mine.member + 1) * ROWS >> mine.shift;
         r += 32 / ACROSS) {
        float4 x = {};
#pragma unroll 1
        for (u32 s = 0; s < 1 << mine.shift; s++) {
            float4 v = *(const float4 *)(team + s * RING + r * SUM_PITCH);
            x.x += v.x, x.y += v.y, x.z += v.z, x.w += v.w;
        }
        bool finite = fabsf(fmaf(x.x, x.y, x.z * x.w)) < INFINITY;
        if (plain && (!whole || col + 4 <= p.n && place + r < rows && finite))
            __stcs((float4 *)(out + (u64)row_at(r) * ld + col), x);
        else finish(&p, {c, bias}, {columns, sizes, packed, b}, (const u32 *)work, w.x, w.y, w.z, r, col, x);
    }
}
