// Computes: C (rows × n) = alpha·A·B + beta·C for n = COLS of 1 to 4, A (rows × cols) in CSR, f32 or f64 (DOUBLE).
// Tile: each warp takes a chunk of A at a time, of at most SLOTS entries and ROWS rows. p.along lanes compute a row,
// and each takes UNROLL entries at a time. The whole warp computes a row of more than p.longest entries. A row longer
// than a chunk leaves a partial sum for each chunk in the workspace, which phase 1 adds. The order of a row's sum
// depends only on its length and the matrix's average length.
// Data movement: bulk copies load a chunk's row pointers, columns and values into the warp's STAGES stage buffers in
// shared memory. Rows of B are gathered through L1. The stage buffers leave 60 KB of L1: with less, a matrix with
// scattered columns takes a fifth longer.
// Bound by: the bytes of A, which is read once.
// Constants: ENTRY, DOUBLE, COLS, SLOTS, ROWS, STAGES, UNROLL.

#include "params.h"
#include "../include/bulk.cuh"
#include "../include/launches.cuh"
#ifdef DOUBLE
#include "../include/f64.cuh"
typedef double Elem;
#else
#include "../include/epilogue.cuh"
typedef float Elem;
#endif

#define ALL 0xffffffffu
#define SEGMENT (1u << 31) // set in Chunk::what for a segment of a row

// A stage has the row pointers of a chunk, its columns and its values, each from a multiple of four elements on.
#define ROW_BYTES ((ROWS + 8) * 4)
#define COLUMN_BYTES ((SLOTS + 8) * 4)
#define STAGE_BYTES (ROW_BYTES + (SLOTS + 8) * (4 + (u32)sizeof(Elem)))

// Chunk is a list of rows from `row` on, whose entries are first to last - 1. `what` is the number of rows. Or, if it
// has the bit SEGMENT, the chunk is a segment of `row`, and the other bits are the segment's slot in the workspace.
struct Chunk {
    u32 first, last, row, what;
};

__device__ __forceinline__ Chunk chunk_at(const uint4 *chunks, u32 i, u32 count) {
    uint4 w = i < count ? __ldg(chunks + i) : make_uint4(0, 0, 0, 0);
    return {w.x, w.y, w.z, w.w};
}

// copy_through loads bytes, a multiple of 16, into shared memory. The policy keeps them from displacing rows of B in
// L2.
__device__ __forceinline__ void copy_through(u32 to, const void *from, u32 bytes, u32 barrier, u64 policy) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::
            "r"(to),
        "l"(from), "r"(bytes), "r"(barrier), "l"(policy)
        : "memory");
}

struct A {
    const u32 *rowptr, *colidx;
    const Elem *values;
};

// fetch starts loading a chunk into a stage; a single lane calls it.
__device__ __forceinline__ void fetch(const A &a, const Chunk &k, u32 stage, u32 barrier, u64 policy) {
    constexpr u32 behind = 16 / sizeof(Elem) - 1; // elements past the last entry that certainly are in memory
    u32 from = k.first & ~3u, count = ((k.last + 3) & ~3u) - from,
        bytes = (((k.last + behind) & ~behind) - from) * (u32)sizeof(Elem);
    u32 row = k.row & ~3u, rows = ((k.row + (k.what & SEGMENT ? 1 : k.what) + 4) & ~3u) - row;
    barrier_expect(barrier, (rows + count) * 4 + bytes);
    copy_through(stage, a.rowptr + row, rows * 4, barrier, policy);
    if (count == 0) return;
    copy_through(stage + ROW_BYTES, a.colidx + from, count * 4, barrier, policy);
    copy_through(stage + ROW_BYTES + COLUMN_BYTES, a.values + from, bytes, barrier, policy);
}

// load reads the lane's columns of a row of B, or zeros. (It is predicated by hand: with branches the compiler would
// wait for each load before the next.)
__device__ __forceinline__ void load(Elem (&x)[COLS], const Elem *b, bool in) {
#if COLS == 1
#ifdef DOUBLE
    asm volatile(
        "{.reg .pred in; setp.ne.u32 in, %2, 0; mov.f64 %0, 0d0000000000000000; @in ld.global.nc.f64 %0, [%1];}"
        : "=d"(x[0])
        : "l"(b), "r"((u32)in));
#else
    asm volatile("{.reg .pred in; setp.ne.u32 in, %2, 0; mov.f32 %0, 0f00000000; @in ld.global.nc.f32 %0, [%1];}"
                 : "=f"(x[0])
                 : "l"(b), "r"((u32)in));
#endif
#elif defined(DOUBLE)
#pragma unroll
    for (int j = 0; j < COLS; j += 2)
        asm volatile(
            "{.reg .pred in; setp.ne.u32 in, %3, 0; mov.f64 %0, 0d0000000000000000; mov.f64 %1, 0d0000000000000000;\n\t"
            "@in ld.global.nc.v2.f64 {%0, %1}, [%2];}"
            : "=d"(x[j]), "=d"(x[j + 1])
            : "l"(b + j), "r"((u32)in));
#elif COLS == 2
    asm volatile("{.reg .pred in; setp.ne.u32 in, %3, 0; mov.f32 %0, 0f00000000; mov.f32 %1, 0f00000000; "
                 "@in ld.global.nc.v2.f32 {%0, %1}, [%2];}"
                 : "=f"(x[0]), "=f"(x[1])
                 : "l"(b), "r"((u32)in));
#else
#pragma unroll
    for (int j = 0; j < COLS; j += 4)
        asm volatile("{.reg .pred in; setp.ne.u32 in, %5, 0; mov.f32 %0, 0f00000000; mov.f32 %1, 0f00000000; "
                     "mov.f32 %2, 0f00000000; mov.f32 %3, 0f00000000;\n\t"
                     "@in ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];}"
                     : "=f"(x[j]), "=f"(x[j + 1]), "=f"(x[j + 2]), "=f"(x[j + 3])
                     : "l"(b + j), "r"((u32)in));
#endif
}

// entries adds the products of entries k, k + step and so on before end. columns and values are those of a stage.
__device__ __forceinline__ void entries(Elem (&acc)[COLS], u32 k, u32 end, u32 step, const u32 *columns,
                                        const Elem *values, const Elem *b, u32 ldb) {
    for (; k < end; k += UNROLL * step) {
        Elem x[UNROLL][COLS];
#pragma unroll
        for (u32 i = 0; i < UNROLL; i++) {
            u32 at = k + i * step;
            load(x[i], b + (u64)columns[at < end ? at : k] * ldb, at < end);
        }
#pragma unroll
        for (u32 i = 0; i < UNROLL; i++) {
            u32 at = k + i * step;
            Elem v = at < end ? values[at] : (Elem)0;
#pragma unroll
            for (u32 j = 0; j < COLS; j++) acc[j] = fma(v, x[i][j], acc[j]);
        }
    }
}

// join adds the sums of `lanes` neighbouring lanes.
__device__ __forceinline__ void join(Elem (&acc)[COLS], u32 lanes) {
    for (u32 d = 1; d < lanes; d *= 2)
#pragma unroll
        for (u32 j = 0; j < COLS; j++) acc[j] += __shfl_xor_sync(ALL, acc[j], d);
}

// store writes a row's sums to C, from column col on.
__device__ __forceinline__ void store(void *c, const Elem *bias, Elem (&acc)[COLS], u32 row, u32 col, const Params &p) {
#ifdef DOUBLE
    double alpha = alpha_of(p), beta = beta_of(p), *to = (double *)c + (u64)row * p.ldc + col;
#pragma unroll
    for (u32 j = 0; j < COLS; j++) {
        if (col + j >= p.n) return;
        double y = alpha * acc[j];
        if (beta != 0) y = fma(beta, to[j], y);
        to[j] = has_epilogue(p.store) ? epilogue64(y, p.store, bias, row, col + j) : y;
    }
#else
#pragma unroll
    for (u32 j = 0; j < COLS; j++) acc[j] *= p.alpha;
    if (p.store != F32 || p.beta != 0) {
#pragma unroll
        for (u32 j = 0; j < COLS; j += 4)
            store_quad(
                c, bias, p.store, row, col + j, min(p.n, col + COLS), p.ldc, p.beta,
                make_float4(acc[j], acc[min(j + 1, COLS - 1)], acc[min(j + 2, COLS - 1)], acc[min(j + 3, COLS - 1)]));
        return;
    }
    float *to = (float *)c + (u64)row * p.ldc + col;
#if COLS >= 4
    if (col + COLS <= p.n && p.ldc % 4 == 0) {
#pragma unroll
        for (u32 j = 0; j < COLS; j += 4) *(float4 *)(to + j) = make_float4(acc[j], acc[j + 1], acc[j + 2], acc[j + 3]);
        return;
    }
#endif
#pragma unroll
    for (u32 j = 0; j < COLS; j++)
        if (col + j < p.n) to[j] = acc[j];
#endif
}

// add_slots is phase 1: a warp adds the partial sums of a row that was cut into segments.
__device__ __forceinline__ void add_slots(const uint4 *rows, void *c, const Elem *bias, const Elem *part, u32 warp,
                                          u32 lane, u32 col, const Params &p) {
    uint4 w = warp < p.items ? __ldg(rows + warp) : make_uint4(0, 0, 0, 0); // row, first slot, last + 1
    launches_before();
    launches_after();
    Elem acc[COLS] = {};
#pragma unroll 4
    for (u32 i = w.y + lane; i < w.z; i += 32)
#pragma unroll
        for (u32 j = 0; j < COLS; j++) acc[j] += part[(u64)i * p.ldp + col + j];
    join(acc, 32);
    if (lane == 0 && warp < p.items) store(c, bias, acc, w.x, col, p);
}

// multiply computes the rows, or the segment, of a chunk in a stage.
__device__ __forceinline__ void multiply(const Chunk &k, const unsigned char *stage, const Elem *b, const Elem *bias,
                                         void *c, Elem *part, u32 lane, u32 col, const Params &p) {
    const u32 *pointers = (const u32 *)stage + (k.row & 3), *columns = (const u32 *)(stage + ROW_BYTES);
    const Elem *values = (const Elem *)(stage + ROW_BYTES + COLUMN_BYTES);
    u32 from = k.first & ~3u;
    if (k.what & SEGMENT) {
        Elem acc[COLS] = {};
        entries(acc, k.first - from + lane, k.last - from, 32, columns, values, b, p.ldb);
        join(acc, 32);
        Elem *to = part + (u64)(k.what & ~SEGMENT) * p.ldp + col;
        if (lane == 0)
#pragma unroll
            for (u32 j = 0; j < COLS; j++) to[j] = acc[j];
        return;
    }
    u32 shift = __ffs(p.along) - 1, member = lane & (p.along - 1);
    for (u32 first = 0; first < k.what; first += 32 >> shift) {
        u32 row = first + (lane >> shift), begin = 0, end = 0;
        if (row < k.what) begin = pointers[row] - from, end = pointers[row + 1] - from;
        bool alone = end - begin > p.longest;
        Elem acc[COLS] = {};
        if (!alone) entries(acc, begin + member, end, p.along, columns, values, b, p.ldb);
        join(acc, p.along);
        if (!alone && member == 0 && row < k.what) store(c, bias, acc, k.row + row, col, p);
        for (u32 left = __ballot_sync(ALL, alone && member == 0); left != 0; left &= left - 1) {
            u32 lane_of = __ffs(left) - 1, at = __shfl_sync(ALL, begin, lane_of), last = __shfl_sync(ALL, end, lane_of);
            Elem all[COLS] = {};
            entries(all, at + lane, last, 32, columns, values, b, p.ldb);
            join(all, 32);
            if (lane == 0) store(c, bias, all, k.row + first + (lane_of >> shift), col, p);
        }
    }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS)
    csr(const u32 *__restrict__ rowptr, const u32 *__restrict__ colidx, const Elem *__restrict__ values,
        const uint4 *__restrict__ heavy, const Elem *__restrict__ b, const Elem *__restrict__ bias,
        void *__restrict__ c, Elem *part, const Params p) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ u64 barriers[WARPS][STAGES];
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, col = blockIdx.y * COLS;
    u32 block = blockIdx.x + blockIdx.z * gridDim.x;
    const uint4 *list = heavy + p.segments;
    if (p.phase == 1) {
        add_slots(list, c, bias, part, block * WARPS + warp, lane, col, p);
        return;
    }
    u32 stride = gridDim.x * gridDim.z * WARPS, number = block * WARPS + warp;
    A a = {rowptr, colidx, values};
    unsigned char *ring = memory + warp * STAGES * STAGE_BYTES;
    u32 at = shared_address(ring), barrier = shared_address(&barriers[warp][0]);
    u64 policy;
    asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    if (lane == 0) {
        for (u32 i = 0; i < STAGES; i++) barrier_init(barrier + 8 * i, 1);
        barrier_fence();
    }
    __syncwarp();
    // The chunks of the stages. The last one is not being loaded yet.
    Chunk chunks[STAGES];
#pragma unroll
    for (u32 i = 0; i < STAGES; i++) {
        chunks[i] = chunk_at(list, number + i * stride, p.items);
        if (lane == 0 && i + 1 < STAGES && number + i * stride < p.items)
            fetch(a, chunks[i], at + i * STAGE_BYTES, barrier + 8 * i, policy);
    }
    launches_before();
    launches_after();
    b += col;
    for (u32 parity = 0;; parity ^= 1) {
#pragma unroll
        for (u32 i = 0; i < STAGES; i++) {
            if (number >= p.items) return;
            constexpr u32 ahead = STAGES - 1;
            u32 free = (i + ahead) % STAGES;
            if (lane == 0 && number + ahead * stride < p.items)
                fetch(a, chunks[free], at + free * STAGE_BYTES, barrier + 8 * free, policy);
            Chunk k = chunks[i];
            chunks[i] = chunk_at(list, number + STAGES * stride, p.items);
            barrier_wait(barrier + 8 * i, parity);
            multiply(k, ring + i * STAGE_BYTES, b, bias, c, part, lane, col, p);
            __syncwarp(); // before the stage is written again
            number += stride;
        }
    }
}
