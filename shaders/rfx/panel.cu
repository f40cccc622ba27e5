// Computes: C (rows × n) = alpha·A·B + beta·C reproducibly in fixed point (RFX-p, p = BITS), A in panels of 8 rows, on
// matrix units of 8-bit integers (mma.m16n8k32). rfx.go explains digits, panels.go the packing.
// Tile: a warp computes (8 × 64) for a panel or a segment of one. The instruction computes Cᵀ = Bᵀ·Aᵀ as kernel cvse:
// the panel's rows on n = 8, 16 columns of B on m. Lane (g, q) has vectors 8q to 8q + 7 of a tile of 32 and columns 8g
// to 8g + 7; instruction j has its columns 2j and 2j + 1.
// Data movement: a lane fetches 8 columns of a row of B with all digits in one or two loads; byte permutes put digits
// of four rows into an operand word, and no value crosses lanes. The four lanes of a quad fetch four rows at once: rows
// that differ mod 4 lie in different banks, and panels.go deals vectors so. Column numbers and digits of A go through
// shared memory, STAGES tiles deep, each warp on its own.
// Bound by: gathers of rows of B through L1.
// Constants: BITS (p), WARPS, STAGES, STEP (32 or 16: the instruction's k).

#include "store.cuh"
#include "../include/units.cuh"

typedef long long i64;

#define S ((BITS + 1) / 8) // digits
#define DIAGS (2 * S - 1) // sums of places
#define COLS 64 // of a warp
#define QUADS (STEP / 16) // of rows that a lane fetches for a step
#define TILE_BYTES (S * 256 + 128)
#define ITEM 13 // words: see panels.go
#define NOROW 0xffffffffu

// Digits of 8 columns of a row of B: words 2d and 2d+1 are those of place d.
struct Row {
    u32 w[2 * S];
};

// fetch loads the lane's digits of a row of q: pairs of places lie together, then a last one alone.
__device__ __forceinline__ Row fetch(const char *q, u32 row, u32 pitch, u32 ldq, u32 col) {
    Row r;
    const char *at = q + (size_t)row * pitch + 2 * col;
#pragma unroll
    for (int d = 0; d < S / 2; d++) {
        uint4 v = __ldg((const uint4 *)(at + (size_t)d * 2 * ldq));
        r.w[4 * d] = v.x, r.w[4 * d + 1] = v.y, r.w[4 * d + 2] = v.z, r.w[4 * d + 3] = v.w;
    }
#if S % 2 == 1
    uint2 v = __ldg((const uint2 *)(at - col + (size_t)(S - 1) * ldq));
    r.w[2 * S - 2] = v.x, r.w[2 * S - 1] = v.y;
#endif
    return r;
}

// mma is d += a·b, exactly as long as sums fit.
__device__ __forceinline__ void mma(int (&d)[4], const u32 (&a)[2 * QUADS], const u32 *b) {
#if STEP == 32
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    asm volatile("mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]));
#endif
}

// turn makes of a word of each of four rows, four columns wide, a word of each column.
__device__ __forceinline__ void turn(u32 (&c)[4], u32 x0, u32 x1, u32 x2, u32 x3) {
    u32 lo = __byte_perm(x0, x1, 0x5140), hi = __byte_perm(x2, x3, 0x5140);
    c[0] = __byte_perm(lo, hi, 0x5410), c[1] = __byte_perm(lo, hi, 0x7632);
    lo = __byte_perm(x0, x1, 0x7362), hi = __byte_perm(x2, x3, 0x7362);
    c[2] = __byte_perm(lo, hi, 0x5410), c[3] = __byte_perm(lo, hi, 0x7632);
}

// multiply adds the products of a step's rows and the lane's digits of A: a[d] has those of place d.
__device__ __forceinline__ void multiply(int (&acc)[4][DIAGS][4], const Row (&r)[4 * QUADS], const u32 (&a)[S][QUADS]) {
#pragma unroll
    for (int d = 0; d < S; d++)
#pragma unroll
        for (int h = 0; h < 2; h++) { // four columns
            u32 c[QUADS][4];
#pragma unroll
            for (int i = 0; i < QUADS; i++)
                turn(c[i], r[4 * i].w[2 * d + h], r[4 * i + 1].w[2 * d + h], r[4 * i + 2].w[2 * d + h],
                     r[4 * i + 3].w[2 * d + h]);
#pragma unroll
            for (int j = 0; j < 2; j++) {
                u32 f[2 * QUADS];
#pragma unroll
                for (int i = 0; i < QUADS; i++) f[2 * i] = c[i][2 * j], f[2 * i + 1] = c[i][2 * j + 1];
#pragma unroll
                for (int e = 0; e < S; e++) mma(acc[2 * h + j][d + e], f, a[e]);
            }
        }
}

// total puts the sums of one output together.
__device__ __forceinline__ i128 total(const int (&acc)[DIAGS][4], int i) {
#if BITS < 31
    i64 t = 0; // below 2^46 for each of 2^15 entries
#else
    i128 t = 0;
#endif
#pragma unroll
    for (int d = DIAGS - 1; d >= 0; d--) t = t * 256 + acc[d][i];
    return t;
}

// finish writes 8 neighbouring columns of a row of C.
__device__ __forceinline__ void finish(u32 row, u32 col, const i128 (&sum)[8], const u32 *rows, const void *values,
                                       const void *b, const u32 *q, const u32 *bias, u32 *c, const Params &p) {
    u32 ra = rows[2 * (size_t)row + 1], rb[8], wild = ra;
#pragma unroll
    for (int j = 0; j < 8; j += 4) {
        uint4 v = *(const uint4 *)(q + col + j);
        rb[j] = v.x, rb[j + 1] = v.y, rb[j + 2] = v.z, rb[j + 3] = v.w;
        wild |= v.x | v.y | v.z | v.w;
    }
    bool plain = (p.store & SCALED) == 0 && (p.ldc & 3) == 0;
    if (!plain || (wild & WILD) != 0 || col + 8 > p.n) {
#pragma unroll
        for (int j = 0; j < 8; j++)
            if (col + j < p.n) store(row, col + j, sum[j], rows, values, b, q, bias, c, p);
        return;
    }
    u32 y[8];
    int l = unit(ra, BITS);
#pragma unroll
    for (int j = 0; j < 8; j++) y[j] = rounded(sum[j], l + unit(rb[j], BITS));
    if (p.store != 0) {
#pragma unroll
        for (int j = 0; j < 8; j++) y[j] = epilogue(y[j], row, col + j, bias, p);
    }
    uint4 *to = (uint4 *)(c + (size_t)row * p.ldc + col);
    to[0] = make_uint4(y[0], y[1], y[2], y[3]);
    to[1] = make_uint4(y[4], y[5], y[6], y[7]);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    rfx(const u32 *__restrict__ rows, const char *__restrict__ ints, const void *__restrict__ values,
        const void *__restrict__ b, const u32 *__restrict__ q, const u32 *__restrict__ bias, u32 *c, i128 *part,
        const Params p) {
    __shared__ __align__(16) unsigned char ring[WARPS][STAGES][TILE_BYTES];
    u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    u32 number = (blockIdx.x + blockIdx.z * p.width) * WARPS + warp;
    if (number >= p.items) return;
    const u32 *item = rows + p.heavy + ITEM * (size_t)number;
    u32 tiles = item[2];
    u32 g = lane >> 2, quarter = lane & 3, col = blockIdx.y * COLS + 8 * g;

    // Columns past the last are read from the last ones' place; they are never stored.
    u32 pitch = ((S * p.ldq + 31) & ~63u) + 32, from = min(col, p.ldq - 8);
    const char *digits = (const char *)(q + p.first);

    const u32 *columns = rows + item[0] + lane;
    ints += (size_t)item[1] * (256 * S) + 8 * lane;
    auto load_stage = [&](u32 tile) {
        if (tile < tiles) {
            u32 to = shared_address(ring[warp][tile % STAGES]);
#pragma unroll
            for (int d = 0; d < S; d++) copy<8>(to + 256 * d + 8 * lane, ints + (size_t)tile * (256 * S) + 256 * d, 8);
            copy<4>(to + 256 * S + 4 * lane, columns + (size_t)tile * 32, 4);
        }
        copy_commit();
    };
    auto gather = [&](Row(&r)[4 * QUADS], u32 tile, int step) {
        const uint4 *k = (const uint4 *)(ring[warp][tile % STAGES] + 256 * S + 32 * quarter) + step;
#pragma unroll
        for (int i = 0; i < QUADS; i++) {
            uint4 v = k[i];
            r[4 * i] = fetch(digits, v.x, pitch, p.ldq, from);
            r[4 * i + 1] = fetch(digits, v.y, pitch, p.ldq, from);
            r[4 * i + 2] = fetch(digits, v.z, pitch, p.ldq, from);
            r[4 * i + 3] = fetch(digits, v.w, pitch, p.ldq, from);
        }
    };

    int acc[4][DIAGS][4] = {};
    Row r[2][4 * QUADS];
#pragma unroll
    for (int s = 0; s < STAGES - 1; s++) load_stage(s);
    if (tiles > 0) {
        copy_wait<STAGES - 2>();
        __syncwarp();
        gather(r[0], 0, 0);
    }
    // Rows of the next step are on their way while those of this one are multiplied. (Two steps a round, so that
    // registers keep their places.)
    for (u32 tile = 0; tile < tiles; tile += QUADS) {
#pragma unroll
        for (int s = 0; s < 2; s++) {
            u32 now = tile + (QUADS == 2 ? s : 0);
            if (now >= tiles) break;
            u32 a[S][QUADS];
            const unsigned char *at = ring[warp][now % STAGES] + 8 * lane + (QUADS == 2 ? 0 : 4 * s);
#pragma unroll
            for (int d = 0; d < S; d++)
#pragma unroll
                for (int i = 0; i < QUADS; i++) a[d][i] = *(const u32 *)(at + 256 * d + 4 * i);
            if (QUADS == 1 && s == 0) {
                gather(r[1], now, 1);
            } else {
                __syncwarp(); // all have read what the copy overwrites
                load_stage(now + STAGES - 1);
                copy_wait<STAGES - 2>();
                __syncwarp();
                if (now + 1 < tiles) gather(r[(s + 1) & 1], now + 1, 0);
            }
            multiply(acc, r[s], a);
        }
    }

    if (col >= p.ldq) return;
#pragma unroll
    for (int e = 0; e < 2; e++) {
        u32 row = item[5 + 2 * quarter + e], count = item[4];
        i128 sum[8];
#pragma unroll
        for (int j = 0; j < 8; j++) sum[j] = total(acc[j >> 1], 2 * (j & 1) + e);
        if (count > 0) {
            i128 *to = part + ((size_t)item[3] + (size_t)(2 * quarter + e) * count) * p.ldq + col;
#pragma unroll
            for (int j = 0; j < 8; j++) to[j] = sum[j];
        } else if (row != NOROW) {
            finish(row, col, sum, rows, values, b, q, bias, c, p);
        }
    }
}
