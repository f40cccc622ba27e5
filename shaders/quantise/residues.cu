// Computes: B (cols × n) in RFX-p's fixed point as residues, or as two digits, and the ranges of its columns, q
// (quantise.go), in one launch.
// Tile: a cluster has 16 columns of B, each of its CTAs every eighth 256 rows of them, a thread 16 rows of a column.
// Data movement: elements go through registers; the first KEEP of a thread's 16 rows stay there while the cluster joins
// the columns' ranges, others are read again. Residues are transposed in shared memory, so that the 16-byte chunks of
// neighbouring columns are stored together.
// Bound by: integer arithmetic, 5 instructions an element and modulus, and the latency of the steps.

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
    __device__ __forceinline__ u32 row(u32 turn) const { return (block + turn * CLUSTER * BLOCKS) * DEPTH + 16 * chunk; }
    // fetch returns the f32 bits of the rows' elements, zeros for those outside B.
    template <int ELEM>
    __device__ __forceinline__ void fetch(u32 (&x)[16], const void *b, u32 turn, const Params &p) const {
        u32 k = row(turn);
        size_t at = (size_t)k * p.ldb + j;
#pragma unroll
        for (int i = 0; i < 16; i++, at += p.ldb) {
            bool is = inside && k + i < p.k;
            if (ELEM == F32) x[i] = is ? __ldg((const u32 *)b + at) : 0;
            else x[i] = is ? __ldg((const unsigned short *)b + at) : 0;
        }
#pragma unroll
        for (int i = 0; i < 16; i++) {
            if (ELEM == F16) x[i] = __float_as_uint(widen_lo<F16>(x[i]));
            else if (ELEM == BF16) x[i] <<= 16;
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
        for (int i = 0; i < LOCAL / COLS; i++) r = join(r, found[i][column]);
        mine[column] = r;
    }
    cluster_sync();
    if (threadIdx.x < COLS * CLUSTER)
        all[threadIdx.x / COLS][column] =
            __float_as_uint(cluster_load(shared_address(&mine[column]), threadIdx.x / COLS));
    __syncthreads();
    r = 0;
#pragma unroll
    for (int i = 0; i < CLUSTER; i++) r = join(r, all[i][column]);
    return r;
}

// Digits are the balanced digits of 8 bits of an integer: four in lo, two in hi.
struct Digits {
    u32 lo, hi;
};

// digits quantises an element in units of 2^l. Below p = 47, scale and more are powers of two whose product is 2^-l:
// scaling by one after the other is exact wherever the result is not far below 1/2.
template <bool WIDE> __device__ __forceinline__ Digits digits(u32 x, int l, float scale, float more) {
    if (WIDE) {
        constexpr i64 HALVES = 0x808080808080ll;
        i64 d = (quantise(x, l) + HALVES) ^ HALVES;
        return {(u32)d, (u32)(d >> 32)};
    }
    constexpr u32 HALVES = 0x808080u; // the fourth digit takes what is left
    int q = finite(x) ? __float2int_rn(__uint_as_float(x) * scale * more) : 0;
    return {((u32)q + HALVES) ^ HALVES, 0};
}

// near returns whether residues of any digits fit a byte if the quotient is computed with this reciprocal: the
// remainder is half of m at most, and as far off as the reciprocal makes the largest sum of digits.
#define SHIFT 22
__host__ __device__ constexpr int rounded_reciprocal(u32 m) { return (int)(((1u << SHIFT) + m / 2) / m); }
__host__ __device__ constexpr bool near(u32 m) {
    i64 sum = 0, power = 1;
    for (int d = 0; d < 6; d++) {
        int w = balanced((u32)power, m);
        sum += 128 * (w < 0 ? -w : w), power = power * 256 % m;
    }
    i64 off = (i64)rounded_reciprocal(m) * m - (1 << SHIFT); // of 2^SHIFT
    i64 most = sum * (off < 0 ? -off : off); // of the quotient, in units of 1/(m·2^SHIFT)
    return sum * rounded_reciprocal(m) + (1 << (SHIFT - 1)) < 1ll << 31 &&
           (m == 256 ? most == 0 : ((i64)m << (SHIFT - 1)) + most < 128ll << SHIFT);
}
constexpr bool all_near() {
    for (int i = 0; i < MOST_MODULI; i++)
        if (!near(modulus(i))) return false;
    return true;
}
static_assert(all_near(), "residues fit a byte");

// residue returns a residue of q modulo m in the lowest byte.
template <bool WIDE> __device__ __forceinline__ u32 residue(const Digits &q, u32 m, u32 lo, u32 hi) {
    int x = __dp4a((int)q.lo, (int)lo, 0);
    if (WIDE) x = __dp4a((int)(q.hi & 0xffffu), (int)hi, x);
    int quotient = (x * rounded_reciprocal(m) + (1 << (SHIFT - 1))) >> SHIFT;
    return (u32)(x - quotient * (int)m);
}

// store stores 16 bytes of each of a CTA's threads, transposed through an image of them in shared memory.
__device__ __forceinline__ void store(uint4 (&image)[LOCAL], const u32 (&w)[4], uint4 *to, const Mine &me, u32 count) {
    constexpr u32 SIZE = DEPTH / 16 * COLS; // of a block
    u32 at = threadIdx.x % SIZE, block = threadIdx.x - at;
    image[block + 8 * me.column + (me.chunk ^ (me.column & 7))] = make_uint4(w[0], w[1], w[2], w[3]);
    __syncthreads();
    if (at < count) to[at] = image[threadIdx.x];
}

// write_digits stores the digits of a CTA's elements for each of two places.
__device__ __forceinline__ void write_digits(uint4 (*image)[LOCAL], char *to, size_t plane, const Digits (&q)[16],
                                             const Mine &me, u32 count) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
        u32 w[4];
#pragma unroll
        for (int j = 0; j < 4; j++)
            w[j] = __byte_perm(__byte_perm(q[4 * j].lo, q[4 * j + 1].lo, i ? 0x0051 : 0x0040),
                               __byte_perm(q[4 * j + 2].lo, q[4 * j + 3].lo, i ? 0x0051 : 0x0040), 0x5410);
        store(image[i], w, (uint4 *)(to + i * plane), me, count);
    }
}

// write stores the residues of a CTA's elements for each modulus.
template <bool WIDE>
__device__ __forceinline__ void write(uint4 (*image)[LOCAL], char *to, size_t plane, const Digits (&q)[16], u32 moduli,
                                      const Mine &me, u32 count) {
#pragma unroll
    for (int i = 0; i < MOST_MODULI; i++) {
        if (i >= moduli) break;
        u32 m = modulus(i), lo = digit_weights(m, 0), hi = digit_weights(m, 4), w[4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            u32 a = residue<WIDE>(q[4 * j], m, lo, hi), b = residue<WIDE>(q[4 * j + 1], m, lo, hi),
                c = residue<WIDE>(q[4 * j + 2], m, lo, hi), d = residue<WIDE>(q[4 * j + 3], m, lo, hi);
            w[j] = __byte_perm(__byte_perm(a, b, 0x0040), __byte_perm(c, d, 0x0040), 0x5410);
        }
        store(image[i % 2], w, (uint4 *)(to + i * plane), me, count); // the other image may still be read
    }
}

// by_columns is the kernel for a type of B's elements, and p = 47 (WIDE) or less.
template <int ELEM, bool WIDE>
__device__ __forceinline__ void by_columns(uint4 (*image)[LOCAL], const u32 *b, u32 *q, const Params &p) {
    Mine me(p);
    u32 kept[KEEP][16], blocks = (p.k + DEPTH - 1) / DEPTH, turns = (blocks + CLUSTER * BLOCKS - 1) / (CLUSTER * BLOCKS);
    Seen seen = {0, 0, 0xffffffffu};
#pragma unroll
    for (int t = 0; t < KEEP; t++) {
        me.fetch<ELEM>(kept[t], b, t, p);
#pragma unroll
        for (int i = 0; i < 16; i++) see(seen, kept[t][i]);
    }
    for (u32 t = KEEP; t < turns; t++) {
        u32 x[16];
        me.fetch<ELEM>(x, b, t, p);
#pragma unroll
        for (int i = 0; i < 16; i++) see(seen, x[i]);
    }
    launches_before();
    u32 r = join_cluster(range_of(seen), me.column);
    if (blockIdx.x == 0 && threadIdx.x < COLS && me.j < p.ldq) q[me.j] = r;
    int l = unit(r, p.bits), half = -l / 2;
    float scale = __uint_as_float((u32)(127 + half) << 23), more = __uint_as_float((u32)(127 - l - half) << 23);
    u32 first = blockIdx.y * COLS, chunks = min(COLS, p.ldq - first) * (DEPTH / 16);
    size_t plane = (size_t)blocks * p.ldq * DEPTH; // bytes of a modulus
    auto convert = [&](const u32 (&x)[16], u32 t) {
        Digits d[16];
#pragma unroll
        for (int i = 0; i < 16; i++) d[i] = digits<WIDE>(x[i], l, scale, more);
        u32 block = me.block + t * CLUSTER * BLOCKS;
        char *to = (char *)(q + (size_t)(p.chunks + 1) * p.ldq) + ((size_t)block * p.ldq + first) * DEPTH;
        u32 count = block < blocks ? chunks : 0;
        __syncthreads(); // the images have been read
        if (p.across == 0) write_digits(image, to, plane, d, me, count);
        else write<WIDE>(image, to, plane, d, p.across, me, count);
    };
#pragma unroll 1 // one copy of the code
    for (u32 t = 0; t < turns; t++) {
        u32 x[16] = {};
        if (t >= KEEP) me.fetch<ELEM>(x, b, t, p);
#pragma unroll
        for (int s = 0; s < KEEP; s++)
#pragma unroll
            for (int i = 0; i < 16; i++) x[i] = t == s ? kept[s][i] : x[i];
        convert(x, t);
    }
    cluster_sync(); // no CTA exits while others read its ranges
}

template <int ELEM>
__device__ __forceinline__ void by_columns(uint4 (*image)[LOCAL], const u32 *b, u32 *q, const Params &p) {
    if (p.bits == 47) by_columns<ELEM, true>(image, b, q, p);
    else by_columns<ELEM, false>(image, b, q, p);
}

extern "C" __global__ void __launch_bounds__(LOCAL) __cluster_dims__(CLUSTER, 1, 1)
    quantise(const u32 *__restrict__ b, u32 *q, const Params p) {
    __shared__ uint4 image[2][LOCAL];
    if (p.elem == F32) by_columns<F32>(image, b, q, p);
    else if (p.elem == F16) by_columns<F16>(image, b, q, p);
    else by_columns<BF16>(image, b, q, p);
    launches_after();
}
