// Computes: B (cols × n) in RFX-p's fixed point as residues, or as two digits, q (quantise.go), after phase 0 of kernel.cu
// found the ranges of parts of columns.
// Tile: a CTA has 128 rows of B and 16 columns. A thread has 16 rows of a column.
// Data movement: elements go through registers. Residues are transposed in shared memory, so that the 16-byte chunks of
// neighbouring columns are stored together.
// Bound by: memory bandwidth; with many moduli by integer arithmetic, 5 instructions an element and modulus.

#include "params.h"
#include "../include/half.cuh"
#include "../include/fixed.cuh"
#include "../include/launches.cuh"
#include "../include/residues.cuh"

typedef long long i64;

#define DEPTH 128 // rows of B
#define COLS 16
#define LOCAL (DEPTH / 16 * COLS)

// load returns the f32 bits of an element.
__device__ __forceinline__ u32 load(const void *b, size_t i, u32 elem) {
    if (elem == F32) return __ldg((const u32 *)b + i);
    u32 h = __ldg((const unsigned short *)b + i);
    return elem == BF16 ? h << 16 : __float_as_uint(widen_lo<F16>(h));
}

// join_parts joins the ranges of a column's parts: the LOCAL / COLS threads of a column share the work.
__device__ __forceinline__ u32 join_parts(u32 (*found)[COLS], const u32 *parts, u32 chunks, u32 ldq, u32 column,
                                          u32 sub, bool inside) {
    u32 r = 0;
#pragma unroll 4
    for (u32 c = sub; inside && c < chunks; c += LOCAL / COLS) r = join(r, parts[(size_t)c * ldq]);
    found[sub][column] = r;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < LOCAL / COLS; i++) r = join(r, found[i][column]);
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
__device__ __forceinline__ void store(uint4 (&image)[LOCAL], const u32 (&w)[4], uint4 *to, u32 column, u32 chunk,
                                      u32 chunks) {
    image[8 * column + (chunk ^ (column & 7))] = make_uint4(w[0], w[1], w[2], w[3]);
    __syncthreads();
    if (threadIdx.x < chunks) to[threadIdx.x] = image[threadIdx.x];
}

// write_digits stores the digits of a CTA's elements for each of two places.
__device__ __forceinline__ void write_digits(uint4 (*image)[LOCAL], char *to, size_t plane, const Digits (&q)[16],
                                             u32 column, u32 chunk, u32 chunks) {
#pragma unroll
    for (int i = 0; i < 2; i++) {
        u32 w[4];
#pragma unroll
        for (int j = 0; j < 4; j++)
            w[j] = __byte_perm(__byte_perm(q[4 * j].lo, q[4 * j + 1].lo, i ? 0x0051 : 0x0040),
                               __byte_perm(q[4 * j + 2].lo, q[4 * j + 3].lo, i ? 0x0051 : 0x0040), 0x5410);
        store(image[i], w, (uint4 *)(to + i * plane), column, chunk, chunks);
    }
}

// write stores the residues of a CTA's elements for each modulus.
template <bool WIDE>
__device__ __forceinline__ void write(uint4 (*image)[LOCAL], char *to, size_t plane, const Digits (&q)[16], u32 moduli,
                                      u32 column, u32 chunk, u32 chunks) {
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
        store(image[i % 2], w, (uint4 *)(to + i * plane), column, chunk, chunks); // the other image may still be read
    }
}

// by_columns is the kernel for p = 47 (WIDE) or less.
template <bool WIDE> __device__ __forceinline__ void by_columns(const u32 *b, u32 *q, const Params &p) {
    __shared__ u32 found[LOCAL / COLS][COLS];
    __shared__ uint4 image[2][LOCAL];
    u32 column = threadIdx.x % COLS, chunk = threadIdx.x / COLS, first = blockIdx.y * COLS, j = first + column;
    u32 k = blockIdx.x * DEPTH + 16 * chunk, x[16];
#pragma unroll
    for (int i = 0; i < 16; i++) x[i] = k + i < p.k && j < p.n ? load(b, (size_t)(k + i) * p.ldb + j, p.elem) : 0;
    launches_before();
    u32 r = join_parts(found, q + p.ldq + j, p.chunks, p.ldq, column, chunk, j < p.ldq);
    if (blockIdx.x == 0 && chunk == 0 && j < p.ldq) q[j] = r;
    if (blockIdx.x * DEPTH >= p.k) return; // a B without rows
    int l = unit(r, p.bits), half = -l / 2;
    float scale = __uint_as_float((u32)(127 + half) << 23), more = __uint_as_float((u32)(127 - l - half) << 23);
    Digits d[16];
#pragma unroll
    for (int i = 0; i < 16; i++) d[i] = digits<WIDE>(x[i], l, scale, more);
    size_t plane = (size_t)gridDim.x * p.ldq * DEPTH; // bytes of a modulus
    char *to = (char *)(q + (size_t)(p.chunks + 1) * p.ldq) + ((size_t)blockIdx.x * p.ldq + first) * DEPTH;
    u32 chunks = min(COLS, p.ldq - first) * (DEPTH / 16);
    if (p.across == 0) write_digits(image, to, plane, d, column, chunk, chunks);
    else write<WIDE>(image, to, plane, d, p.across, column, chunk, chunks);
}

extern "C" __global__ void __launch_bounds__(LOCAL) quantise(const u32 *__restrict__ b, u32 *q, const Params p) {
    if (p.bits == 47) by_columns<true>(b, q, p);
    else by_columns<false>(b, q, p);
    launches_after();
}
