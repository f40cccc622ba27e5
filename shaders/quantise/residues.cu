// Computes: B (cols × n) in RFX-p's fixed point as residues, q (quantise.go), after phase 0 of kernel.cu found the ranges
// of parts of columns.
// Tile: a CTA has 128 rows of B and 16 columns. A thread has 16 rows of a column.
// Data movement: elements go through registers. Residues are transposed in shared memory, so that the 16-byte chunks of
// neighbouring columns are stored together.
// Bound by: memory bandwidth; with many moduli by integer arithmetic, 6 instructions an element and modulus.

#include "params.h"
#include "../include/half.cuh"
#include "../include/fixed.cuh"
#include "../include/residues.cuh"

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

__device__ __forceinline__ Digits digits(long long q) {
    constexpr long long HALVES = 0x808080808080ll;
    long long d = (q + HALVES) ^ HALVES;
    return {(u32)d, (u32)(d >> 32)};
}

// residue returns q modulo m, balanced, in the lowest byte.
template <bool WIDE> __device__ __forceinline__ u32 residue(const Digits &q, u32 m, u32 lo, u32 hi) {
    int x = __dp4a((int)q.lo, (int)lo, (int)(multiple(m, 1 << 17) + m / 2)); // at most 6·2^14 are added or subtracted
    if (WIDE) x = __dp4a((int)(q.hi & 0xffffu), (int)hi, x);
    return modulo((u32)x, m, reciprocal(m)) - m / 2;
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
        image[i % 2][8 * column + (chunk ^ (column & 7))] = make_uint4(w[0], w[1], w[2], w[3]);
        __syncthreads(); // the other image is read before it is written again
        if (threadIdx.x < chunks) ((uint4 *)(to + i * plane))[threadIdx.x] = image[i % 2][threadIdx.x];
    }
}

extern "C" __global__ void __launch_bounds__(LOCAL) quantise(const u32 *__restrict__ b, u32 *q, const Params p) {
    __shared__ u32 found[LOCAL / COLS][COLS];
    __shared__ uint4 image[2][LOCAL];
    u32 column = threadIdx.x % COLS, chunk = threadIdx.x / COLS, first = blockIdx.y * COLS, j = first + column;
    u32 k = blockIdx.x * DEPTH + 16 * chunk;
    u32 r = join_parts(found, q + p.ldq + j, p.chunks, p.ldq, column, chunk, j < p.ldq);
    if (blockIdx.x == 0 && chunk == 0 && j < p.ldq) q[j] = r;
    if (blockIdx.x * DEPTH >= p.k) return; // a B without rows
    int l = unit(r, p.bits);
    Digits d[16];
#pragma unroll
    for (int i = 0; i < 16; i++) {
        bool is = k + i < p.k && j < p.n;
        d[i] = digits(is ? quantise(load(b, (size_t)(k + i) * p.ldb + j, p.elem), l) : 0);
    }
    size_t plane = (size_t)gridDim.x * p.ldq * DEPTH; // bytes of a modulus
    char *to = (char *)(q + (size_t)(p.chunks + 1) * p.ldq) + ((size_t)blockIdx.x * p.ldq + first) * DEPTH;
    u32 chunks = min(COLS, p.ldq - first) * (DEPTH / 16);
    if (p.bits == 47) write<true>(image, to, plane, d, p.across, column, chunk, chunks);
    else write<false>(image, to, plane, d, p.across, column, chunk, chunks);
}
