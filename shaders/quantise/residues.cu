// Computes: B (cols × n) in RFX-p's fixed point as residues, or as two digits, and the ranges of its columns, q
// (quantise.go), in one launch.
// Tile: a cluster has 16 columns of B, each of its CTAs every eighth 256 rows of them, a thread 16 rows of a column.
// Data movement: elements go through registers; the first KEEP of a thread's 16 rows stay there while the cluster joins
// the columns' ranges, others are read again. A thread stores its 16 bytes as they are; with its neighbour's they are a
// sector.
// Bound by: arithmetic, 4 instructions an element and modulus; with few columns by the latency of the steps.

#define COLS 16
#define DEPTH 128 // rows of B in a block
#define BLOCKS 2 // at a time
#define LOCAL (DEPTH / 16 * COLS * BLOCKS)
#define CLUSTER 8
#define KEEP 2

#define OVERLAP

#include "columns.cuh"
#include "../include/bulk.cuh"
#include "../include/residues.cuh"

typedef long long i64;

// Mine is a thread's column and its 16 rows of a turn.
struct Mine {
    u32 column, chunk, block, j; // chunk: of 16 rows of its block; block: the first one
    bool inside;

    __device__ __forceinline__ Mine(const Params &p) {
        column = threadIdx.x % COLS, chunk = threadIdx.x / COLS % (DEPTH / 16);
        block = blockIdx.x * BLOCKS + threadIdx.x / (DEPTH / 16 * COLS), j = blockIdx.y * COLS + column;
        inside = j < p.n;
    }
    __device__ __forceinline__ u32 row(u32 turn) const {
        return (block + turn * CLUSTER * BLOCKS) * DEPTH + 16 * chunk;
    }
    // fetch returns the f32 bits of the elements of COUNT turns from `turn` on, zeros for those outside B. All loads
    // come before any use of one.
    template <int COUNT>
    __device__ __forceinline__ void fetch(u32 (&x)[COUNT][16], const void *b, u32 turn, const Params &p) const {
        if (p.elem == F32) load(x, (const u32 *)b, turn, p);
        else load(x, (const unsigned short *)b, turn, p);
        if (p.elem == F32) return;
#pragma unroll
        for (int i = 0; i < COUNT * 16; i++) {
            u32 h = x[i / 16][i % 16];
            x[i / 16][i % 16] = p.elem == F16 ? __float_as_uint(widen_lo<F16>(h)) : h << 16;
        }
    }
    template <int COUNT, typename T>
    __device__ __forceinline__ void load(u32 (&x)[COUNT][16], const T *b, u32 turn, const Params &p) const {
#pragma unroll
        for (int t = 0; t < COUNT; t++) {
            u32 k = row(turn + t);
            size_t at = (size_t)k * p.ldb + j;
#pragma unroll
            for (int i = 0; i < 16; i++, at += p.ldb) x[t][i] = inside && k + i < p.k ? __ldg(b + at) : 0;
        }
    }
};

// join_cluster joins what the threads of a column found, in the whole cluster.
__device__ __forceinline__ u32 join_cluster(u32 r, u32 column) {
    __shared__ u32 found[LOCAL / COLS][COLS], mine[COLS], all[CLUSTER][COLS];
    found[threadIdx.x / COLS][column] = r;
    __syncthreads();
    if (threadIdx.x < COLS) {
#pragma unroll
        for (int i = 0; i < LOCAL / COLS; i++) r = Seen::join(r, found[i][column]);
        mine[column] = r;
    }
    cluster_sync();
    if (threadIdx.x < COLS * CLUSTER)
        all[threadIdx.x / COLS][column] =
            __float_as_uint(cluster_load(shared_address(&mine[column]), threadIdx.x / COLS));
    __syncthreads();
    r = 0;
#pragma unroll
    for (int i = 0; i < CLUSTER; i++) r = Seen::join(r, all[i][column]);
    return r;
}

// quantised returns an element's digits. It reads either l or the factors of a column.
template <bool WIDE> __device__ __forceinline__ Digits quantised(u32 x, int l, float scale, float more) {
    if (WIDE) return digits47(x, l);
    return {digits(whole(x, scale, more), 31), 0}; // with fewer digits the fourth one takes what is left
}

// A sum of weighted digits starts from the bits of an f32 between 2^23 and 2^24, where an f32 counts in ones: the
// origin, a multiple of 256·m. So one multiply-add in f32 finds the quotient by m and rounds it to an integer, which
// the sum WHOLE + quotient is. The residue is computed modulo 256, where the origin and WHOLE are zero.
#define TWO23 0x800000u
#define WHOLE 0xc00000u
__host__ __device__ constexpr u32 quotient_of_origin(u32 m) { return (WHOLE / m + 128) / 256 * 256; }

// near returns whether residues of any digits fit a byte: the remainder is half of m at most, and as far off as the
// reciprocal's error makes the quotient.
__host__ __device__ constexpr bool near(u32 m) {
    i64 sum = 0, power = 1;
    for (int d = 0; d < 6; d++) {
        int w = balanced((u32)power, m);
        sum += 128 * (w < 0 ? -w : w), power = power * 256 % m;
    }
    double origin = (double)m * quotient_of_origin(m), off = (double)(1.0f / m) * m - 1;
    double most = (origin + sum) / m * off, least = (origin - sum) / m * off; // of the quotient
    if (off < 0) {
        double x = most;
        most = least, least = x;
    }
    return origin - sum >= TWO23 && origin + sum < 2 * TWO23 && m * (0.5 - least) < 128 && m * (0.5 + most) < 129;
}
constexpr bool all_near() {
    for (int i = 0; i < MOST_MODULI; i++)
        if (i > 0 && !near(modulus(i))) return false; // of 256 any byte will do
    return true;
}
static_assert(modulus(0) == 256 && all_near(), "residues fit a byte");

// Modulus is what a residue is computed with, of a modulus.
struct Modulus {
    u32 lo, hi; // weights of the digits
    u32 origin; // as bits of an f32
    float reciprocal, whole; // of m; WHOLE less the origin's quotient
    u32 minus; // -m
};
struct Table {
    Modulus of[MOST_MODULI];
};
constexpr Table table() {
    Table t = {};
    for (int i = 0; i < MOST_MODULI; i++) {
        u32 m = modulus(i), q = quotient_of_origin(m);
        u32 origin = 0x4b000000u + m * q - TWO23;
        t.of[i] = {digit_weights(m, 0), digit_weights(m, 4), origin, 1.0f / m, (float)(WHOLE - q), 0 - m};
    }
    return t;
}
__constant__ Table moduli_table = table();

// residue returns a residue of q in the lowest byte.
template <bool WIDE> __device__ __forceinline__ u32 residue(const Digits &q, const Modulus &m) {
    int x = __dp4a((int)q.lo, (int)m.lo, (int)m.origin);
    if (WIDE) x = __dp4a((int)(q.hi & 0xffffu), (int)m.hi, x);
    u32 quotient = __float_as_uint(__fmaf_rn(__uint_as_float((u32)x), m.reciprocal, m.whole));
    return quotient * m.minus + (u32)x;
}

// write_digits stores the digits of a thread's elements for each of two places.
__device__ __forceinline__ void write_digits(char *to, size_t plane, const Digits (&q)[16]) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
        u32 w[4];
#pragma unroll
        for (int j = 0; j < 4; j++)
            w[j] = __byte_perm(__byte_perm(q[4 * j].lo, q[4 * j + 1].lo, i ? 0x0051 : 0x0040),
                               __byte_perm(q[4 * j + 2].lo, q[4 * j + 3].lo, i ? 0x0051 : 0x0040), 0x5410);
        *(uint4 *)(to + i * plane) = make_uint4(w[0], w[1], w[2], w[3]);
    }
}

// write stores the residues of a thread's elements for each modulus. The loop is not unrolled, so that the code is
// small.
template <bool WIDE>
__device__ __forceinline__ void write(char *to, size_t plane, const Digits (&q)[16], u32 moduli) {
#pragma unroll 1
    for (u32 i = 0; i < moduli; i++, to += plane) {
        Modulus m = moduli_table.of[i];
        u32 w[4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            u32 a = residue<WIDE>(q[4 * j], m), b = residue<WIDE>(q[4 * j + 1], m), c = residue<WIDE>(q[4 * j + 2], m),
                d = residue<WIDE>(q[4 * j + 3], m);
            w[j] = __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
        }
        *(uint4 *)to = make_uint4(w[0], w[1], w[2], w[3]);
    }
}

// by_columns is the kernel for p = 47 (WIDE) or less.
template <bool WIDE>
__device__ __forceinline__ void by_columns(const u32 *b, u32 *q, const Params &p) {
    Mine me(p);
    u32 kept[KEEP][16], blocks = (p.k + DEPTH - 1) / DEPTH,
        turns = (blocks + CLUSTER * BLOCKS - 1) / (CLUSTER * BLOCKS);
    Seen seen;
    me.fetch(kept, b, 0, p);
#pragma unroll
    for (int i = 0; i < KEEP * 16; i++) seen.see(kept[i / 16][i % 16]);
    for (u32 t = KEEP; t < turns; t++) {
        u32 x[1][16];
        me.fetch(x, b, t, p);
#pragma unroll
        for (int i = 0; i < 16; i++) seen.see(x[0][i]);
    }
    launches_before();
    u32 r = join_cluster(seen.range(), me.column);
    if (blockIdx.x == 0 && threadIdx.x < COLS && me.j < p.ldq) q[me.j] = r;
    int l = unit(r, p.bits);
    float scale, more;
    factors(r, p.bits, scale, more);
    size_t plane = (size_t)blocks * p.ldq * DEPTH; // bytes of a modulus
    auto convert = [&](const u32 (&x)[16], u32 t) {
        Digits d[16];
#pragma unroll
        for (int i = 0; i < 16; i++) d[i] = quantised<WIDE>(x[i], l, scale, more);
        u32 block = me.block + t * CLUSTER * BLOCKS;
        if (block >= blocks || me.j >= p.ldq) return;
        char *to = (char *)(q + (size_t)(p.chunks + 1) * p.ldq) + ((size_t)block * p.ldq + me.j) * DEPTH +
                   16 * (me.chunk ^ (me.j & 7));
        if (p.across == 0) write_digits(to, plane, d);
        else write<WIDE>(to, plane, d, p.across);
    };
#pragma unroll 1 // one copy of the code
    for (u32 t = 0; t < turns; t++) {
        u32 x[1][16] = {};
        if (t >= KEEP) me.fetch(x, b, t, p);
#pragma unroll
        for (int s = 0; s < KEEP; s++)
#pragma unroll
            for (int i = 0; i < 16; i++) x[0][i] = t == s ? kept[s][i] : x[0][i];
        convert(x[0], t);
    }
    cluster_sync(); // no CTA exits while others read its ranges
}

extern "C" __global__ void __launch_bounds__(LOCAL, 3) __cluster_dims__(CLUSTER, 1, 1)
    quantise(const u32 *__restrict__ b, u32 *q, const Params p) {
    if (p.bits == 47) by_columns<true>(b, q, p);
    else by_columns<false>(b, q, p);
    launches_after();
}
