// Computes: C = alpha·A·B + beta·C in f64, A (rows × cols) in HRPB, on the f64 matrix units of compute capability 8.0
// and 9.0.
// Tile: a team of one, two or four warps computes (16 × COLS) for a run of a panel's blocks, as kernel.cu. Rows on the
// instruction's m, columns of B on its n = 8. k slots 0 to 3 are the first brick's columns, 4 to 7 the second's.
// Data movement: straight to registers. A lane reads 16 bytes of a row of B at a time, columns 2g and 2g + 1 of 16 (g =
// lane/4), which are column g of two instructions: B is read in whole cache lines and needs no shared memory. Rows of
// B, values, and patterns with columns are prefetched one, one and two blocks ahead. A lane then has columns 4q to 4q +
// 3 of 16 (q = lane%4) in rows g and g + 8.
// Bound by: gathers of rows of B from L2.
// Constants: COLS (a multiple of 16), WARPS = 4, BLOCK = 8.

#define DOUBLE
#include "params.h"
#include "../include/f64.cuh"

typedef double Elem;
__device__ __forceinline__ float to_float(double x) { return (float)x; }
#include "hrpb.cuh"

#define CHUNKS (COLS / 16)

// Sums of a lane: [h][i] are columns 4q + i of row g + 8·h.
struct Chunk {
    double v[2][4];
};

// mma adds the products of a block and eight columns of B to d[h][0] and d[h][2]. A lane holds b0 and b1.
__device__ __forceinline__ void mma(double &d0, double &d1, double &d2, double &d3, const double (&a)[4], double b0,
                                    double b1) {
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+d"(d0), "+d"(d1), "+d"(d2), "+d"(d3)
        : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b0), "d"(b1));
#else
#define MMA(x, y, a, b) \
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};" \
                 : "+d"(x), "+d"(y) \
                 : "d"(a), "d"(b))
    MMA(d0, d1, a[0], b0);
    MMA(d2, d3, a[1], b0);
    MMA(d0, d1, a[2], b1);
    MMA(d2, d3, a[3], b1);
#endif
}

// The operands of a block: of A rows g and g + 8 of the first brick, then of the second, of B a row of each brick.
struct Operands {
    double a[4];
    double2 x[CHUNKS], y[CHUNKS];
};

// value is the lane's slot in one word of a pattern; values is where those of this word start.
__device__ __forceinline__ double value(u32 pattern, const double *values, u32 bit) {
    return pattern & bit ? __ldg(values + __popc(pattern & (bit - 1))) : 0.0;
}

// values loads the lane's of a block, whose patterns are w.
__device__ __forceinline__ void values(double (&a)[4], uint4 w, const u32 *block, u32 bit) {
    const double *v = (const double *)(block + BLOCK / 2);
    a[0] = value(w.x, v, bit), v += __popc(w.x);
    a[1] = value(w.y, v, bit), v += __popc(w.y);
    a[2] = value(w.z, v, bit), v += __popc(w.z);
    a[3] = value(w.w, v, bit);
}

__device__ __forceinline__ bool is_finite(double x) { return (__double2hiint(x) & 0x7ff00000) != 0x7ff00000; }

// An output from the entries of a panel's blocks alone, where a sum that padding may have touched is not finite: a
// structural zero must not touch B, and the class of the result must not depend on the order of summation.
static __device__ __noinline__ double mended64(Matrix m, u32 ldb, u32 first, u32 last, u32 row, u32 col) {
    double sum = 0;
    u32 seen = 0; // 1: +Inf, 2: -Inf, 4: NaN, from operands that are not finite
    for (u32 q = first; q < last; q++) {
        const u32 *block = m.packed + 4 * (u64)m.sizes[q];
        const double *values = (const double *)(block + BLOCK / 2);
        for (u32 i = 0; i < BLOCK / 2; i++) {
            u32 w = block[i];
            for (u32 c = 0; c < 4; c++) {
                u32 bit = row % 8 * 4 + c;
                if (i % 2 != row / 8 || !(w >> bit & 1)) continue;
                double x = values[__popc(w & ((1u << bit) - 1))],
                       y = m.b[(u64)m.columns[(u64)q * BLOCK + i / 2 * 4 + c] * ldb + col], t = x * y;
                if (is_finite(x) && is_finite(y)) sum += t;
                else seen |= t != t ? 4 : t > 0 ? 1 : 2;
            }
            values += __popc(w);
        }
    }
    const double inf = __hiloint2double(0x7ff00000, 0);
    if (seen & 4 || seen == 3) return __hiloint2double(0x7fffffff, -1);
    return seen == 1 ? inf : seen == 2 ? -inf : sum;
}

// finish64 writes the sums of columns col and col + 1 of a panel's row to C, whatever they are. The panel's blocks are
// from first to last - 1.
static __device__ __noinline__ void finish64(const Params *p, double *c, const double *bias, Matrix m,
                                             const u32 *places, u32 panel, u32 first, u32 last, u32 r, u32 col,
                                             double2 v) {
    u32 row = row_in(*p, places, panel * ROWS + r);
    double x[2] = {v.x, v.y}, alpha = alpha_of(*p), beta = beta_of(*p);
    if (row >= p->rows) return;
    for (u32 i = 0; i < 2 && col + i < p->n; i++) {
        double *to = c + (u64)row * p->ldc + col + i;
        double y = alpha * (is_finite(x[i]) ? x[i] : mended64(m, p->ldb, first, last, r, col + i));
        if (beta != 0) y = fma(beta, *to, y);
        *to = has_epilogue(p->store) ? epilogue64(y, p->store, bias, row, col + i) : y;
    }
}

// add_slots64 is phase 1: a warp adds up one row of a split panel's slots.
static __device__ __noinline__ void add_slots64(const Params *p, const uint4 *work, Matrix m, double *c,
                                                const double *bias, const double *part, u32 number) {
    u32 row = number % ROWS;
    if (number / ROWS >= p->items) return;
    uint4 w = work[p->parts + number / ROWS];
    u32 slots = (w.z - w.y + p->longest - 1) / p->longest;
    for (u32 col = blockIdx.y * 128 + threadIdx.x % 32 * 2, i = 0; i < 2 && col < p->n; col += 64, i++) {
        const double *from = part + ((u64)w.w * ROWS + row) * p->ldp + col;
        double2 x = make_double2(0, 0);
#pragma unroll 8
        for (u32 s = 0; s < slots; s++) {
            double2 v = *(const double2 *)(from + (u64)s * ROWS * p->ldp);
            x.x += v.x, x.y += v.y;
        }
        finish64(p, c, bias, m, (const u32 *)work, w.x, w.y, w.z, row, col, x);
    }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    hrpb(const uint4 *__restrict__ work, const u32 *__restrict__ columns, const u32 *__restrict__ sizes,
         const u32 *__restrict__ packed, const double *__restrict__ b, const double *__restrict__ bias,
         double *__restrict__ c, double *__restrict__ part, const __grid_constant__ Params p) {
    __shared__ double2 team[WARPS][4][32];
    u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, group = blockIdx.x + blockIdx.z * p.width,
        base = blockIdx.y * COLS;
    Matrix matrix = {columns, sizes, packed, b};
    if (p.phase == 1) {
        launches_before();
        launches_after();
        add_slots64(&p, work, matrix, c, bias, part, group * WARPS + warp);
        return;
    }
    Share mine(work, p, group, warp);
    uint4 w = mine.part;
    u32 count = mine.count, g = lane >> 2, q = lane & 3, bit = 1u << lane, pitch = p.ldb * 8;
    const u32 *cols = columns + (u64)(w.y + mine.skip) * BLOCK + q, *size = sizes + w.y + mine.skip;
    const double *from = b + base + 2 * g;

    Operands now;
    u32 at[2] = {}, start = 0, start2 = 0; // of the next block: columns and place; place of the one after it
    uint4 patterns = {};
    bool in[CHUNKS]; // whether B has the chunk's columns
#pragma unroll
    for (int i = 0; i < CHUNKS; i++) in[i] = base + 16 * i + 2 * g < p.n;
    auto rows = [&](Operands &o, bool any) {
        const char *x = (const char *)step(from, at[0], pitch), *y = (const char *)step(from, at[1], pitch);
#pragma unroll
        for (int i = 0; i < CHUNKS; i++) {
            o.x[i] = load((const double2 *)(x + 128 * i), any && in[i]);
            o.y[i] = load((const double2 *)(y + 128 * i), any && in[i]);
        }
    };
    auto look = [&](u32 s) { // at block s, or the last, and the size of that after it
        s = min(s, count - 1);
        at[0] = __ldg(cols + s * BLOCK), at[1] = __ldg(cols + s * BLOCK + 4);
        patterns = __ldg((const uint4 *)packed + start);
        start2 = __ldg(size + min(s + 1, count - 1));
    };
    if (count > 0) {
        start = __ldg(size);
        look(0);
    }
    launches_before();
    launches_after();
    if (count > 0) {
        rows(now, true);
        values(now.a, patterns, packed + 4 * (u64)start, bit);
        start = start2;
        look(1);
    }

    Chunk acc[CHUNKS] = {};
#pragma unroll 1
    for (u32 s = 0; s < count; s++) {
        Operands next;
        rows(next, s + 1 < count);
        values(next.a, patterns, packed + 4 * (u64)start, bit);
        start = start2;
        look(s + 2);
#pragma unroll
        for (int i = 0; i < CHUNKS; i++) {
            double(&d)[2][4] = acc[i].v;
            mma(d[0][0], d[0][2], d[1][0], d[1][2], now.a, now.x[i].x, now.y[i].x);
            mma(d[0][1], d[0][3], d[1][1], d[1][3], now.a, now.x[i].y, now.y[i].y);
        }
        now = next;
    }

    // Where the sums go: C, or the slot.
    bool whole = w.w == NO_SLOT,
         plain = !whole || p.store == F64 && alpha_of(p) == 1 && beta_of(p) == 0 && (p.ldc & 1) == 0;
    auto put = [&](u32 r, u32 col, double2 x) { // columns col and col + 1 of row r of the panel
        if (col >= p.n) return;
        u32 row = whole ? row_in(p, (const u32 *)work, w.x * ROWS + r) : w.w * ROWS + r;
        double *to = whole ? c + (u64)row * p.ldc + col : part + (u64)row * p.ldp + col;
        if (!whole || plain && row < p.rows && col + 1 < p.n && is_finite(x.x) && is_finite(x.y))
            __stcs((double2 *)to, x); // it is B that is to stay in the cache
        else finish64(&p, c, bias, matrix, (const u32 *)work, w.x, w.y, w.z, r, col, x);
    };
    if (mine.shift == 0) {
        if (!mine.busy) return;
#pragma unroll
        for (int i = 0; i < CHUNKS; i++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const double *v = acc[i].v[e / 2] + e % 2 * 2;
                put(g + e / 2 * 8, base + 16 * i + 4 * q + e % 2 * 2, make_double2(v[0], v[1]));
            }
        return;
    }
    // A team's sums are added up in shared memory, in order, each warp some of them.
#pragma unroll
    for (int i = 0; i < CHUNKS; i++) {
        __syncthreads();
#pragma unroll
        for (int e = 0; e < 4; e++)
            team[warp][e][lane] = make_double2(acc[i].v[e / 2][e % 2 * 2], acc[i].v[e / 2][e % 2 * 2 + 1]);
        __syncthreads();
        if (!mine.busy) continue;
#pragma unroll 1
        for (u32 e = mine.member * 4 >> mine.shift; e < (mine.member + 1) * 4 >> mine.shift; e++) {
            double2 x = make_double2(0, 0);
            for (u32 s = 0; s < 1u << mine.shift; s++) {
                double2 v = team[warp - mine.member + s][e][lane];
                x.x += v.x, x.y += v.y;
            }
            put(g + e / 2 * 8, base + 16 * i + 4 * q + e % 2 * 2, x);
        }
    }
}
