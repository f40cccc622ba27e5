// Computes: C (rows × n) = alpha·A·B + beta·C reproducibly (RFX-p, p = BITS), from the residues of its sums that
// residues.cu left in `part`, by the Chinese remainder theorem (package rfx of formats, residues.go); with DIGITS = 1
// from sums of products of digits.
//
// A residue's weight is a fraction of 2^64, so that residues add up to the sum as a fraction of the product of the
// moduli, the integer part being lost in overflow. That is known well enough to tell the nearest f32, unless the sum is
// very near the middle of two: then it is put together exactly, in limbs of 20 bits.
// Tile: a thread has 16 outputs, two rows of 8 columns; a CTA 256 threads.
// Data movement: a thread reads 16 residues of each modulus at once. Weights are in shared memory.
// With SPARSE = 1 the products of the remainder, the entries that the 2:4 matrix has no room for (residues24.go), are
// added. A warp sums them in f64, a lane for each of its 32 columns, from B as it is. Below 2^53 these sums are exact;
// what they may be off widens the interval, and an output that is put together exactly has them in integers.
// Bound by: memory bandwidth, and integer arithmetic: three instructions for each residue, 40 for each output.
// Constants: BITS (p), LIMBS, DIGITS, SPARSE.

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

    // fractions returns 16 bits of the fractions of two moduli.
    __device__ __forceinline__ uint4 fractions(u32 pair) const { return ((const uint4 *)words)[pair]; }
    __device__ __forceinline__ u32 pairs() const { return (moduli + 1) / 2; }
    __device__ __forceinline__ double product() const { return ((const double *)words)[2 * pairs()]; } // times 2^-64
    __device__ __forceinline__ double off() const { return ((const double *)words)[2 * pairs() + 1]; }
    __device__ __forceinline__ const u32 *limbs(u32 m) const { return words + 4 * pairs() + 4 + m * LIMBS; }
    __device__ __forceinline__ static u32 size(u32 moduli) {
        return (moduli + 1) / 2 * 4 + 4 + (moduli + 1) * LIMBS + 1;
    }
    __device__ __forceinline__ float reciprocal() const { return __uint_as_float(*limbs(moduli + 1)); }
};

// power returns 2^e.
__device__ __forceinline__ double power(int e) { return __hiloint2double((1023 + e) << 20, 0); }

// nearest returns the f32 next to x; zero is +0.
__device__ __forceinline__ u32 nearest(double x) {
    u32 y = __float_as_uint(__double2float_rn(x));
    return (y & 0x7fffffffu) != 0 ? y : 0;
}

// Outputs of a thread: number 4j + 2e + f is that of row 8e and column 8j + f of its own.
typedef u32 Outputs[16];

// Units are those of the outputs' rows and columns, as exponents.
struct Units {
    int row[2], col[8];

    __device__ __forceinline__ int of(int e) const { return row[e / 2 % 2] + col[e / 4 * 2 + e % 2]; }
};

// Remainder is the entries that the 2:4 matrix has no room for, by rows: each is a column, the row mod 16, and the
// integer as an f64.
struct Remainder {
    const u32 *ptr; // the first entry of each row
    const uint4 *entries;

    __device__ __forceinline__ Remainder(const u32 *rows, const Params &p)
        : ptr(rows + p.first), entries((const uint4 *)(rows + ((p.first + p.items + 4) & ~3u))) {}
    __device__ __forceinline__ static double integer(const uint4 &e) { return __hiloint2double(e.w, e.z); }

    // exact returns the sum of an output's products.
    __device__ __noinline__ i128 exact(u32 row, u32 j, int l, const void *b, const Params &p) const {
        i128 sum = 0;
        for (u32 k = ptr[row]; k < ptr[row + 1]; k++)
            sum += (i128)(i64)integer(entries[k]) * quantise(element(b, (size_t)entries[k].x * p.ldb + j, p), l);
        return sum;
    }
};

// More is a lane's share of the products of a warp's remainder: sums of its outputs' rows and columns in shared memory,
// and how far these may be off.
struct More {
#if SPARSE
    const double (*sums)[33];
    double far;
    u32 lane;
    Remainder remainder;
    const void *b;
    u32 row, col;
    const Params &p;

    __device__ __forceinline__ double of(int e) const {
        return sums[lane / 4 + 8 * (e / 2 % 2)][8 * (e / 4) + lane % 4 * 2 + e % 2];
    }
    __device__ __forceinline__ i128 exact(int e, int l) const {
        u32 at = row + 8 * (e / 2 % 2), to = col + 8 * (e / 4) + e % 2;
        return at < p.items && to < p.n ? remainder.exact(at, to, l, b, p) : 0;
    }
#else
    static constexpr double far = 0;
    __device__ __forceinline__ double of(int e) const { return 0; }
    __device__ __forceinline__ i128 exact(int e, int l) const { return 0; }
#endif
};

#if SPARSE

// gather adds up the products of the remainder of 16 rows from `row` on and 32 columns from `col` on. It returns how
// far a sum may be off: by 2^-53 of the largest sum with each addition.
__device__ __forceinline__ double gather(double (&sums)[16][33], uint4 (&batch)[32], const Remainder &remainder,
                                         u32 row, u32 col, const void *b, const u32 *q, const Params &p) {
    constexpr int AHEAD = 8;
    constexpr double ROUND = 0x1.8p52; // added and subtracted, it leaves an integer
    u32 lane = threadIdx.x % 32, j = min(col + lane, p.n - 1), current = 0;
    u32 first = remainder.ptr[row], last = remainder.ptr[min(row + 16, p.items)];
    double scale = power(-unit(q[j], BITS)), sum = 0; // of the current row
#pragma unroll
    for (int i = 0; i < 16; i++) sums[i][lane] = 0;
    for (u32 k = first; k < last; k += 32) {
        __syncwarp();
        batch[lane] = remainder.entries[min(k + lane, last - 1)];
        __syncwarp();
        for (u32 i = 0; i < min(last - k, 32u); i += AHEAD) {
            uint4 e[AHEAD];
            u32 x[AHEAD];
#pragma unroll
            for (int a = 0; a < AHEAD; a++) {
                e[a] = batch[i + a];
                x[a] = element(b, (size_t)e[a].x * p.ldb + j, p);
            }
#pragma unroll
            for (int a = 0; a < AHEAD; a++) {
                if (k + i + a >= last) break;
                if (e[a].y != current) sums[current][lane] = sum, sum = 0, current = e[a].y;
                double y = __fma_rn((double)__uint_as_float(finite(x[a]) ? x[a] : 0), scale, ROUND) - ROUND;
                sum = __fma_rn(Remainder::integer(e[a]), y, sum);
            }
        }
    }
    sums[current][lane] = sum;
    __syncwarp();
    double count = last - first;
    return BITS < 31 && count < 128 ? 0 : count * count * power(2 * BITS - 53);
}

#endif

#if DIGITS

// finish computes outputs from the sums of the three places: they fit f64.
__device__ __forceinline__ void finish(Outputs &y, const uint4 *part, u32 plane, u32 i, const Table &table,
                                       const Units &l, const More &more) {
    part += (size_t)(i / 128) * 512 + i % 128;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        uint4 v[3];
#pragma unroll
        for (int d = 0; d < 3; d++) v[d] = part[(size_t)d * 4 * plane + 128 * j];
        auto total = [](u32 a, u32 b, u32 c) {
            return (double)((i64)(int)a + (i64)(int)b * 256 + (i64)(int)c * 65536);
        };
        y[4 * j] = nearest((total(v[0].x, v[1].x, v[2].x) + more.of(4 * j)) * power(l.of(4 * j)));
        y[4 * j + 1] = nearest((total(v[0].y, v[1].y, v[2].y) + more.of(4 * j + 1)) * power(l.of(4 * j + 1)));
        y[4 * j + 2] = nearest((total(v[0].z, v[1].z, v[2].z) + more.of(4 * j + 2)) * power(l.of(4 * j + 2)));
        y[4 * j + 3] = nearest((total(v[0].w, v[1].w, v[2].w) + more.of(4 * j + 3)) * power(l.of(4 * j + 3)));
    }
}

#else

// exact returns an output from residues `stride` bytes apart, and the sum of the remainder's products. The sum's limbs
// are reduced by a multiple of the product of the moduli, which a quotient in f32 tells, as sums are far from half of
// that product.
__device__ __noinline__ u32 exact(const unsigned char *residues, size_t stride, const Table &table, int l, i128 more) {
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
    return rounded(t + more, l);
}

// by_outputs makes of words of four outputs' residues, one for each modulus, a word of each output's.
__device__ __forceinline__ void by_outputs(u32 (&r)[4], u32 a, u32 b, u32 c, u32 d) {
    u32 lo = __byte_perm(a, b, 0x5140), hi = __byte_perm(c, d, 0x5140);
    r[0] = __byte_perm(lo, hi, 0x5410), r[1] = __byte_perm(lo, hi, 0x7632);
    lo = __byte_perm(a, b, 0x7362), hi = __byte_perm(c, d, 0x7362);
    r[2] = __byte_perm(lo, hi, 0x5410), r[3] = __byte_perm(lo, hi, 0x7632);
}

// add adds to the sums of four outputs, in four parts of 16 bits each, two residues times their fractions: those in the
// lower half of a word of r, or in the upper.
template <bool UPPER> __device__ __forceinline__ void add(u32 (&s)[4][4], const u32 (&r)[4], const uint4 &fractions) {
    u32 f[4] = {fractions.x, fractions.y, fractions.z, fractions.w};
#pragma unroll
    for (int e = 0; e < 4; e++)
#pragma unroll
        for (int i = 0; i < 4; i++) s[e][i] = UPPER ? __dp2a_hi(f[i], r[e], s[e][i]) : __dp2a_lo(f[i], r[e], s[e][i]);
}

// finish computes outputs from the residues of their sums.
__device__ __forceinline__ void finish(Outputs &y, const uint4 *part, u32 plane, u32 i, const Table &table,
                                       const Units &l, const More &more) {
    u32 s[4][4][4] = {};
    for (u32 m = 0; m < table.moduli; m += 4) {
        uint4 v[4];
#pragma unroll
        for (int k = 0; k < 4; k++)
            v[k] = m + k < table.moduli ? part[(size_t)(m + k) * plane + i] : make_uint4(0, 0, 0, 0);
        uint4 first = table.fractions(m / 2), second = table.fractions(min(m / 2 + 1, table.pairs() - 1));
        u32 r[4];
#define FOUR(j, w) by_outputs(r, v[0].w, v[1].w, v[2].w, v[3].w), add<false>(s[j], r, first), add<true>(s[j], r, second)
        FOUR(0, x), FOUR(1, y), FOUR(2, z), FOUR(3, w);
#undef FOUR
    }
    // The middle of what a sum may be, and how far it may be off: by that of the fractions, and by three roundings of
    // 2^-53, of the product, the sum and here, and two below.
    double rows[2], cols[8], off = table.off();
#pragma unroll
    for (int e = 0; e < 2; e++) rows[e] = table.product() * power(l.row[e]);
#pragma unroll
    for (int e = 0; e < 8; e++) cols[e] = power(l.col[e]);
    u32 unsure = 0;
#pragma unroll
    for (int e = 0; e < 16; e++) {
        const u32(&t)[4] = s[e / 4][e % 4];
        u64 sum = t[0] + ((u64)t[1] << 16) + ((u64)t[2] << 32) + ((u64)t[3] << 48);
        double scale = rows[e / 2 % 2] * cols[e / 4 * 2 + e % 2], x = (double)(i64)sum * scale,
               far = off * scale + fabs(x) * 0x1p-50;
        if (SPARSE) {
            double whole = power(l.of(e));
            x += more.of(e) * whole, far += more.far * whole + fabs(x) * 0x1p-50;
        }
        y[e] = nearest(x - far);
        if (y[e] != nearest(x + far)) unsure |= 1 << e;
    }
    if (unsure == 0) return;
#pragma unroll
    for (int e = 0; e < 16; e++)
        if (unsure >> e & 1)
            y[e] = exact((const unsigned char *)(part + i) + e, (size_t)plane * 16, table, l.of(e),
                         more.exact(e, l.col[e / 4 * 2 + e % 2]));
}

#endif

// put_apart is put, not inlined: 32 copies of it would not fit the instruction cache.
__device__ __noinline__ void put_apart(u32 row, u32 j, u32 y, u32 ra, u32 rb, const u32 *rows, const void *values,
                                       const void *b, const u32 *bias, u32 *c, const Params &p) {
    put(row, j, y, ra, rb, rows, values, b, bias, c, p);
}

extern "C" __global__ void __launch_bounds__(LOCAL)
    rfx(const u32 *__restrict__ rows, const char *__restrict__ ints, const void *__restrict__ values,
        const void *__restrict__ b, const u32 *__restrict__ q, const u32 *__restrict__ bias, u32 *c,
        const uint4 *__restrict__ part, const Params p) {
    __shared__ __align__(16) u32 words[2 * MOST_MODULI + 4 + (MOST_MODULI + 1) * LIMBS + 1];
    Table table = {words, p.segments};
    if (!DIGITS)
        for (u32 i = threadIdx.x; i < Table::size(p.segments); i += LOCAL) words[i] = rows[p.heavy + i];
    // A warpgroup of residues.cu left cols / 32 × 128 words of four.
    u32 cols = across_of(p) * 8, tiles = p.longest * ((p.ldq + cols - 1) / cols), of = cols / 32 * 128,
        plane = tiles * 4 * of, i = (blockIdx.x + blockIdx.z * p.width) * LOCAL + threadIdx.x;
    u32 thread = i % 128, chunk = i % of / 128, group = i / of % 2, rank = i / of / 2 % 2, tile = i / of / 4;
    u32 first = (tile % p.longest * 2 + rank) * 128 + group * 64 + thread / 32 * 16, row = first + thread % 32 / 4,
        col = tile / p.longest * cols + chunk * 32 + thread % 4 * 2;
#if SPARSE
    __shared__ double sums[LOCAL / 32][16][33];
    __shared__ uint4 batches[LOCAL / 32][32];
    u32 warp = threadIdx.x / 32, columns = col - thread % 4 * 2;
    Remainder remainder(rows, p);
    double far = 0;
    if (i < plane && first < p.items && columns < p.n) // needs nothing of the launch before, which is not awaited yet
        far = gather(sums[warp], batches[warp], remainder, first, columns, b, q, p);
    More more = {sums[warp], far, threadIdx.x % 32, remainder, b, row, col, p};
#else
    More more;
#endif
    launches_before();
    __syncthreads();
    if (i >= plane || row >= p.items || col >= p.n) return;
    u32 ra[2], wild = 0;
    uint2 rb[4];
    Units l;
    ra[0] = rows[2 * (size_t)row + 1], ra[1] = row + 8 < p.items ? rows[2 * (size_t)row + 17] : 0;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        rb[j] = col + 8 * j < p.ldq ? *(const uint2 *)(q + col + 8 * j) : make_uint2(0, 0);
        wild |= rb[j].x | rb[j].y | ra[0] | ra[1];
        l.col[2 * j] = unit(rb[j].x, BITS), l.col[2 * j + 1] = unit(rb[j].y, BITS);
    }
    l.row[0] = unit(ra[0], BITS), l.row[1] = unit(ra[1], BITS);
    Outputs y;
    finish(y, part, plane, i, table, l, more);
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
            put_apart(at, to, y[4 * j + 2 * e], ra[e], rb[j].x, rows, values, b, bias, c, p);
            if (to + 1 < p.n) put_apart(at, to + 1, y[4 * j + 2 * e + 1], ra[e], rb[j].y, rows, values, b, bias, c, p);
        }
}
