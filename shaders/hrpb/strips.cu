// Computes: C = alpha·A·B + beta·C, A (rows × cols) in HRPB as strips: HEIGHT rows of a panel, a vector (HEIGHT × 1)
// for each column with an entry, f32 on CUDA cores.
// Tile: ACROSS · ALONG lanes of a warp compute (HEIGHT × COLS) for an item: a strip or a segment of one. ACROSS lanes
// side by side hold QUADS times four columns each, 4·ACROSS columns apart. ALONG such groups take TOGETHER vectors in
// turn, and their sums are added at the end. One group does less work for each vector, several wait less where items
// are few. Segments of a long strip leave partial sums in slots of the workspace, HEIGHT rows each, which phase 1 adds
// in order.
// Data movement: a vector is HEIGHT values and a word with the column and a bit for each entry (strips.go). A row of B
// is read once for all rows of a strip, straight to registers: for similar rows that is half as often as there are
// entries, or less. The strips of a panel are on neighbouring warps and find each other's rows of B in L1.
// Words and values are read once and in order, and are fetched to L2 256 bytes at a time.
// Bound by: gathers of rows of B, or the data pipe of L1. A vector's values go to all lanes, which takes the pipe as
// long as a row of B of 128 columns; with QUADS they are read once for several times as many columns.
// Constants: ENTRY, HEIGHT = 4, COLS, ALONG, QUADS, TOGETHER (2 or 4), WARPS, LEAST (CTAs that a multiprocessor has
// room for).

#include "params.h"
#include "../include/result.cuh"
#include "../include/overlap.cuh"
#include "slots.cuh"

#define ALL 0xffffffffu
#define NO_SLOT 0xffffffffu
#define ACROSS (COLS / 4 / QUADS) // lanes that a row of B has
#define TEAM (ACROSS * ALONG) // lanes of an item
#define COLUMN (ALL >> HEIGHT) // of a vector's word; the bits above say which values are entries

__device__ __forceinline__ float part_of(const float4 &v, int i) {
    return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

__device__ __forceinline__ void fma4(float4 &x, float v, const float4 &q) {
    x.x = fmaf(v, q.x, x.x), x.y = fmaf(v, q.y, x.y), x.z = fmaf(v, q.z, x.z), x.w = fmaf(v, q.w, x.w);
}

// values_at reads a vector's values.
__device__ __forceinline__ float4 values_at(const float4 *from) {
    float4 x;
    asm("ld.global.nc.L2::256B.v4.f32 {%0, %1, %2, %3}, [%4];"
        : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
        : "l"(from));
    return x;
}

// words_at reads the words of TOGETHER vectors.
__device__ __forceinline__ uint4 words_at(const u32 *from) {
    uint4 x = make_uint4(0, 0, 0, 0);
    if (TOGETHER == 4)
        asm("ld.global.nc.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
            : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
            : "l"(from));
    else asm("ld.global.nc.L2::256B.v2.u32 {%0, %1}, [%2];" : "=r"(x.x), "=r"(x.y) : "l"(from));
    return x;
}

// What these functions need of the matrix and of B.
struct Matrix {
    const u32 *columns;
    const float *values, *b;
};

// An output from the entries of a strip's vectors alone: see Special.
static __device__ __noinline__ float entries(Matrix m, u32 ldb, u32 first, u32 last, u32 row, u32 col) {
    Special sum;
    for (u32 k = first; k < last; k++)
        if (m.columns[k] >> (32 - HEIGHT + row) & 1)
            sum.add(m.values[(u64)k * HEIGHT + row], m.b[(u64)(m.columns[k] & COLUMN) * ldb + col]);
    return sum.result();
}

// row_in returns the row of C that a row of a strip is; ALL where it is none.
__device__ __forceinline__ u32 row_in(const Params &p, const uint4 *work, u32 strip, u32 row) {
    u32 place = strip * HEIGHT + row;
    if (place >= p.rows) return ALL;
    return p.places != 0 ? __ldg((const u32 *)work + p.places + place) : place;
}

// finish writes four neighbouring sums of a row of an item's strip to C, whatever they are and wherever.
static __device__ __noinline__ void finish(const Params *p, Dest to, Matrix m, const uint4 *work, u32 item, u32 row,
                                           u32 col, float4 x) {
    uint4 w = work[item];
    u32 place = row_in(*p, work, w.x, row);
    if (place != ALL)
        Out<Params>(to, *p).store(place, col, x, [&](u32, u32 j) { return entries(m, p->ldb, w.y, w.z, row, j); });
}

// add_slots is phase 1: a warp adds up one row of a cut strip's slots.
static __device__ __noinline__ void add_slots(const Params *p, const uint4 *work, Matrix m, Dest to, const float *part,
                                              u32 number) {
    u32 row = number % HEIGHT, col = blockIdx.y * 128 + threadIdx.x % 32 * 4;
    if (number / HEIGHT >= p->items || col >= p->n) return;
    uint4 w = work[p->parts + number / HEIGHT];
    finish(p, to, m, work, p->parts + number / HEIGHT, row, col, sum_slots<HEIGHT>(*p, w, part, row, col));
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, LEAST)
    ENTRY(const uint4 *__restrict__ work, const u32 *__restrict__ columns, const u32 *__restrict__ sizes,
          const float *__restrict__ values, const float *__restrict__ b, const float *__restrict__ bias,
          void *__restrict__ c, float *__restrict__ part, const __grid_constant__ Params p) {
    u32 warp = (blockIdx.x + blockIdx.z * p.width) * WARPS + (threadIdx.x >> 5), lane = threadIdx.x & (TEAM - 1),
        item = warp * (32 / TEAM) + (threadIdx.x & 31) / TEAM;
    if (p.phase == 1) {
        launches_before();
        launches_after();
        add_slots(&p, work, {columns, values, b}, {c, bias}, part, warp);
        return;
    }
    uint4 w = make_uint4(0, 0, 0, NO_SLOT);
    if (item < p.items) w = __ldg(work + item);
    u32 group = lane / ACROSS, col = blockIdx.y * COLS + lane % ACROSS * 4, k = w.y + group * TOGETHER;
    const float *from = b + col;
    bool in[QUADS];
#pragma unroll
    for (int j = 0; j < QUADS; j++) in[j] = col + j * 4 * ACROSS < p.n;
    uint4 cols = make_uint4(0, 0, 0, 0);
    if (k < w.z) cols = words_at(columns + k);
    u32 row = row_in(p, work, w.x, lane % HEIGHT); // it is looked up long before it is needed
    launches_before();
    launches_after();

    float4 acc[HEIGHT][QUADS] = {};
#pragma unroll 1
    while (k < w.z) {
        float4 q[TOGETHER][QUADS], v[TOGETHER];
#pragma unroll
        for (int i = 0; i < TOGETHER; i++) {
            const float *row = from + (u64)(word(cols, i) & COLUMN) * p.ldb;
            bool entry = word(cols, i) > COLUMN;
#pragma unroll
            for (int j = 0; j < QUADS; j++) q[i][j] = load((const float4 *)row + j * ACROSS, in[j] && entry);
        }
#pragma unroll
        for (int i = 0; i < TOGETHER; i++) v[i] = values_at((const float4 *)values + k + i);
        k += ALONG * TOGETHER;
        if (k < w.z) cols = words_at(columns + k);
#pragma unroll
        for (int i = 0; i < TOGETHER; i++)
#pragma unroll
            for (int r = 0; r < HEIGHT; r++)
#pragma unroll
                for (int j = 0; j < QUADS; j++) fma4(acc[r][j], part_of(v[i], r), q[i][j]);
    }
#pragma unroll
    for (u32 d = ACROSS; d < TEAM; d *= 2)
#pragma unroll
        for (int r = 0; r < HEIGHT; r++)
#pragma unroll
            for (int j = 0; j < QUADS; j++) {
                float4 &x = acc[r][j];
                x.x += __shfl_xor_sync(ALL, x.x, d), x.y += __shfl_xor_sync(ALL, x.y, d);
                x.z += __shfl_xor_sync(ALL, x.z, d), x.w += __shfl_xor_sync(ALL, x.w, d);
            }
    u32 line[HEIGHT];
#pragma unroll
    for (int r = 0; r < HEIGHT; r++) line[r] = __shfl_sync(ALL, row, r, TEAM);
    if (item >= p.items) return;

    bool whole = w.w == NO_SLOT, plain = p.store == F32 && p.alpha == 1 && p.beta == 0 && (p.ldc & 3) == 0;
#pragma unroll
    for (int r = 0; r < HEIGHT; r++) {
        if (r % ALONG != group) continue;
#pragma unroll
        for (int j = 0; j < QUADS; j++) {
            if (!in[j]) break;
            u32 at = col + j * 4 * ACROSS;
            float4 x = acc[r][j];
            if (!whole) {
                *(float4 *)(part + ((u64)w.w * HEIGHT + r) * p.ldp + at) = x;
                continue;
            }
            bool finite = fabsf(fmaf(x.x, x.y, x.z * x.w)) < INFINITY;
            if (plain && finite && at + 4 <= p.n) {
                if (line[r] != ALL) // it is B that is to stay in the cache
                    __stcs((float4 *)((float *)c + (u64)line[r] * p.ldc + at), x);
            } else finish(&p, {c, bias}, {columns, values, b}, work, item, r, at, x);
        }
    }
}
