// Computes: C = alpha·A·B + beta·C, A (rows × cols) in HRPB: panels of 16 rows, blocks of BLOCK active columns, bricks
// (16 × 4) with a bit pattern; f16 or bf16, sums in f32. After cuTeSpMM (§3.3).
// Tile: a team of one, two or four warps computes (16 × COLS) for a work item, a run of blocks of a panel; the longer
// the run, the larger the team. Each warp takes some of the blocks, and partial sums are added in order through shared
// memory. mma.m16n8k8: rows on m, columns of B on n. Bit i of a brick's low pattern word is lane i's slot of operand A,
// row i/4 of column i%4; the high word has rows 8 to 15: a lane finds its values by counting the bits below its own. k
// slots 2q and 2q + 1 are column q of the block's two bricks.
// Data movement: rows of B, patterns and values go through shared memory by cp.async, DEPTH copies deep, each warp on
// its own. A lane reads 16 bytes of a row of B at a time. Staged rows are 32 bytes out of step, which avoids bank
// conflicts.
// Bound by: instruction issue and latency: most launches last a few microseconds. Rare paths are functions of their
// own.
// Constants: ENTRY, ELEM (half.cuh), COLS = 128, WARPS = 4, DEPTH, BLOCK = 8.

#include "params.h"
#include "../include/half.cuh"

typedef unsigned short Elem;
#define ELEM_BYTES 2
__device__ __forceinline__ float to_float(Elem x) { return widen_lo<ELEM>(x); }
#include "hrpb.cuh"

#define UNIT (16 / ELEM_BYTES) // elements
#define UNITS (COLS / UNIT) // of a row: all lanes copy one, or half of them each one of two
#define COPIES (BLOCK * UNITS / 32) // of a lane, for a block: 4
#define PITCH (COLS * ELEM_BYTES + 32) // bytes from a staged row to the next
#define PACKED (BLOCK * PITCH) // where a stage has the block
#define VALUES (PACKED + 2 * BLOCK) // and its values
#define STAGE ((VALUES + ROWS * BLOCK * ELEM_BYTES + 15) / 16 * 16)
#define TILES (COLS / 8) // instructions along a row
#define SUM_PITCH (COLS * 4 + 16) // bytes from a row of sums to the next
#define RING (DEPTH * STAGE > ROWS * SUM_PITCH ? DEPTH * STAGE : ROWS * SUM_PITCH)

#include "sums.cuh"

// copy16 as in sums.cuh, if i < n.
__device__ __forceinline__ void copy16(u32 to, const void *from, u32 i, u32 n) {
    asm volatile("{.reg .pred in; setp.lt.u32 in, %2, %3; @in cp.async.ca.shared.global [%0], [%1], 16;}" ::"r"(to),
                 "l"(from), "r"(i), "r"(n)
                 : "memory");
}

// keep keeps a value in a register that would else be computed again wherever it is needed.
__device__ __forceinline__ void keep(u32 &x) { asm volatile("" : "+r"(x)); }
template <class T> __device__ __forceinline__ void keep(const T *&x) { asm volatile("" : "+l"(x)); }

// What a lane knows of its place.
struct Lane {
    u32 bit, below; // its bit of a word of a pattern, and those below
    u32 rows; // what it reads of a stage
};

// value is the lane's slot in one word of a pattern; values is where those of this word start. Where the
// slot is empty, the value read is valid memory that nothing uses.
__device__ __forceinline__ u32 value(u32 pattern, const Elem *values, const Lane &l) {
    Elem v = values[__popc(pattern & l.below)];
    return pattern & l.bit ? v : 0;
}

// operand is the A operand of a block.
__device__ __forceinline__ void operand(u32 (&a)[2], const unsigned char *stage, const Lane &l) {
    const Elem *v = (const Elem *)(stage + VALUES);
    uint4 w = *(const uint4 *)(stage + PACKED);
    const Elem *v1 = v + __popc(w.x), *v2 = v1 + __popc(w.y), *v3 = v2 + __popc(w.z);
    a[0] = value(w.x, v, l) | value(w.z, v2, l) << 16;
    a[1] = value(w.y, v1, l) | value(w.w, v3, l) << 16;
}

// multiply adds the products of a block. The sums of element j of unit 8·i + u are in tile UNIT·i + j.
__device__ __forceinline__ void multiply(float (&acc)[TILES][4], const u32 (&a)[2], const unsigned char *stage,
                                         const Lane &l) {
#pragma unroll
    for (int i = 0; i < UNITS / 8; i++) {
        uint4 x = *(const uint4 *)(stage + l.rows + 128 * i);
        uint4 y = *(const uint4 *)(stage + l.rows + 128 * i + 4 * PITCH);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            mma_k8<ELEM>(acc[8 * i + 2 * j], a[0], a[1], __byte_perm(word(x, j), word(y, j), 0x5410));
            mma_k8<ELEM>(acc[8 * i + 2 * j + 1], a[0], a[1], __byte_perm(word(x, j), word(y, j), 0x7632));
        }
    }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    ENTRY(const uint4 *__restrict__ work, const u32 *__restrict__ columns, const u32 *__restrict__ sizes,
          const u32 *__restrict__ packed, const Elem *__restrict__ b, const float *__restrict__ bias,
          void *__restrict__ c, float *__restrict__ part, const __grid_constant__ Params p) {
    extern __shared__ __align__(16) unsigned char rings[];
    u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, group = blockIdx.x + blockIdx.z * p.width;
    if (p.phase == 1) {
        launches_before();
        launches_after();
        add_slots(&p, work, {columns, sizes, packed, b}, {c, bias}, part, group * WARPS + warp);
        return;
    }
    Share mine(work, p, group, warp);
    uint4 w = mine.part;
    u32 shift = mine.shift, member = mine.member, skip = mine.skip, count = mine.count, base = blockIdx.y * COLS;
    bool busy = mine.busy;

    u32 g = lane >> 2, q = lane & 3;
    Lane l = {1u << lane, (1u << lane) - 1, q * PITCH + 16 * g};
    keep(l.bit), keep(l.below), keep(l.rows);

    // Load: asynchronous copies. Lanes whose columns C does not have copy nothing: their sums are never stored. Column
    // numbers and the block's end are prefetched a block early.
    unsigned char *ring = rings + warp * RING;
    u32 to = shared_address(ring) + lane / UNITS * COPIES * PITCH + lane % UNITS * 16,
        block_to = shared_address(ring) + PACKED + 16 * lane;
    bool in = base + lane % UNITS * UNIT < p.n;
    const char *from = (const char *)(b + base + lane % UNITS * UNIT);
    const uint4 *blocks = (const uint4 *)packed + lane;
    const uint4 *cols = (const uint4 *)(columns + (u64)(w.y + skip) * BLOCK + lane / UNITS * COPIES);
    const u32 *size = sizes + w.y + skip;
    u32 pitch = p.ldb * ELEM_BYTES, put = 0, start = 0, end = 0;
    keep(to), keep(block_to), keep(from), keep(blocks), keep(cols), keep(size);
    uint4 next[COPIES / 4];
    auto look = [&](u32 s) {
        s = min(s, count - 1);
#pragma unroll
        for (int i = 0; i < COPIES / 4; i++) next[i] = __ldg(cols + s * (BLOCK / 4) + i);
        end = __ldg(size + s + 1);
    };
    auto fetch = [&](u32 s) { // block s, if there is one
        if (s < count) {
            if (in)
#pragma unroll
                for (int k = 0; k < COPIES; k++)
                    copy16(to + put + k * PITCH, step(from, word(next[k / 4], k % 4), pitch));
            copy16(block_to + put, blocks + start, lane, end - start);
            start = end;
            look(s + 1);
            put = put == (DEPTH - 1) * STAGE ? 0 : put + STAGE;
        }
        copy_commit();
    };
    if (count > 0) {
        start = __ldg(size);
        look(0);
    }
    launches_before();
    launches_after();
#pragma unroll 1
    for (u32 s = 0; s < DEPTH - 1; s++) fetch(s);

    // Where the sums go: C, or the slot. The rows are looked up while copies are in flight.
    bool whole = w.w == NO_SLOT;
    float *out = whole ? (float *)c : part;
    u32 ld = whole ? p.ldc : p.ldp, rows = whole ? p.rows : ALL, place = (whole ? w.x : w.w) * ROWS;
    auto row_at = [&](u32 r) { return whole ? row_in(p, (const u32 *)work, place + r) : place + r; };
    u32 line_of[2] = {row_at(g), row_at(g + 8)};

    // Main loop: a block at a time.
    float acc[TILES][4] = {};
    u32 take = 0;
#pragma unroll 1
    for (u32 s = 0; s < count; s++) {
        copy_wait<DEPTH - 2>();
        __syncwarp();
        fetch(s + DEPTH - 1);
        u32 a[2];
        operand(a, ring + take, l);
        multiply(acc, a, ring + take, l);
        take = take == (DEPTH - 1) * STAGE ? 0 : take + STAGE;
    }

    // Epilogue of a team of one warp: store sums from registers, where they can go as they are.
    bool plain = !whole || p.store == F32 && p.alpha == 1 && p.beta == 0 && (ld & 3) == 0;
    if (shift == 0) {
        float all[4] = {};
        check(all, acc);
        bool finite = fabsf(fmaf(all[0], all[1], all[2]) * all[3]) < INFINITY;
        if (__all_sync(ALL, plain && base + COLS <= p.n && place + ROWS <= rows && (finite || !whole))) {
            if (!busy) return;
#pragma unroll
            for (int h = 0; h < 2; h++) {
                float *line = out + (u64)line_of[h] * ld + base;
#pragma unroll
                for (int e = 0; e < 2; e++)
#pragma unroll
                    for (int j = 0; j < TILES; j += 4)
                        __stcs((float4 *)(line + (2 * q + e) * UNIT + j / UNIT * (8 * UNIT) +
                                          j % UNIT), // it is B that is to stay in the cache
                               four(acc, j, 2 * h + e));
            }
            return;
        }
    }

    // Epilogue through shared memory: first as lanes have them, then by rows, the team's partial sums added.
    __syncwarp();
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int e = 0; e < 2; e++)
#pragma unroll
            for (int j = 0; j < TILES; j += 4)
                *(float4 *)(ring + (g + 8 * h) * SUM_PITCH +
                            4 * ((2 * q + e) * UNIT + j / UNIT * (8 * UNIT) + j % UNIT)) = four(acc, j, 2 * h + e);
    if (shift > 0) __syncthreads();
    else __syncwarp();
    u32 col = base + 4 * lane;
    if (!busy || col >= p.n) return;
    const unsigned char *sums = ring - member * RING + 16 * lane;
#pragma unroll 1
    for (u32 r = member * ROWS >> shift; r < (member + 1) * ROWS >> shift; r += 4) {
        float4 x[4] = {};
#pragma unroll 1
        for (u32 s = 0; s < 1 << shift; s++)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                float4 v = *(const float4 *)(sums + s * RING + (r + i) * SUM_PITCH);
                x[i].x += v.x, x[i].y += v.y, x[i].z += v.z, x[i].w += v.w;
            }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            bool finite = fabsf(fmaf(x[i].x, x[i].y, x[i].z * x[i].w)) < INFINITY;
            if (plain && (!whole || col + 4 <= p.n && place + r + i < rows && finite))
                __stcs((float4 *)(out + (u64)row_at(r + i) * ld + col), x[i]);
            else finish(&p, {c, bias}, {columns, sizes, packed, b}, (const u32 *)work, w.x, w.y, w.z, r + i, col, x[i]);
        }
    }
}
