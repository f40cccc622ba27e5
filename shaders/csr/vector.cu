// Computes: C (rows × n) = alpha·A·B + beta·C for n ≤ COLS, A (rows × cols) in CSR with columns of 16 bits, f16 or
// bf16, sums in f32. B and C may have any order.
// Tile: a warp computes one row after another. A lane takes groups of 8 entries whose numbers begin with a multiple of
// 8, UNROLL of them at a time; entries of the rows before and after count as zeros. The order of a row's sum depends
// only on the numbers of its entries.
// Data movement: each CTA copies all of B to shared memory. The first groups of A are loaded before, while the previous
// launch still runs. Values and columns come 16 bytes at a time, straight to registers. A column-major C is written
// from shared memory (Kept).
// Bound by: the bytes of A, four for each entry; rows of B lie in random banks of shared memory, so that 32
// entries take about 3.4 accesses.
// Constants: ELEM, COLS (1, 2 or 4), UNROLL, WARPS. Parameters: p.longest is cols, p.segments where the columns of 16
// bits are, in units of 16 bytes of `heavy`. Dynamic shared memory: cols + 1 rows of B, each of COLS elements.

#include "params.h"
#include "../include/elem.cuh"
#include "../include/epilogue.cuh"
#include "../include/launches.cuh"
#include "../include/orders.cuh"
#include "../include/units.cuh"

#define ROW ((u32)sizeof(Elem) * COLS) // bytes of a row of B in shared memory

// Group is eight entries: values and columns.
struct Group {
    u32 value[4], column[4];
};

__device__ __forceinline__ void load(u32 (&x)[4], const uint4 *from) {
    asm volatile("ld.global.nc.L1::no_allocate.v4.b32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "l"(from));
}

// within makes entries outside of begin to end - 1 zeros that are multiplied by row `none` of B, which is zeros.
// `first` is the number of the group's first entry.
__device__ __forceinline__ void within(Group &x, u32 first, u32 begin, u32 end, u32 none) {
    if (first >= begin && first + 8 <= end) return;
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        u32 lo = first + 2 * i, hi = lo + 1,
            keep = (lo >= begin && lo < end ? 0xffffu : 0) | (hi >= begin && hi < end ? 0xffff0000u : 0);
        x.value[i] &= keep;
        x.column[i] = (x.column[i] & keep) | (none * 0x10001u & ~keep);
    }
}

// add adds a value times a row of B, which is `at` bytes from the first.
__device__ __forceinline__ void add(float (&sum)[COLS], float value, u32 b, u32 at) {
#if COLS == 1
    u16 x;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(x) : "r"(b + at));
    sum[0] = fmaf(value, widen_lo<ELEM>(x), sum[0]);
#else
    u32 x[COLS / 2];
#if COLS == 2
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x[0]) : "r"(b + at));
#else
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(x[0]), "=r"(x[1]) : "r"(b + at));
#endif
#pragma unroll
    for (int j = 0; j < COLS / 2; j++) {
        sum[2 * j] = fmaf(value, widen_lo<ELEM>(x[j]), sum[2 * j]);
        sum[2 * j + 1] = fmaf(value, widen_hi<ELEM>(x[j]), sum[2 * j + 1]);
    }
#endif
}

#if COLS == 1
typedef Elem Line;
#elif COLS == 2
typedef u32 Line;
#else
typedef uint2 Line;
#endif

// fill copies columns col to col + COLS - 1 of B to shared memory, those past it as they are, and a row of zeros after
// them.
__device__ __forceinline__ void fill(Elem *to, const Elem *b, u32 col, const Params &p) {
    u32 cols = p.longest;
    if (threadIdx.x < COLS) to[(size_t)cols * COLS + threadIdx.x] = 0;
    if (!by_columns_b(p.store)) {
#pragma unroll 4
        for (u32 k = threadIdx.x; k < cols; k += 32 * WARPS)
            ((Line *)to)[k] = *(const Line *)(b + (size_t)k * p.ldb + col);
    } else if (COLS == 1) {
        b += (size_t)col * p.ldb;
        for (u32 k = threadIdx.x; k < cols / 8; k += 32 * WARPS) ((uint4 *)to)[k] = ((const uint4 *)b)[k];
        for (u32 k = cols / 8 * 8 + threadIdx.x; k < cols; k += 32 * WARPS) to[k] = b[k];
    } else
        for (u32 k = 4 * threadIdx.x; k < cols; k += 128 * WARPS) { // four rows
            uint2 x[COLS];
#pragma unroll
            for (u32 j = 0; j < COLS; j++)
                x[j] = col + j < p.n ? *(const uint2 *)(b + (size_t)(col + j) * p.ldb + k) : make_uint2(0, 0);
            u32 y[4 * COLS / 2];
#pragma unroll
            for (u32 i = 0; i < 4; i++)
#pragma unroll
                for (u32 j = 0; j < COLS; j += 2) {
                    u32 lo = i < 2 ? x[j].x : x[j].y, hi = i < 2 ? x[(j + 1) % COLS].x : x[(j + 1) % COLS].y;
                    y[(i * COLS + j) / 2] = __byte_perm(lo, hi, i % 2 ? 0x7632 : 0x5410);
                }
            u32 *at = (u32 *)(to + (size_t)k * COLS);
            if (k + 4 <= cols) {
#pragma unroll
                for (u32 i = 0; i < 2 * COLS; i += 4)
                    *(uint4 *)(at + i) = make_uint4(y[i], y[i + 1], y[i + 2], y[i + 3]);
            } else
#pragma unroll
                for (u32 i = 0; i < 3 * COLS / 2; i++)
                    if (k + 2 * i / COLS < cols) at[i] = y[i];
        }
}

// store writes the epilogue of an element of C.
__device__ __forceinline__ void store(void *c, const float *bias, u32 row, u32 col, float sum, const Params &p) {
    size_t at = by_columns_c(p.store) ? (size_t)col * p.ldc + row : (size_t)row * p.ldc + col;
    u32 type = store_type(p.store);
    float *f = (float *)c + at, y = __fmul_rn(p.alpha, sum);
    u16 *h = (u16 *)c + at;
    if (p.beta != 0) y = fmaf(p.beta, type == F32 ? *f : type == F16 ? widen_lo<F16>(*h) : widen_lo<BF16>(*h), y);
    if (has_epilogue(p.store)) y = epilogue(y, p.store, bias, row, col);
    if (type == F32) *f = y;
    else *h = (u16)narrow(y, 0, type);
}

// Kept is what a CTA's warps have of a column-major C, in shared memory behind B: they compute neighbouring rows, whose
// elements are written together at the end. Elements of 16 bits that many CTAs write to a line took 0.7 µs.
struct Kept {
    float *to; // column j of round r's row w is at (r·COLS + j)·WARPS + w
    u32 rounds;
    bool any;

    __device__ __forceinline__ Kept(unsigned char *memory, u32 rows, const Params &p) {
        u32 room, b = ((p.longest + 1) * ROW + 15) / 16 * 16;
        asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(room));
        to = (float *)(memory + b), rounds = (p.items + rows - 1) / rows;
        any = by_columns_c(p.store) && b + rounds * (COLS * WARPS * 4) <= room;
    }
    __device__ __forceinline__ void write(void *c, const float *bias, u32 first, u32 rows, u32 col,
                                          const Params &p) const {
        __syncthreads();
        for (u32 i = threadIdx.x; i < rounds * COLS * WARPS; i += 32 * WARPS) {
            u32 row = i / (COLS * WARPS) * rows + first + i % WARPS, j = col + i / WARPS % COLS;
            if (row < p.items && j < p.n) store(c, bias, row, j, to[i], p);
        }
    }
};

extern "C" __global__ void __launch_bounds__(32 * WARPS, 1)
    csr(const u32 *__restrict__ rowptr, const u32 *__restrict__, const uint4 *__restrict__ values,
        const uint4 *__restrict__ heavy, const Elem *__restrict__ b, const float *__restrict__ bias,
        void *__restrict__ c, float *, const Params p) {
    extern __shared__ __align__(16) unsigned char memory[];
    const uint4 *columns = heavy + p.segments;
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, ctas = gridDim.x * gridDim.z, rows = ctas * WARPS,
        cta = blockIdx.x + blockIdx.z * gridDim.x, col = blockIdx.y * COLS, begin = 0, end = 0,
        at = shared_address(memory), round = 0;
    Kept kept(memory, rows, p);
    u32 row = kept.any ? cta * WARPS + warp : warp * ctas + cta; // (The latter is 8 % faster by itself.)
    if (row < p.items) begin = rowptr[row], end = rowptr[row + 1];
    Group x[UNROLL];
    auto bring = [&](u32 group) {
#pragma unroll
        for (u32 u = 0; u < UNROLL; u++) {
            x[u] = Group{};
            if ((group + 32 * u) * 8 >= end) continue;
            load(x[u].value, values + group + 32 * u);
            load(x[u].column, columns + group + 32 * u);
        }
    };
    bring(begin / 8 + lane);
    launches_before();
    fill((Elem *)memory, b, col, p);
    launches_after();
    __syncthreads();
#pragma unroll 1
    for (bool here = true; row < p.items; here = false) {
        u32 next = row + rows, next_begin = 0, next_end = 0;
        if (next < p.items) next_begin = rowptr[next], next_end = rowptr[next + 1];
        float sum[COLS] = {};
#pragma unroll 1
        for (u32 group = begin / 8 + lane; __any_sync(0xffffffff, group * 8 < end); group += 32 * UNROLL) {
            if (!here) bring(group);
            here = false;
#pragma unroll
            for (u32 u = 0; u < UNROLL; u++) {
                if ((group + 32 * u) * 8 >= end) break;
                within(x[u], (group + 32 * u) * 8, begin, end, p.longest);
#pragma unroll
                for (u32 i = 0; i < 4; i++) {
                    add(sum, widen_lo<ELEM>(x[u].value[i]), at, (x[u].column[i] & 0xffff) * ROW);
                    add(sum, widen_hi<ELEM>(x[u].value[i]), at, (x[u].column[i] >> 16) * ROW);
                }
            }
        }
#pragma unroll
        for (u32 j = 0; j < COLS; j++)
#pragma unroll
            for (u32 d = 16; d > 0; d /= 2) sum[j] += __shfl_xor_sync(0xffffffff, sum[j], d);
#pragma unroll
        for (u32 j = 0; j < COLS; j++) {
            if (lane != j) continue;
            if (kept.any) kept.to[(round * COLS + j) * WARPS + warp] = sum[j];
            else if (col + j < p.n) store(c, bias, row, col + j, sum[j], p);
        }
        row = next, begin = next_begin, end = next_end, round++;
    }
    if (kept.any) kept.write(c, bias, cta * WARPS, rows, col, p);
}
