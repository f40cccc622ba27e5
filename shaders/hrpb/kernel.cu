// HRPB × dense on tensor cores, after cuTeSpMM (§3.3): f32 data in tf32, f16 and bf16 as they are.
//
// A team of one, two or four warps of a workgroup multiplies one part by COLS columns of B, each warp some
// of its blocks: the longer the part, the larger the team. The rows of B that a block's columns name, and
// the block itself, patterns and values, run through shared memory, DEPTH asynchronous copies deep, each
// warp on its own.
//
// The panel's rows sit on the instruction's m = 16 and columns of B on its n = 8. Bit i of the low word of a
// brick's pattern is lane i's slot of the A operand, row i/4 of column i%4; the high word holds rows 8 to
// 15. So a lane finds its values by counting the bits below its own. In f32 a block is one brick, for
// m16n8k4. In 16 bits it is two, for m16n8k8: k slots 2q and 2q+1 are column q of the first and of the second,
// which a byte permute of two rows of B makes.
//
// A lane reads 16 bytes of a row of B at a time, a unit: which of its elements are columns of which instruction
// does not matter, as long as C agrees. Staged rows are 32 bytes out of step, and lanes are dealt units (see
// unit), so that neither these reads nor the stores of C's sectors waste bandwidth. A team's sums are added
// up in order through shared memory.
//
// Most launches last some microseconds, in which a warp runs each instruction a few times and waits for it:
// what counts is their number, and what is rare is kept out of the way, in functions.
//
// Compile-time constants: ENTRY, ELEM (half.cuh), COLS = 128, WARPS = 4, DEPTH, BLOCK (4 in f32, else 8).

#include "params.h"
#include "../include/result.cuh"

#if ELEM == F32
typedef float Elem;
#define ELEM_BYTES 4
__device__ __forceinline__ float to_float(float x) { return x; }
#else
typedef u16 Elem;
#define ELEM_BYTES 2
__device__ __forceinline__ float to_float(u16 x) { return widen_lo<ELEM>(x); }
#endif

#define ROWS 16                        // of a panel
#define UNIT (16 / ELEM_BYTES)         // elements
#define UNITS (COLS / UNIT)            // of a row: all lanes copy one, or half of them each one of two
#define COPIES (BLOCK * UNITS / 32)    // of a lane, for a block: 4
#define PITCH (COLS * ELEM_BYTES + 32) // bytes from a staged row to the next
#define PACKED (BLOCK * PITCH)         // where a stage has the block
#define VALUES (PACKED + 2 * BLOCK)    // and its values
#define STAGE ((VALUES + ROWS * BLOCK * ELEM_BYTES + 15) / 16 * 16)
#define TILES (COLS / 8)               // instructions along a row
#define SUM_PITCH (COLS * 4 + 16)      // bytes from a row of sums to the next
#define RING (DEPTH * STAGE > ROWS * SUM_PITCH ? DEPTH * STAGE : ROWS * SUM_PITCH)
#define NO_SLOT 0xffffffffu
#define ALL 0xffffffffu

// Through the first-level cache: neighbouring panels share columns. The second form copies if i < n.
__device__ __forceinline__ void copy16(u32 to, const void *from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
__device__ __forceinline__ void copy16(u32 to, const void *from, u32 i, u32 n) {
    asm volatile("{.reg .pred in; setp.lt.u32 in, %2, %3; @in cp.async.ca.shared.global [%0], [%1], 16;}" ::"r"(to), "l"(from), "r"(i), "r"(n)
                 : "memory");
}

// step is p + n·size. (In C++ it takes twice as many instructions.)
__device__ __forceinline__ const void *step(const void *p, u32 n, u32 size) {
    const void *q;
    asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(q) : "r"(n), "r"(size), "l"(p));
    return q;
}

// keep keeps a value in a register that would else be computed again wherever it is needed.
__device__ __forceinline__ void keep(u32 &x) { asm volatile("" : "+r"(x)); }
template <class T> __device__ __forceinline__ void keep(const T *&x) { asm volatile("" : "+l"(x)); }

#if ELEM == F32
// Rounds to nearest tf32: the instruction itself would cut the low bits off.
__device__ __forceinline__ u32 tf32(u32 x) {
    u32 r;
#if __CUDA_ARCH__ >= 900
    asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(r) : "f"(__uint_as_float(x)));
#else
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(__uint_as_float(x))); // two instructions there
#endif
    return r;
}

__device__ __forceinline__ void mma(float (&d)[4], const u32 (&a)[2], u32 b) {
    asm volatile("mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b));
}
#else
__device__ __forceinline__ void mma(float (&d)[4], const u32 (&a)[2], u32 b) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32."
#if ELEM == BF16
                 "bf16.bf16"
#else
                 "f16.f16"
#endif
                 ".f32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b));
}
#endif

// unit is the place in 8 neighbouring units of the one that the instruction's column g is in. Columns 2i and
// 2i+1 are in units of different parity: with rows 32 bytes out of step no two lanes of a quarter-warp
// then read the same banks. In f32, where a unit is half a sector of C, the units of even columns make
// whole sectors, as do those of odd ones: they are what two stores write.
__device__ __forceinline__ u32 unit(u32 g) {
#if ELEM == F32
    return 0x65742130u >> (4 * g) & 7;
#else
    return g;
#endif
}

__device__ __forceinline__ u32 word(const uint4 &v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }

// What a lane knows of its place.
struct Lane {
    u32 bit, below; // its bit of a word of a pattern, and those below
    u32 rows;       // what it reads of a stage
};

// value is the lane's slot in one word of a pattern; values is where those of this word start. Where the
// slot is empty what is read is there, but means nothing.
__device__ __forceinline__ u32 value(u32 pattern, const Elem *values, const Lane &l) {
    Elem v = values[__popc(pattern & l.below)];
#if ELEM == F32
    return pattern & l.bit ? tf32(__float_as_uint(v)) : 0;
#else
    return pattern & l.bit ? v : 0;
#endif
}

// operand is the A operand of a block.
__device__ __forceinline__ void operand(u32 (&a)[2], const unsigned char *stage, const Lane &l) {
    const Elem *v = (const Elem *)(stage + VALUES);
#if ELEM == F32
    uint2 w = *(const uint2 *)(stage + PACKED);
    a[0] = value(w.x, v, l);
    a[1] = value(w.y, v + __popc(w.x), l);
#else
    uint4 w = *(const uint4 *)(stage + PACKED);
    const Elem *v1 = v + __popc(w.x), *v2 = v1 + __popc(w.y), *v3 = v2 + __popc(w.z);
    a[0] = value(w.x, v, l) | value(w.z, v2, l) << 16;
    a[1] = value(w.y, v1, l) | value(w.w, v3, l) << 16;
#endif
}

// multiply adds the products of a block. The sums of what is element j of unit 8·i + u are in tile UNIT·i + j.
__device__ __forceinline__ void multiply(float (&acc)[TILES][4], const u32 (&a)[2], const unsigned char *stage, const Lane &l) {
#pragma unroll
    for (int i = 0; i < UNITS / 8; i++) {
        uint4 x = *(const uint4 *)(stage + l.rows + 128 * i);
#if ELEM == F32
#pragma unroll
        for (int j = 0; j < 4; j++) mma(acc[4 * i + j], a, tf32(word(x, j)));
#else
        uint4 y = *(const uint4 *)(stage + l.rows + 128 * i + 4 * PITCH);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            mma(acc[8 * i + 2 * j], a, __byte_perm(word(x, j), word(y, j), 0x5410));
            mma(acc[8 * i + 2 * j + 1], a, __byte_perm(word(x, j), word(y, j), 0x7632));
        }
#endif
    }
}

// What the rare functions need, which is all but constant.
struct Matrix {
    const u32 *columns, *sizes, *packed;
    const Elem *b;
};

// An output from the entries of a panel's blocks alone: see Special.
static __device__ __noinline__ float entries(Matrix m, u32 ldb, u32 first, u32 last, u32 row, u32 col) {
    Special sum;
    for (u32 q = first; q < last; q++) {
        const u32 *block = m.packed + 4 * (u64)m.sizes[q];
        const Elem *values = (const Elem *)(block + BLOCK / 2);
        for (u32 i = 0; i < BLOCK / 2; i++) {
            u32 w = block[i];
            for (u32 c = 0; c < 4; c++) {
                u32 bit = row % 8 * 4 + c;
                if (i % 2 != row / 8 || !(w >> bit & 1)) continue;
                u32 k = m.columns[(u64)q * BLOCK + i / 2 * 4 + c];
                sum.add(to_float(values[__popc(w & ((1u << bit) - 1))]), to_float(m.b[(u64)k * ldb + col]));
            }
            values += __popc(w);
        }
    }
    return sum.result();
}

// finish writes four neighbouring sums of a panel's row to C, whatever they are and wherever.
static __device__ __noinline__ void finish(const Params *p, Dest to, Matrix m, u32 panel, u32 first, u32 last, u32 row, u32 col, float4 v) {
    Out<Params>(to, *p).store(panel * ROWS + row, col, v, [&](u32, u32 j) { return entries(m, p->ldb, first, last, row, j); });
}

// add_slots is phase 1: a warp adds up one row of a split panel's slots.
static __device__ __noinline__ void add_slots(const Params *p, const uint4 *work, Matrix m, Dest to, const float *part, u32 number) {
    u32 row = number % ROWS, col = blockIdx.y * 128 + threadIdx.x % 32 * 4;
    if (number / ROWS >= p->items || col >= p->n) return;
    uint4 w = work[p->parts + number / ROWS];
    u32 slots = (w.z - w.y + p->longest - 1) / p->longest;
    const float4 *from = (const float4 *)(part + ((u64)w.w * ROWS + row) * p->ldp + col);
    float4 x = make_float4(0, 0, 0, 0);
#pragma unroll 8
    for (u32 s = 0; s < slots; s++) {
        float4 v = from[(u64)s * (ROWS / 4) * p->ldp];
        x.x += v.x, x.y += v.y, x.z += v.z, x.w += v.w;
    }
    finish(p, to, m, w.x, w.y, w.z, row, col, x);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    ENTRY(const uint4 *__restrict__ work, const u32 *__restrict__ columns, const u32 *__restrict__ sizes, const u32 *__restrict__ packed,
          const Elem *__restrict__ b, const float *__restrict__ bias, void *__restrict__ c, float *__restrict__ part,
          const __grid_constant__ Params p) {
    extern __shared__ __align__(16) unsigned char rings[];
    u32 lane = threadIdx.x & 31, warp = threadIdx.x >> 5, group = blockIdx.x + blockIdx.z * p.width;
    if (p.phase == 1) {
        add_slots(&p, work, {columns, sizes, packed, b}, {c, bias}, part, group * WARPS + warp);
        return;
    }
    // The workgroup's parts: first those for teams of four warps, then of two, then of one.
    u32 shift = 2, item = group, last = p.fours, base = blockIdx.y * COLS; // team size's logarithm
    if (group >= p.fours) {
        shift = 1, item = 2 * group - p.fours + warp / 2, last = p.fours + p.twos;
        if (item - warp / 2 >= last) shift = 0, item = 4 * group - 3 * p.fours - 2 * ((p.twos + 1) & ~1u) + p.twos + warp, last = p.items;
    }
    u32 member = warp & ((1 << shift) - 1);
    bool busy = item < last;
    uint4 w = make_uint4(0, 0, 0, NO_SLOT);
    if (busy) w = __ldg(work + item);
    u32 all = w.z - w.y, skip = all * member >> shift, count = (all * (member + 1) >> shift) - skip;

    u32 g = lane >> 2, q = lane & 3;
    Lane l = {1u << lane, (1u << lane) - 1, q * PITCH + 16 * unit(g)};
    keep(l.bit), keep(l.below), keep(l.rows);

    // Asynchronous copies. Lanes whose columns C does not have copy the last that it has: what the sums then
    // hold is never stored. Column numbers and the block's end are read a block ahead.
    unsigned char *ring = rings + warp * RING;
    u32 to = shared_address(ring) + lane / UNITS * COPIES * PITCH + lane % UNITS * 16, block_to = shared_address(ring) + PACKED + 16 * lane;
    const char *from = (const char *)(b + min(base + lane % UNITS * UNIT, (p.n - 1) / UNIT * UNIT));
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
#pragma unroll
            for (int k = 0; k < COPIES; k++) copy16(to + put + k * PITCH, step(from, word(next[k / 4], k % 4), pitch));
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
#pragma unroll 1
    for (u32 s = 0; s < DEPTH - 1; s++) fetch(s);

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

    // An f32 row of C, or one of the slot, to which the sums go, if they can go as they are.
    float *out = w.w == NO_SLOT ? (float *)c : part;
    u32 row = (w.w == NO_SLOT ? w.x : w.w) * ROWS, ld = w.w == NO_SLOT ? p.ldc : p.ldp, rows = w.w == NO_SLOT ? p.rows : ALL;
    bool plain = w.w != NO_SLOT || p.store == F32 && p.alpha == 1 && p.beta == 0 && (ld & 3) == 0;
    if (shift == 0) {
        float check[4] = {}; // not finite if one of the sums is not
#pragma unroll
        for (int i = 0; i < TILES; i += 2)
#pragma unroll
            for (int e = 0; e < 4; e++) check[e] = fmaf(acc[i][e], acc[i + 1][e], check[e]);
        bool finite = fabsf(fmaf(check[0], check[1], check[2]) * check[3]) < INFINITY;
        if (__all_sync(ALL, plain && base + COLS <= p.n && row + ROWS <= rows && (finite || w.w != NO_SLOT))) {
            if (!busy) return;
#pragma unroll
            for (int h = 0; h < 2; h++) {
                float *line = out + (u64)(row + g + 8 * h) * ld + base;
#pragma unroll
                for (int e = 0; e < 2; e++)
#pragma unroll
                    for (int j = 0; j < TILES; j += 4)
                        __stcs((float4 *)(line + unit(2 * q + e) * UNIT + j / UNIT * (8 * UNIT) + j % UNIT), // it is B that is to stay in the cache
                               make_float4(acc[j][2 * h + e], acc[j + 1][2 * h + e], acc[j + 2][2 * h + e], acc[j + 3][2 * h + e]));
            }
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
                *(float4 *)(ring + (g + 8 * h) * SUM_PITCH + 4 * (unit(2 * q + e) * UNIT + j / UNIT * (8 * UNIT) + j % UNIT)) =
                    make_float4(acc[j][2 * h + e], acc[j + 1][2 * h + e], acc[j + 2][2 * h + e], acc[j + 3][2 * h + e]);
    if (shift > 0)
        __syncthreads();
    else
        __syncwarp();
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
        float *line = out + (u64)(row + r) * ld + col;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            bool finite = fabsf(fmaf(x[i].x, x[i].y, x[i].z * x[i].w)) < INFINITY;
            if (plain && (w.w != NO_SLOT || col + 4 <= p.n && row + r + i < rows && finite))
                __stcs((float4 *)(line + (u64)i * ld), x[i]);
            else
                finish(&p, {c, bias}, {columns, sizes, packed, b}, w.x, w.y, w.z, r + i, col, x[i]);
        }
    }
}
