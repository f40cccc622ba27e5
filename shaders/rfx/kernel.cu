// Computes: C (rows × n) = alpha·A·B + beta·C reproducibly in fixed point (RFX-p, p = BITS), A (rows × cols) in CSR, B
// quantised (rfx.go).
// Tile: a row or row segment × a tile of columns, as csr/kernel.cu; a lane has four columns. Segments leave 128-bit
// partial sums in the workspace, which phase 1 adds.
// Data movement: A's integers and rows of B straight from memory to registers.
// Bound by: 64-bit integer arithmetic, then gathers of rows of B.

#include "store.cuh"
#include "../include/load.cuh"

typedef long long i64;

#define ALL 0xffffffffu

// Sums of products, in 64 bits: a row's integers, or halves of them (SPLIT bits), by place.
#if BITS == 31
#define SUMS 2
#define SPLIT 16
#elif BITS == 47
#define SUMS 3
#define SPLIT 24
#else
#define SUMS 1
#define SPLIT 0
#endif

#if BITS == 15
typedef uint2 Quad; // four columns of a row of q, or four entries' integers
#elif BITS == 47
struct Quad {
    uint4 lo, hi; // of columns: lower and upper halves; of entries: each one's halves side by side
};
#else
typedef uint4 Quad;
#endif

// fetch returns quad x of a row of q. ld is in quads.
__device__ __forceinline__ Quad fetch(const void *q, u32 row, u32 x, u32 ld, bool in) {
#if BITS == 15
    return load((const uint2 *)q + (size_t)row * ld + x, in);
#elif BITS == 47
    const uint4 *at = (const uint4 *)q + (size_t)row * (2 * ld) + x;
    Quad v;
    v.lo = load(at, in);
    v.hi = load(at + ld, in);
    return v;
#else
    return load((const uint4 *)q + (size_t)row * ld + x, in);
#endif
}

// integer returns number i of four.
__device__ __forceinline__ int integer(uint2 v, int i) {
    u32 w = i < 2 ? v.x : v.y;
    return i & 1 ? (int)w >> 16 : (int)(w << 16) >> 16;
}
__device__ __forceinline__ int integer(const uint4 &v, int i) { return word(v, i); }

// mad adds a·b to sum. (By name: from 64-bit operands the compiler would make four instructions of it.)
__device__ __forceinline__ void mad(i64 &sum, int a, int b) {
    asm("mad.wide.s32 %0, %1, %2, %0;" : "+l"(sum) : "r"(a), "r"(b));
}

// accumulate adds the products of entry i of four and the columns in b.
__device__ __forceinline__ void accumulate(i64 (&sum)[SUMS][4], const Quad &a, int i, bool in, const Quad &b) {
#if BITS == 47
    const uint4 &h = i < 2 ? a.lo : a.hi;
    int lo = in ? word(h, 2 * (i & 1)) : 0, hi = in ? word(h, 2 * (i & 1) + 1) : 0;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        int bl = word(b.lo, j), bh = word(b.hi, j);
        mad(sum[0][j], lo, bl);
        mad(sum[1][j], lo, bh);
        mad(sum[1][j], hi, bl);
        mad(sum[2][j], hi, bh);
    }
#else
    int x = in ? integer(a, i) : 0;
#if BITS == 31
    int lo = (x << 16) >> 16, hi = (x - lo) >> 16;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        mad(sum[0][j], lo, integer(b, j));
        mad(sum[1][j], hi, integer(b, j));
    }
#else
#pragma unroll
    for (int j = 0; j < 4; j++) mad(sum[0][j], x, integer(b, j));
#endif
#endif
}

// entries adds up the entries from begin to end that are the lane's: every along-th four of them,
// counted from multiples of four, so that columns and integers come in whole vectors. The next four are
// fetched before the rows of these. Entries of the neighbouring rows count as zero times zero.
__device__ __forceinline__ void entries(i64 (&sum)[SUMS][4], u32 begin, u32 end, u32 group, u32 along,
                                        const uint4 *__restrict__ colidx, const Quad *__restrict__ ints,
                                        const void *__restrict__ q, u32 x, u32 ld) {
    u32 k = (begin & ~3u) + 4 * group, step = 4 * along;
    if (k >= end) return;
    uint4 cols = __ldg(colidx + k / 4);
    Quad a = ints[k / 4];
    while (true) {
        u32 next = k + step;
        uint4 next_cols;
        Quad next_a;
        if (next < end) {
            next_cols = __ldg(colidx + next / 4);
            next_a = ints[next / 4];
        }
        Quad b[4];
        bool in[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            in[i] = k + i >= begin && k + i < end;
            b[i] = fetch(q, word(cols, i), x, ld, in[i]);
        }
#pragma unroll
        for (int i = 0; i < 4; i++) accumulate(sum, a, i, in[i], b[i]);
        if (next >= end) return;
        k = next;
        cols = next_cols;
        a = next_a;
    }
}

// total puts a column's sums together.
__device__ __forceinline__ i128 total(const i64 (&sum)[SUMS][4], int j) {
    i128 t = sum[SUMS - 1][j];
#pragma unroll
    for (int d = SUMS - 2; d >= 0; d--) t = (t << SPLIT) + sum[d][j];
    return t;
}

__device__ __forceinline__ i128 shuffle(i128 t, u32 d) {
    i64 hi = __shfl_xor_sync(ALL, (i64)(t >> 64), d);
    i64 lo = __shfl_xor_sync(ALL, (i64)t, d);
    return (i128)hi << 64 | (unsigned long long)lo;
}

extern "C" __global__ void __launch_bounds__(128)
    rfx(const u32 *__restrict__ rows, const Quad *__restrict__ ints, const void *__restrict__ values,
        const void *__restrict__ b, const u32 *__restrict__ q, const u32 *__restrict__ bias, u32 *c, i128 *part,
        const Params p) {
    u32 across = across_of(p), along = along_of(p);
    u32 group = threadIdx.x >> (__ffs(across) - 1); // of the workgroup's
    u32 lane = threadIdx.x & (across - 1);
    u32 item = (blockIdx.x + blockIdx.z * p.width) * p.per + (group >> (__ffs(along) - 1));
    group &= along - 1; // of the item's
    u32 x = blockIdx.y * across + lane, col = 4 * x;
    i128 sum[4];
#pragma unroll
    for (int j = 0; j < 4; j++) sum[j] = 0;

    bool busy = item < p.items && col < p.n;
    bool piece = phase_of(p) == 0 && item < p.pieces;
    u32 row = 0;
    if (busy && phase_of(p) == 1) {
        const u32 *r = rows + p.heavy + 2 * (size_t)p.pieces + 3 * (size_t)item;
        row = r[0];
        for (u32 i = r[1] + group; i < r[2]; i += along)
#pragma unroll
            for (int j = 0; j < 4; j++) sum[j] += part[(size_t)i * p.ldq + col + j];
    } else if (busy) {
        row = item - p.pieces;
        const u32 *r = rows + p.heavy + 2 * (size_t)item;
        u32 begin = piece ? r[0] : rows[2 * (size_t)row];
        u32 end = piece ? r[1] : rows[2 * (size_t)row + 2];
        busy = piece || end - begin <= p.longest; // else it is done in pieces
        if (busy) {
            i64 sums[SUMS][4] = {};
            entries(sums, begin, end, group, along, (const uint4 *)(rows + p.columns), ints, q + p.first, x, p.ldq / 4);
#pragma unroll
            for (int j = 0; j < 4; j++) sum[j] = total(sums, j);
        }
    }

    for (u32 d = across; d < across * along; d *= 2)
#pragma unroll
        for (int j = 0; j < 4; j++) sum[j] += shuffle(sum[j], d);

    if (!busy || group != 0) return;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        if (piece) part[(size_t)item * p.ldq + col + j] = sum[j];
        else if (col + j < p.n) store(row, col + j, sum[j], rows, values, b, q, bias, c, p);
    }
}
