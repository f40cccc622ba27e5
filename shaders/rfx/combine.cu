// Computes: C (rows × n) = alpha·A·B + beta·C reproducibly (RFX-p, p = BITS), from the residues of its sums that
// residues.cu left in `part`, by the Chinese remainder theorem (package rfx of formats, residues.go).
// Tile: a thread has 16 outputs, two rows of 8 columns; a CTA 256 threads.
// Data movement: a thread reads 16 residues of each modulus at once. Weights are in shared memory, in limbs of 20 bits.
// Bound by: memory bandwidth, and integer arithmetic: LIMBS multiply-adds for each residue.
// Constants: BITS (p), LIMBS.

#include "store.cuh"
#include "../include/launches.cuh"
#include "../include/residues.cuh"

#define LOCAL 256
#define LIMB 20 // bits

typedef long long i64;
typedef unsigned long long u64;

// total returns the sum whose residues gave these limbs: they are reduced by a multiple of the product of the moduli,
// which a quotient in f32 tells, as sums are far from half of that product.
__device__ __forceinline__ i128 total(const u32 (&s)[LIMBS], const u32 *product, float reciprocal) {
    float top = ((float)s[LIMBS - 1] * (1 << LIMB) + (float)s[LIMBS - 2]) * (1 << LIMB) + (float)s[LIMBS - 3];
    u32 times = __float2uint_rn(top * reciprocal);
    i128 t = 0;
#pragma unroll
    for (int l = (LIMBS - 1) / 2; l >= 0; l--) { // two limbs at a time
        i64 pair = (i64)s[2 * l] - (i64)(times * product[2 * l]);
        if (2 * l + 1 < LIMBS) pair += ((i64)s[2 * l + 1] - (i64)(times * product[2 * l + 1])) << LIMB;
        t = (t << 2 * LIMB) + pair;
    }
    return t;
}

// finish writes two neighbouring columns of a row of C.
__device__ __forceinline__ void finish(u32 row, u32 col, i128 first, i128 second, const u32 *rows, const void *values,
                                       const void *b, const u32 *q, const u32 *bias, u32 *c, const Params &p) {
    if (row >= p.items || col >= p.n) return;
    u32 ra = rows[2 * (size_t)row + 1];
    uint2 rb = *(const uint2 *)(q + col);
    bool plain = (p.store & SCALED) == 0 && (p.ldc & 1) == 0 && col + 1 < p.n;
    if (!plain || ((ra | rb.x | rb.y) & WILD) != 0) {
        store(row, col, first, rows, values, b, q, bias, c, p);
        if (col + 1 < p.n) store(row, col + 1, second, rows, values, b, q, bias, c, p);
        return;
    }
    int l = unit(ra, BITS);
    u32 x = rounded(first, l + unit(rb.x, BITS)), y = rounded(second, l + unit(rb.y, BITS));
    if (p.store != 0) x = epilogue(x, row, col, bias, p), y = epilogue(y, row, col + 1, bias, p);
    *(uint2 *)(c + (size_t)row * p.ldc + col) = make_uint2(x, y);
}

extern "C" __global__ void __launch_bounds__(LOCAL)
    rfx(const u32 *__restrict__ rows, const char *__restrict__ ints, const void *__restrict__ values,
        const void *__restrict__ b, const u32 *__restrict__ q, const u32 *__restrict__ bias, u32 *c,
        const uint4 *__restrict__ part, const Params p) {
    __shared__ u32 table[(MOST_MODULI + 1) * LIMBS + 1];
    u32 moduli = p.pieces, words = (moduli + 1) * LIMBS + 1, cols = across_of(p) * 8;
    for (u32 i = threadIdx.x; i < words; i += LOCAL) table[i] = rows[p.heavy + i];
    launches_before();
    __syncthreads();
    // A warpgroup of residues.cu left cols / 32 × 128 words of four.
    u32 tiles = p.longest * ((p.ldq + cols - 1) / cols), of = cols / 32 * 128, plane = tiles * 4 * of;
    u32 i = blockIdx.x * LOCAL + threadIdx.x;
    if (i >= plane) return;
    u32 thread = i % 128, chunk = i % of / 128, group = i / of % 2, rank = i / of / 2 % 2, tile = i / of / 4;
    u32 row = (tile % p.longest * 2 + rank) * 128 + group * 64 + thread / 32 * 16 + thread % 32 / 4,
        col = tile / p.longest * cols + chunk * 32 + thread % 4 * 2;
    if (row >= p.items || col >= p.n) return;
    u32 s[16][LIMBS] = {};
#pragma unroll 4
    for (u32 m = 0; m < moduli; m++) {
        uint4 v = part[(size_t)m * plane + i];
        u32 word[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
        for (int l = 0; l < LIMBS; l++) {
            u32 weight = table[m * LIMBS + l];
#pragma unroll
            for (int e = 0; e < 16; e++) s[e][l] += (word[e / 4] >> 8 * (e % 4) & 255u) * weight;
        }
    }
    const u32 *product = table + moduli * LIMBS;
    float reciprocal = __uint_as_float(product[LIMBS]);
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
        for (int e = 0; e < 2; e++)
            finish(row + 8 * e, col + 8 * j, total(s[4 * j + 2 * e], product, reciprocal),
                   total(s[4 * j + 2 * e + 1], product, reciprocal), rows, values, b, q, bias, c, p);
}
