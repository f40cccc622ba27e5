// Computes: C (rows × n) = alpha·A·B + beta·C reproducibly (RFX-p, p = BITS), from the residues of its sums that
// residues.cu left in `part`, by the Chinese remainder theorem (package rfx of formats, residues.go); with DIGITS = 1
// from sums of products of digits.
//
// A residue's weight is a fraction of 2^64, so that residues add up to the sum as a fraction of the product of the
// moduli, the integer part being lost in overflow. That is known well enough to tell the nearest f32, unless the sum is
// very near the middle of two: then it is put together exactly, in limbs of 20 bits.
// Tile: a thread has 16 outputs, two rows of 8 columns; a CTA 256 threads.
// Data movement: a thread reads 16 residues of each modulus at once. Weights are in shared memory.
// Bound by: memory bandwidth, and integer arithmetic: three instructions for each residue.
// Constants: BITS (p), LIMBS, DIGITS.

#include "store.cuh"
#include "../include/launches.cuh"
#include "../include/residues.cuh"

#define LOCAL 256
#define LIMB 20 // bits

typedef long long i64;
typedef unsigned long long u64;

// Table is rfx.Residues.Table in shared memory.
struct Table {
    const u32 *words;
    u32 moduli;

    __device__ __forceinline__ u64 fraction(u32 m) const { return ((const u64 *)words)[m]; }
    __device__ __forceinline__ double product() const { return ((const double *)words)[moduli]; } // times 2^-64
    __device__ __forceinline__ double off() const { return ((const double *)words)[moduli + 1]; }
    __device__ __forceinline__ const u32 *limbs(u32 m) const { return words + 2 * moduli + 4 + m * LIMBS; }
    __device__ __forceinline__ float reciprocal() const { return __uint_as_float(*limbs(moduli + 1)); }
};

// power returns 2^e.
__device__ __forceinline__ double power(int e) { return __hiloint2double((1023 + e) << 20, 0); }

// nearest returns the f32 next to x; zero is +0.
__device__ __forceinline__ u32 nearest(double x) {
    u32 y = __float_as_uint(__double2float_rn(x));
    return (y & 0x7fffffffu) != 0 ? y : 0;
}

typedef u32 Outputs[16];

#if DIGITS

// finish computes outputs from the sums of the three places, for two rows of 8 columns: they fit f64. l has the sums of
// units of each row and column.
__device__ __forceinline__ void finish(Outputs &y, const uint4 *part, u32 plane, u32 i, const Table &table,
                                       const int (&l)[16]) {
    part += (size_t)(i / 128) * 512 + i % 128;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        uint4 v[3];
#pragma unroll
        for (int d = 0; d < 3; d++) v[d] = part[(size_t)d * 4 * plane + 128 * j];
        auto total = [](u32 a, u32 b, u32 c) { return (double)((i64)(int)a + (i64)(int)b * 256 + (i64)(int)c * 65536); };
        y[4 * j] = nearest(total(v[0].x, v[1].x, v[2].x) * power(l[4 * j]));
        y[4 * j + 1] = nearest(total(v[0].y, v[1].y, v[2].y) * power(l[4 * j + 1]));
        y[4 * j + 2] = nearest(total(v[0].z, v[1].z, v[2].z) * power(l[4 * j + 2]));
        y[4 * j + 3] = nearest(total(v[0].w, v[1].w, v[2].w) * power(l[4 * j + 3]));
    }
}

#else

// exact returns an output from residues `stride` bytes apart. The sum's limbs are reduced by a multiple of the product
// of the moduli, which a quotient in f32 tells, as sums are far from half of that product.
__device__ __noinline__ u32 exact(const unsigned char *residues, size_t stride, const Table &table, int l) {
    u32 s[LIMBS] = {};
    for (u32 m = 0; m < table.moduli; m++) {
        u32 r = residues[m * stride];
#pragma unroll
        for (int i = 0; i < LIMBS; i++) s[i] += r * table.limbs(m)[i];
    }
    float top = ((float)s[LIMBS - 1] * (1 << LIMB) + (float)s[LIMBS - 2]) * (1 << LIMB) + (float)s[LIMBS - 3];
    u32 times = __float2uint_rn(top * table.reciprocal());
    const u32 *product = table.limbs(table.moduli);
    i128 t = 0;
#pragma unroll
    for (int i = LIMBS - 1; i >= 0; i--) t = (t << LIMB) + ((i64)s[i] - (i64)(times * product[i]));
    return rounded(t, l);
}

// finish computes outputs from the residues of 16 sums. l has the sums of units of each row and column.
__device__ __forceinline__ void finish(Outputs &y, const uint4 *part, u32 plane, u32 i, const Table &table,
                                       const int (&l)[16]) {
    u64 s[16] = {};
#pragma unroll 4
    for (u32 m = 0; m < table.moduli; m++) {
        uint4 v = part[(size_t)m * plane + i];
        u32 word[4] = {v.x, v.y, v.z, v.w};
        u64 fraction = table.fraction(m);
#pragma unroll
        for (int e = 0; e < 16; e++) s[e] += (word[e / 4] >> 8 * (e % 4) & 255u) * fraction;
    }
    double product = table.product(), off = table.off();
#pragma unroll
    for (int e = 0; e < 16; e++) {
        // Three roundings of 2^-53 at most, of the product, the sum and here, and two below.
        double scale = product * power(l[e]), x = (double)(i64)s[e] * scale, far = off * scale + fabs(x) * 0x1p-50;
        y[e] = nearest(x - far);
        if (y[e] != nearest(x + far))
            y[e] = exact((const unsigned char *)(part + i) + e, (size_t)plane * 16, table, l[e]);
    }
}

#endif

extern "C" __global__ void __launch_bounds__(LOCAL)
    rfx(const u32 *__restrict__ rows, const char *__restrict__ ints, const void *__restrict__ values,
        const void *__restrict__ b, const u32 *__restrict__ q, const u32 *__restrict__ bias, u32 *c,
        const uint4 *__restrict__ part, const Params p) {
    __shared__ __align__(8) u32 words[2 * MOST_MODULI + 4 + (MOST_MODULI + 1) * LIMBS + 1];
    Table table = {words, p.pieces};
    if (!DIGITS)
        for (u32 i = threadIdx.x; i < 2 * p.pieces + 4 + (p.pieces + 1) * LIMBS + 1; i += LOCAL)
            words[i] = rows[p.heavy + i];
    launches_before();
    __syncthreads();
    // A warpgroup of residues.cu left cols / 32 × 128 words of four.
    u32 cols = across_of(p) * 8, tiles = p.longest * ((p.ldq + cols - 1) / cols), of = cols / 32 * 128,
        plane = tiles * 4 * of, i = (blockIdx.x + blockIdx.z * p.width) * LOCAL + threadIdx.x;
    if (i >= plane) return;
    u32 thread = i % 128, chunk = i % of / 128, group = i / of % 2, rank = i / of / 2 % 2, tile = i / of / 4;
    u32 row = (tile % p.longest * 2 + rank) * 128 + group * 64 + thread / 32 * 16 + thread % 32 / 4,
        col = tile / p.longest * cols + chunk * 32 + thread % 4 * 2;
    if (row >= p.items || col >= p.n) return;
    // Output 4j + 2e + f is that of row + 8e and column col + 8j + f.
    u32 ra[2], wild = 0;
    uint2 rb[4];
    int l[16];
    ra[0] = rows[2 * (size_t)row + 1], ra[1] = row + 8 < p.items ? rows[2 * (size_t)row + 17] : 0;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        rb[j] = col + 8 * j < p.ldq ? *(const uint2 *)(q + col + 8 * j) : make_uint2(0, 0);
        wild |= rb[j].x | rb[j].y | ra[0] | ra[1];
#pragma unroll
        for (int e = 0; e < 2; e++) {
            l[4 * j + 2 * e] = unit(ra[e], BITS) + unit(rb[j].x, BITS);
            l[4 * j + 2 * e + 1] = unit(ra[e], BITS) + unit(rb[j].y, BITS);
        }
    }
    Outputs y;
    finish(y, part, plane, i, table, l);
    bool plain = p.store == 0 && (p.ldc & 1) == 0 && (wild & WILD) == 0;
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            u32 at = row + 8 * e, to = col + 8 * j;
            if (at >= p.items || to >= p.n) continue;
            if (plain && to + 1 < p.n) {
                *(uint2 *)(c + (size_t)at * p.ldc + to) = make_uint2(y[4 * j + 2 * e], y[4 * j + 2 * e + 1]);
                continue;
            }
            put(at, to, y[4 * j + 2 * e], ra[e], rb[j].x, rows, values, b, bias, c, p);
            if (to + 1 < p.n) put(at, to + 1, y[4 * j + 2 * e + 1], ra[e], rb[j].y, rows, values, b, bias, c, p);
        }
}
