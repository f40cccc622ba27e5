// Computes: C (rows × n) = alpha·A·B + beta·C reproducibly in fixed point (RFX-p, p = BITS), A (rows × cols) in CSR, B
// quantised (rfx.go), or with DIRECT in f32 with the ranges of its columns.
// Tile: a row or row segment × a tile of columns, as csr/kernel.cu; a lane has four columns. With TEAMS a whole CTA
// computes a segment, and a warp a row of middle length. Segments leave 128-bit partial sums in the workspace, which
// phase 1 adds; with TEAMS those that are whole rows go to C.
// Data movement: A's integers and rows of B straight from memory to registers. With DIRECT the elements of B become
// integers there.
// Bound by: latency of gathers of rows of B, and issuing: of products, addresses and, with DIRECT, conversions.
// Constants: BITS (p), TEAMS, DIRECT, OVERLAP (overlap.cuh).

#include "store.cuh"
#include "../include/load.cuh"
#include "../include/overlap.cuh"

typedef long long i64;

#define ALL 0xffffffffu
// CTAS is those on a multiprocessor, by the registers that they take. Lanes load entries AHEAD, unless scales take the
// registers.
#ifdef DIRECT
#define CTAS (BITS < 31 ? 9 : 8)
#else
#define CTAS (BITS < 31 ? 8 : BITS == 31 ? 7 : 4)
#define AHEAD
#endif

// Sums of products, in 64 bits: a row's integers, or halves of them (SPLIT bits), by place.
#if BITS == 31
#define SUMS 2
#define SPLIT 16
#elif BITS == 47
#define SUMS 3
#define SPLIT 24
#else
#define SUMS 1
#define SPLIT 0
#endif

#if BITS == 15
typedef uint2 Quad; // four columns of a row of q, or four entries' integers
#elif BITS == 47
struct Quad {
    uint4 lo, hi; // of columns: lower and upper halves; of entries: each one's halves side by side
};
#else
typedef uint4 Quad;
#endif

// load_if returns the vector at b, or anything. (It is predicated by hand, as load of load.cuh is, which returns zeros
// then: these take an instruction a word.)
__device__ __forceinline__ uint4 load_if(const uint4 *b, bool in) {
    uint4 x;
    asm volatile("{.reg .pred in; setp.ne.u32 in, %5, 0;\n\t"
                 "@in ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];}"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "l"(b), "r"((u32)in));
    return x;
}
__device__ __forceinline__ uint2 load_if(const uint2 *b, bool in) {
    uint2 x;
    asm volatile("{.reg .pred in; setp.ne.u32 in, %3, 0;\n\t"
                 "@in ld.global.nc.v2.u32 {%0, %1}, [%2];}"
                 : "=r"(x.x), "=r"(x.y)
                 : "l"(b), "r"((u32)in));
    return x;
}

#ifdef DIRECT
typedef uint4 Columns; // four columns of a row of B
#else
typedef Quad Columns;
#endif

// fetch returns the lane's columns of a row of q or B, or anything. `first` is that of row 0, and rows are `pitch`
// bytes apart. (The address is computed by name: the compiler would add its parts in four instructions.)
__device__ __forceinline__ Columns fetch(const char *first, u32 row, u32 pitch, bool in) {
    const char *at;
    asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(at) : "r"(row), "r"(pitch), "l"(first));
#if BITS == 15 && !defined(DIRECT)
    return load_if((const uint2 *)at, in);
#elif BITS == 47
    Quad v;
    v.lo = load_if((const uint4 *)at, in);
    v.hi = load_if((const uint4 *)(at + pitch / 2), in);
    return v;
#else
    return load_if((const uint4 *)at, in);
#endif
}

__device__ __forceinline__ int integer(const uint4 &v, int i) { return word(v, i); }
__device__ __forceinline__ int integer(const uint2 &v, int i) {
    int pair = i < 2 ? v.x : v.y;
    return i & 1 ? pair >> 16 : pair << 16 >> 16;
}

#ifdef DIRECT
#define ORIGIN 0x4b400000 // 3·2^22 as an f32

// Scales makes the elements of the lane's four columns integers. An element that is not finite becomes any integer: no
// output with such a product is the rounded sum.
struct Scales {
    const u32 *ranges;
    float scale[4];
    bool tiny; // some scales would exceed 2^127

    // exponent returns the binary logarithm of a column's scale; of one of zeros, whose scale may be any, more than
    // 400.
    static __device__ __forceinline__ u32 exponent(u32 range) { return 511 + BITS - (range & 0x3ffu); }
    static __device__ __forceinline__ bool is_tiny(u32 exponent) { return exponent - 128u < 256u; }

    __device__ __forceinline__ Scales(const u32 *ranges, bool inside) : ranges(ranges), tiny(false) {
        uint4 r = inside ? *(const uint4 *)ranges : make_uint4(0, 0, 0, 0);
#pragma unroll
        for (int j = 0; j < 4; j++) {
            u32 e = exponent(word(r, j));
            tiny |= is_tiny(e);
            scale[j] = __uint_as_float(e + (is_tiny(e) ? 63 : 127) << 23 & 0x7fffffffu);
        }
    }

    // enlarge multiplies the elements of tiny columns by 2^64, which is exact. (It reads the ranges once more, as they
    // would take registers in every product.)
    __device__ __forceinline__ void enlarge(uint4 (&b)[4]) const {
        uint4 r;
        asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w)
                     : "l"(ranges));
        float by[4];
#pragma unroll
        for (int j = 0; j < 4; j++) by[j] = is_tiny(exponent(word(r, j))) ? 18446744073709551616.0f : 1.0f;
#pragma unroll
        for (int i = 0; i < 4; i++)
            b[i] = make_uint4(times(b[i].x, by[0]), times(b[i].y, by[1]), times(b[i].z, by[2]), times(b[i].w, by[3]));
    }
    static __device__ __forceinline__ u32 times(u32 x, float y) { return __float_as_uint(__uint_as_float(x) * y); }

    // integer returns the integer of x in column j, at p = 15 plus ORIGIN: adding 3·2^22 rounds to an integer there.
    __device__ __forceinline__ u32 integer(u32 x, int j) const {
        float f = __uint_as_float(x);
        if (BITS == 15) return __float_as_uint(__fmaf_rn(f, scale[j], __uint_as_float(ORIGIN)));
        return (u32)__float2int_rn(f * scale[j]);
    }
    // integers makes four entries' elements integers.
    __device__ __forceinline__ void integers(uint4 (&b)[4]) const {
        if (tiny) enlarge(b);
#pragma unroll
        for (int i = 0; i < 4; i++)
            b[i] = make_uint4(integer(b[i].x, 0), integer(b[i].y, 1), integer(b[i].z, 2), integer(b[i].w, 3));
    }
};
#endif

// mad adds a·b to sum. (By name: from 64-bit operands the compiler would make four instructions of it.)
__device__ __forceinline__ void mad(i64 &sum, int a, int b) {
    asm("mad.wide.s32 %0, %1, %2, %0;" : "+l"(sum) : "r"(a), "r"(b));
}

#if BITS == 15 && !defined(DIRECT)
#define PAIRS // two entries are multiplied at a time
#define NARROW 64 // times four entries, whose sums with bytes of A fit 32 bits: 256·2^15·255 < 2^31

// dp2 adds products of two integers and bytes of A: the lower ones, which have no sign, or the upper ones.
__device__ __forceinline__ void dp2(int (&sum)[2], u32 b, u32 bytes) {
    asm("dp2a.lo.s32.u32 %0, %1, %2, %0;" : "+r"(sum[0]) : "r"(b), "r"(bytes));
    asm("dp2a.hi.s32.s32 %0, %1, %2, %0;" : "+r"(sum[1]) : "r"(b), "r"(bytes));
}

// accumulate adds the products of four entries and the columns in b.
__device__ __forceinline__ void accumulate(int (&sum)[4][2], const Quad &a, const bool (&in)[4],
                                           const Columns (&b)[4]) {
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
        u32 pair = (i == 0 ? a.x : a.y) & ((in[i] ? 0xffffu : 0) | (in[i + 1] ? 0xffff0000u : 0));
        u32 bytes = __byte_perm(pair, 0, 0x3120);
        dp2(sum[0], __byte_perm(b[i].x, b[i + 1].x, 0x5410), bytes);
        dp2(sum[1], __byte_perm(b[i].x, b[i + 1].x, 0x7632), bytes);
        dp2(sum[2], __byte_perm(b[i].y, b[i + 1].y, 0x5410), bytes);
        dp2(sum[3], __byte_perm(b[i].y, b[i + 1].y, 0x7632), bytes);
    }
}

// widen moves sums to those of 64 bits.
__device__ __forceinline__ void widen(i64 (&to)[SUMS][4], int (&sum)[4][2]) {
#pragma unroll
    for (int j = 0; j < 4; j++) to[0][j] += sum[j][0] + 256 * (i64)sum[j][1], sum[j][0] = sum[j][1] = 0;
}
#else
// accumulate adds the products of entry i of four and the columns in b.
__device__ __forceinline__ void accumulate(i64 (&sum)[SUMS][4], const Quad &a, int i, bool in, const Columns &b) {
#if BITS == 47
    const uint4 &h = i < 2 ? a.lo : a.hi;
    int lo = in ? word(h, 2 * (i & 1)) : 0, hi = in ? word(h, 2 * (i & 1) + 1) : 0;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        int bl = word(b.lo, j), bh = word(b.hi, j);
        mad(sum[0][j], lo, bl);
        mad(sum[1][j], lo, bh);
        mad(sum[1][j], hi, bl);
        mad(sum[2][j], hi, bh);
    }
#else
    int x = in ? integer(a, i) : 0;
#if BITS == 31
    int lo = (x << 16) >> 16, hi = (x - lo) >> 16;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        mad(sum[0][j], lo, integer(b, j));
        mad(sum[1][j], hi, integer(b, j));
    }
#else
#pragma unroll
    for (int j = 0; j < 4; j++) mad(sum[0][j], x, integer(b, j));
#endif
#endif
}

// accumulate adds the products of four entries.
__device__ __forceinline__ void accumulate(i64 (&sum)[SUMS][4], const Quad &a, const bool (&in)[4],
                                           const Columns (&b)[4]) {
#pragma unroll
    for (int i = 0; i < 4; i++) accumulate(sum, a, i, in[i], b[i]);
}
#endif

// The kernel's arguments.
struct Args {
    const u32 *rows;
    const Quad *ints;
    const void *values, *b;
    const u32 *q, *bias;
    u32 *c;
    i128 *part;
};

// entries adds up the entries from begin to end that are the lane's: every along-th four of them, counted from
// multiples of four, so that columns and integers come in whole vectors. The first ones are fetched before
// launches_before, and AHEAD the next four before the rows of these. Entries of the neighbouring rows count as zero
// times anything.
__device__ __forceinline__ void entries(i64 (&sum)[SUMS][4], u32 begin, u32 end, u32 group, u32 along, u32 x,
                                        const Args &of, const Params &p) {
    const uint4 *__restrict__ colidx = (const uint4 *)(of.rows + p.columns);
    const Quad *__restrict__ ints = of.ints;
    u32 k = (begin & ~3u) + 4 * group, step = 4 * along, count = end - begin;
#ifdef DIRECT
    u32 pitch = 4 * p.ldb;
    const char *first = (const char *)of.b + x * 16;
#else
    u32 pitch = p.ldq / 4 * (u32)sizeof(Quad);
    const char *first = (const char *)(of.q + p.first) + x * (BITS == 15 ? 8 : 16);
#endif
    uint4 cols;
    Quad a;
    if (k < end) {
        cols = __ldg(colidx + k / 4);
        a = ints[k / 4];
    }
    launches_before();
    launches_after();
#ifdef DIRECT
    Scales scales(of.q + 4 * x, 4 * x < p.n);
#endif
    if (k >= end) return;
#ifdef PAIRS
    int narrow[4][2] = {};
    u32 left = NARROW;
#elif BITS == 15
    int origins = 0; // how often sums have ORIGIN
#endif
    while (true) {
        u32 next = k + step;
#ifdef AHEAD
        uint4 next_cols;
        Quad next_a;
        if (next < end) {
            next_cols = __ldg(colidx + next / 4);
            next_a = ints[next / 4];
        }
#endif
        Columns b[4];
        bool in[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            in[i] = k + i - begin < count;
            b[i] = fetch(first, word(cols, i), pitch, in[i]);
        }
#ifdef DIRECT
        scales.integers(b);
#endif
#ifdef PAIRS
        accumulate(narrow, a, in, b);
        if (--left == 0 || next >= end) widen(sum, narrow), left = NARROW;
#else
        accumulate(sum, a, in, b);
#endif
#if BITS == 15 && defined(DIRECT)
#pragma unroll
        for (int i = 0; i < 4; i++) origins += in[i] ? integer(a, i) : 0;
        if (next >= end)
#pragma unroll
            for (int j = 0; j < 4; j++) mad(sum[0][j], -origins, ORIGIN);
#endif
        if (next >= end) return;
        k = next;
#ifdef AHEAD
        cols = next_cols;
        a = next_a;
#else
        cols = __ldg(colidx + k / 4);
        a = ints[k / 4];
#endif
    }
}

// total puts a column's sums together.
__device__ __forceinline__ i128 total(const i64 (&sum)[SUMS][4], int j) {
    i128 t = sum[SUMS - 1][j];
#pragma unroll
    for (int d = SUMS - 2; d >= 0; d--) t = (t << SPLIT) + sum[d][j];
    return t;
}

// shuffle_add adds the sums of the lanes whose numbers differ in bit d.
__device__ __forceinline__ void shuffle_add(i64 (&sum)[SUMS][4], u32 d) {
#pragma unroll
    for (int i = 0; i < SUMS; i++)
#pragma unroll
        for (int j = 0; j < 4; j++) sum[i][j] += __shfl_xor_sync(ALL, sum[i][j], d);
}

__device__ __forceinline__ i128 shuffle(i128 t, u32 d) {
    i64 hi = __shfl_xor_sync(ALL, (i64)(t >> 64), d);
    i64 lo = __shfl_xor_sync(ALL, (i64)t, d);
    return (i128)hi << 64 | (unsigned long long)lo;
}

// write writes four rounded sums of a row of C, from column col on.
__device__ __forceinline__ void write(u32 row, u32 col, const u32 (&y)[4], const Args &a, const Params &p) {
    u32 count = min(p.n - col, 4u), *c = a.c + (size_t)row * p.ldc + col;
    if (count == 4 && p.ldc % 4 == 0) {
        *(uint4 *)c = make_uint4(y[0], y[1], y[2], y[3]);
        return;
    }
#pragma unroll
    for (int j = 0; j < 4; j++)
        if (j < count) c[j] = y[j];
}

// store writes four sums of a row of C, from column col on. ra is the row's range.
__device__ __forceinline__ void store(u32 row, u32 ra, u32 col, const i128 (&sum)[4], const Args &a, const Params &p) {
    u32 count = min(p.n - col, 4u);
    uint4 ranges = *(const uint4 *)(a.q + col); // a multiple of eight words
    u32 rb = ranges.x | ranges.y | ranges.z | ranges.w;
    if (p.store != 0 || ((ra | rb) & WILD) != 0) {
#pragma unroll
        for (u32 j = 0; j < 4; j++)
            if (j < count) store(row, col + j, sum[j], a.rows, a.values, a.b, a.q, a.bias, a.c, p);
        return;
    }
    u32 y[4];
    int la = unit(ra, BITS);
#pragma unroll
    for (int j = 0; j < 4; j++) y[j] = rounded(sum[j], la + unit(word(ranges, j), BITS));
    write(row, col, y, a, p);
}

#if SUMS < 3
// quick rounds a column's sum, in units of 2^scale, if the result is zero or a normal number; else it returns false. It
// is sure to be one where scale is from -126 to 64, as the sum is less than 2^63; with two sums, to 48, as it is less
// than 2^77.
__device__ __forceinline__ bool quick(u32 &y, const i64 (&sum)[SUMS][4], int j, int scale, bool sure) {
#if SUMS == 1
    i64 m = sum[0][j];
#else
    i64 t = sum[1][j] + (sum[0][j] >> SPLIT);
    u32 low = (u32)sum[0][j] & ((1u << SPLIT) - 1);
    bool far = (u32)(t >> 32) + 0x4000u >= 0x8000u; // 2^46 and beyond: low only tells on which side of a tie it is
    i64 m = far ? t | (low != 0) : t << SPLIT | low;
    scale += far ? SPLIT : 0;
#endif
    u32 f = __float_as_uint(__ll2float_rn(m)), e = f >> 23 & 255;
    y = e == 0 ? 0 : f + ((u32)scale << 23);
    return sure || e == 0 || e + scale - 1 < 254u;
}
#endif

// store writes four columns of a row of C, from column col on, given the sums. ra is the row's range.
__device__ __forceinline__ void store(u32 row, u32 ra, u32 col, const i64 (&sums)[SUMS][4], const Args &a,
                                      const Params &p) {
#if SUMS < 3
    uint4 ranges = *(const uint4 *)(a.q + col);
    u32 y[4];
    bool done = p.store == 0 && ((ra | ranges.x | ranges.y | ranges.z | ranges.w) & WILD) == 0;
    int scale[4], none = (ra & 0x3ffu) - 2 * (511 + BITS); // of columns of zeros: their sums are zeros whatever it is
    bool sure = true;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        scale[j] = none + (word(ranges, j) & 0x3ffu);
        sure &= scale[j] + 126u <= (SUMS == 1 ? 190u : 174u);
    }
    if (sure) {
#pragma unroll
        for (int j = 0; j < 4; j++) quick(y[j], sums, j, scale[j], true);
    } else {
#pragma unroll
        for (int j = 0; j < 4; j++) done &= quick(y[j], sums, j, scale[j], false);
    }
    if (done) {
        write(row, col, y, a, p);
        return;
    }
#endif
    i128 sum[4];
#pragma unroll
    for (int j = 0; j < 4; j++) sum[j] = total(sums, j);
    store(row, ra, col, sum, a, p);
}

// store_partial writes four sums to a row of the workspace.
__device__ __forceinline__ void store_partial(u32 slot, u32 col, const i64 (&sums)[SUMS][4], const Args &a,
                                              const Params &p) {
#pragma unroll
    for (int j = 0; j < 4; j++) a.part[(size_t)slot * p.ldq + col + j] = total(sums, j);
}

// add_slots is phase 1: it adds the partial sums of a row in segments, by `along` groups of lanes.
__device__ __forceinline__ void add_slots(const u32 *r, u32 group, u32 col, bool busy, const Args &a, const Params &p) {
    i128 sum[4] = {};
    launches_before();
    launches_after();
    if (busy)
        for (u32 i = r[1] + group; i < r[2]; i += along_of(p))
#pragma unroll
            for (int j = 0; j < 4; j++) sum[j] += a.part[(size_t)i * p.ldq + col + j];
    for (u32 d = across_of(p); d < across_of(p) * along_of(p); d *= 2)
#pragma unroll
        for (int j = 0; j < 4; j++) sum[j] += shuffle(sum[j], d);
    if (busy && group == 0) store(r[0], a.rows[2 * (size_t)r[0] + 1], col, sum, a, p);
}

#ifdef TEAMS
#define SEGMENT 4 // words: begin, end, row, and its row of the workspace (ALL: the segment is a whole row)
#define WARPS 4

// team computes a segment with all warps of the CTA.
__device__ __forceinline__ void team(const u32 *segment, u32 x, const Args &a, const Params &p) {
    __shared__ i64 others[WARPS - 1][SUMS * 4][32];
    u32 across = across_of(p), group = threadIdx.x >> (31 - __clz(across)), warp = threadIdx.x / 32;
    u32 lane = threadIdx.x % 32, col = 4 * x;
    u32 begin = __ldg(segment), end = __ldg(segment + 1), row = __ldg(segment + 2), slot = __ldg(segment + 3);
    i64 sums[SUMS][4] = {};
    entries(sums, begin, col < p.n ? end : begin, group, 32 * WARPS / across, x, a, p);
    for (u32 d = across; d < 32; d *= 2) shuffle_add(sums, d);
    if (warp > 0 && lane < across)
#pragma unroll
        for (int i = 0; i < SUMS * 4; i++) others[warp - 1][i][lane] = sums[i / 4][i % 4];
    __syncthreads();
    if (threadIdx.x >= across || col >= p.n) return;
#pragma unroll
    for (int w = 0; w < WARPS - 1; w++)
#pragma unroll
        for (int i = 0; i < SUMS * 4; i++) sums[i / 4][i % 4] += others[w][i][lane];
    if (slot != ALL) store_partial(slot, col, sums, a, p);
    else store(row, a.rows[2 * (size_t)row + 1], col, sums, a, p);
}

// warp_row computes a row of the list with each warp of the CTA: the first one's is number `item`.
__device__ __forceinline__ void warp_row(const u32 *list, u32 item, u32 x, const Args &a, const Params &p) {
    u32 across = across_of(p), group = threadIdx.x % 32 >> (31 - __clz(across)), col = 4 * x;
    item += threadIdx.x / 32;
    bool busy = item < p.warps && col < p.n;
    const uint2 *of = (const uint2 *)list + SEGMENT / 2 * (size_t)item;
    uint2 bounds = busy ? __ldg(of) : make_uint2(0, 0);
    i64 sums[SUMS][4] = {};
    entries(sums, bounds.x, bounds.y, group, 32 / across, x, a, p);
    for (u32 d = across; d < 32; d *= 2) shuffle_add(sums, d);
    if (!busy || group != 0) return;
    u32 row = __ldg(&of[1].x);
    store(row, a.rows[2 * (size_t)row + 1], col, sums, a, p);
}
#else
#define SEGMENT 2 // words: begin, end
#endif

extern "C" __global__ void __launch_bounds__(128, CTAS)
    rfx(const u32 *__restrict__ rows, const Quad *__restrict__ ints, const void *__restrict__ values,
        const void *__restrict__ b, const u32 *__restrict__ q, const u32 *__restrict__ bias, u32 *c, i128 *part,
        const __grid_constant__ Params p) {
    Args a = {rows, ints, values, b, q, bias, c, part};
    u32 across = across_of(p), along = along_of(p);
    u32 group = threadIdx.x >> (31 - __clz(across)); // of the workgroup's
    u32 lane = threadIdx.x & (across - 1), x = blockIdx.y * across + lane, col = 4 * x;
    u32 block = blockIdx.x + blockIdx.z * p.width, before = p.segments; // segments, which come before the rows
#ifdef TEAMS
    if (phase_of(p) == 0) {
        if (block < p.segments) {
            team(rows + p.heavy + SEGMENT * (size_t)block, x, a, p);
            return;
        }
        block -= p.segments;
        u32 ctas = (p.warps + WARPS - 1) / WARPS;
        if (block < ctas) {
            warp_row(rows + p.heavy + SEGMENT * (size_t)p.segments, WARPS * block, x, a, p);
            return;
        }
        block -= ctas;
    }
    before = 0;
#endif
    u32 item = block * p.per + (group >> (31 - __clz(along)));
    group &= along - 1; // of the item's
    bool busy = item < p.items && col < p.n;
    if (phase_of(p) == 1) {
        add_slots(rows + p.heavy + SEGMENT * ((size_t)p.segments + p.warps) + 3 * (size_t)item, group, col, busy, a, p);
        return;
    }
    bool segment = item < before;
    u32 row = item - before, begin = 0, end = 0, ra = 0;
    if (busy) {
        const u32 *r = segment ? rows + p.heavy + 2 * (size_t)item : rows + 2 * (size_t)row;
        begin = r[0], ra = r[1], end = segment ? ra : r[2];
        busy = segment || end - begin <= p.longest; // else it is done in segments
        if (!busy) end = begin;
    }
    i64 sums[SUMS][4] = {};
    entries(sums, begin, end, group, along, x, a, p);
    for (u32 d = across; d < across * along; d *= 2) shuffle_add(sums, d);
    if (!busy || group != 0) return;
    if (segment) store_partial(item, col, sums, a, p);
    else store(row, ra, col, sums, a, p);
}
