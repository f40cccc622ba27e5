// Computes: C (rows × n) = alpha·A·B + beta·C reproducibly in fixed point (RFX-p, p = BITS), A in panels of 8 rows as
// in panel.cu, on matrix units of 8-bit integers (mma.m16n8k32). stationary.go says when.
// Tile: a CTA has 16 columns of B, all of their rows, in shared memory, and multiplies a share of the panels by them, a
// warp a panel. The instruction computes Cᵀ = Bᵀ·Aᵀ: lane (g, t) has vectors 8t to 8t + 7 of a tile of 32, and columns
// 2g and 2g + 1.
// Data movement: the CTA finds the ranges of its columns as it copies B, so that no launch comes before. A 16-bit B
// stays as it is at p = 31 and 47, and an element becomes an integer each time that it is gathered; else B becomes
// digits in shared memory. Four lanes of a quad read four rows at once: those that differ mod 4 lie in different banks.
// Column numbers and digits of A go from memory to registers, AHEAD tiles ahead. A warp's panels lie one behind the
// other.
// Digits of B are the bytes of its integers in two's complement: the highest is signed, the others are not.
// Bound by: instructions, and bringing B; at p = 47 MMA, too.
// Constants: BITS (p), WARPS, AHEAD (1 to 3, tiles of A that a lane loads ahead), COLS (16).

#include "store.cuh"
#include "../include/units.cuh"
#include "../include/launches.cuh"
#include "../include/seen.cuh"

typedef long long i64;

#define S ((BITS + 1) / 8) // digits
#define DIAGS (2 * S - 1) // sums of places
#define KEPT (BITS >= 31) // B stays as it is
#define ITEM 13 // words: see panels.go
#define EXTRA 8 // see Panels
#define NOROW 0xffffffffu
#define ALL 0xffffffffu
#define THREADS (32 * WARPS)

// Fragments are the digits of B of a tile: words of four rows each, of column 2g, 2g + 1, then of the next four rows.
struct Fragments {
    u32 w[S][4];
};

// mma is d += a·b, exactly as long as sums fit; TOP tells that a's bytes are signed.
template <bool TOP> __device__ __forceinline__ void mma(int (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
#define MMA(TYPE) \
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32." TYPE ".s8.s32 " \
                 "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};" \
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
    if (TOP) MMA("s8");
    else MMA("u8");
#undef MMA
}

// turn makes of a word of each of four rows a word of each byte of them.
__device__ __forceinline__ void turn(u32 (&c)[4], const u32 (&x)[4]) {
    u32 lo = __byte_perm(x[0], x[1], 0x5140), hi = __byte_perm(x[2], x[3], 0x5140);
    c[0] = __byte_perm(lo, hi, 0x5410), c[1] = __byte_perm(lo, hi, 0x7632);
    lo = __byte_perm(x[0], x[1], 0x7362), hi = __byte_perm(x[2], x[3], 0x7362);
    c[2] = __byte_perm(lo, hi, 0x5410), c[3] = __byte_perm(lo, hi, 0x7632);
}
// turn_halves is that of the lower two bytes.
__device__ __forceinline__ void turn_halves(u32 (&c)[2], const u32 (&x)[4]) {
    u32 lo = __byte_perm(x[0], x[1], 0x5140), hi = __byte_perm(x[2], x[3], 0x5140);
    c[0] = __byte_perm(lo, hi, 0x5410), c[1] = __byte_perm(lo, hi, 0x7632);
}

// Scale is the factor of the elements of a column: 2^-L, at once for elements of f16, for others in two steps.
// Each is exact wherever the result is not far below 1/2.
template <int ELEM> struct Scale {
    float first, then;

    Scale() = default;
    __device__ __forceinline__ Scale(u32 range) {
        int l = -unit(range, BITS), half = ELEM == F16 ? 0 : l / 2;
        first = __uint_as_float((u32)(127 + half) << 23), then = __uint_as_float((u32)(127 + l - half) << 23);
    }
    __device__ __forceinline__ float near(float x) const { return ELEM == F16 ? x : x * first; }
    // whole returns x·2^-L as an integer, at p = 15 in its lower half: adding 3·2^22 rounds it, to the last bits of an
    // f32.
    __device__ __forceinline__ u32 whole(float x) const {
        if (BITS == 15) return __float_as_uint(__fmaf_rn(near(x), then, 12582912.0f));
        return (u32)__float2int_rn(near(x) * then);
    }
    __device__ __forceinline__ i64 whole64(float x) const { return __float2ll_rn(near(x) * then); }
};

// load_shared loads a word. (The compiler does not move it.)
__device__ __forceinline__ u32 load_shared(u32 at) {
    u32 x;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(at) : "memory");
    return x;
}

// Slab is B in shared memory: lines of 16 columns of 16 bits, or of the lower two digits. At p = 23 lines of the
// highest digit follow.
struct Slab {
    u32 at, tops;

    __device__ __forceinline__ u32 word(u32 k) const { return load_shared(at + 32 * k); }
    __device__ __forceinline__ u32 top(u32 k) const {
        unsigned short x;
        asm volatile("ld.shared.u16 %0, [%1];" : "=h"(x) : "r"(tops + 16 * k) : "memory");
        return x;
    }
};

// Words are a lane's elements of B for a tile: two columns of eight rows.
struct Words {
    u32 w[8];
#if BITS == 23
    u32 top[8];
#endif

    __device__ __forceinline__ void fetch(const Slab &slab, const uint4 (&rows)[2]) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            uint4 k = rows[i];
            w[4 * i] = slab.word(k.x), w[4 * i + 1] = slab.word(k.y), w[4 * i + 2] = slab.word(k.z),
            w[4 * i + 3] = slab.word(k.w);
#if BITS == 23
            top[4 * i] = slab.top(k.x), top[4 * i + 1] = slab.top(k.y), top[4 * i + 2] = slab.top(k.z),
            top[4 * i + 3] = slab.top(k.w);
#endif
        }
    }

    // digits returns their digits.
    template <int ELEM> __device__ __forceinline__ void digits(Fragments &f, const Scale<ELEM> (&scale)[2]) const {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const u32(&x)[4] = *(const u32(*)[4])(w + 4 * i);
            u32 c[4];
#if KEPT
#pragma unroll
            for (int h = 0; h < 2; h++) {
                u32 q[4];
#if BITS == 47
                u32 upper[4], d[2];
#endif
#pragma unroll
                for (int r = 0; r < 4; r++) {
                    float y = h ? widen_hi<ELEM>(x[r]) : widen_lo<ELEM>(x[r]);
#if BITS == 47
                    i64 whole = scale[h].whole64(y);
                    q[r] = (u32)whole, upper[r] = (u32)(whole >> 32);
#else
                    q[r] = scale[h].whole(y);
#endif
                }
                turn(c, q);
#pragma unroll
                for (int d = 0; d < 4; d++) f.w[d][2 * i + h] = c[d];
#if BITS == 47
                turn_halves(d, upper);
                f.w[4][2 * i + h] = d[0], f.w[5][2 * i + h] = d[1];
#endif
            }
#else
            turn(c, x); // bytes of a word: both digits of column 2g, then of 2g + 1
            f.w[0][2 * i] = c[0], f.w[1][2 * i] = c[1], f.w[0][2 * i + 1] = c[2], f.w[1][2 * i + 1] = c[3];
#if BITS == 23
            u32 d[2];
            turn_halves(d, *(const u32(*)[4])(top + 4 * i));
            f.w[2][2 * i] = d[0], f.w[2][2 * i + 1] = d[1];
#endif
#endif
        }
    }
};

// add adds the products of a tile to the sums: a[e] are the digits of A of place e.
__device__ __forceinline__ void add(int (&acc)[DIAGS][4], const Fragments &f, const u32 (&a)[S][2]) {
#pragma unroll
    for (int d = 0; d < S; d++)
#pragma unroll
        for (int e = 0; e < S; e++)
            if (d == S - 1) mma<true>(acc[d + e], f.w[d], a[e]);
            else mma<false>(acc[d + e], f.w[d], a[e]);
}

// four puts the sums of four neighbouring places together, of those that there are: below 2^57.
__device__ __forceinline__ i64 four(const int (&acc)[DIAGS][4], int first, int i) {
    i64 t = 0;
#pragma unroll
    for (int d = 0; d < 4; d++)
        if (first + d < DIAGS) t += (i64)acc[first + d][i] * (1 << 8 * d);
    return t;
}

// total puts the sums of one output together, by words of 32 bits.
__device__ __forceinline__ i128 total(const int (&acc)[DIAGS][4], int i) {
    i64 t = four(acc, 0, i);
    if (BITS == 15) return t;
    u32 low = (u32)t;
    t = (t >> 32) + four(acc, 4, i);
    if (BITS < 47) return (i128)t << 32 | low;
    u32 middle = (u32)t;
    t = (t >> 32) + four(acc, 8, i);
    return (i128)t << 64 | (u64)middle << 32 | low;
}

// slab_bytes returns the bytes of B in shared memory.
__device__ __forceinline__ u32 slab_bytes(const Params &p) { return ((BITS == 23 ? 48 : 32) * p.ldq + 127) & ~127u; }

// put_apart is put, out of the way of the common case.
__device__ __noinline__ void put_apart(u32 row, u32 j, u32 y, u32 ra, u32 rb, const u32 *rows, const void *values,
                                       const void *b, const u32 *bias, u32 *c, const Params &p) {
    put(row, j, y, ra, rb, rows, values, b, bias, c, p);
}

// Chunk is 8 neighbouring columns of a row of B.
template <int ELEM> struct Chunk {
    static const int WORDS = ELEM == F32 ? 8 : 4;
    u32 w[WORDS];

    __device__ __forceinline__ void load(const u32 *b, u32 k, u32 col, const Params &p) {
        const uint4 *from = (const uint4 *)(b + ((size_t)k * p.ldb + col) * WORDS / 8);
#pragma unroll
        for (int i = 0; i < WORDS; i += 4) {
            uint4 v = __ldg(from + i / 4);
            w[i] = v.x, w[i + 1] = v.y, w[i + 2] = v.z, w[i + 3] = v.w;
        }
    }
    __device__ __forceinline__ u32 bits(int t) const {
        if (ELEM == F32) return w[t % WORDS];
        return __float_as_uint(t % 2 ? widen_hi<ELEM>(w[t / 2]) : widen_lo<ELEM>(w[t / 2]));
    }
};

// Share is the thread's share of B: 8 columns of every APART-th row, from row threadIdx.x / 2 on.
#define APART (THREADS / 2)
template <int ELEM> struct Share {
    unsigned char *slab;
    const u32 *b;
    u32 half, col;
    bool inside;

    __device__ __forceinline__ Share(unsigned char *slab, const u32 *b, u32 first, const Params &p)
        : slab(slab), b(b), half(threadIdx.x % 2), col(first + 8 * half), inside(col < p.ldb) {}
    // load returns a row's elements, zeros where there are none.
    __device__ __forceinline__ Chunk<ELEM> load(u32 k, const Params &p) const {
        Chunk<ELEM> x;
#pragma unroll
        for (int t = 0; t < Chunk<ELEM>::WORDS; t++) x.w[t] = 0;
        if (inside && k < p.ldq) x.load(b, k, col, p);
        return x;
    }
    __device__ __forceinline__ uint4 *line(u32 k) const { return (uint4 *)(slab + 32 * k + 16 * half); }

    // scan finds the ranges of the columns, and leaves elements of 16 bits in the slab.
    __device__ __forceinline__ void scan(u32 (&range)[8], const Params &p) const {
        Seen seen[8];
        if (ELEM == F32) see_all<4>(seen, p, [&](u32 k) { return load(k, p); });
        else if (!copy_and_see(seen, p)) see_all<1>(seen, p, [&](u32 k) { return copied(k); });
#pragma unroll
        for (int t = 0; t < 8; t++) {
            range[t] = col + t < p.n ? seen[t].range() : 0;
#pragma unroll
            for (int d = 2; d < 32; d *= 2) range[t] = Seen::join(range[t], __shfl_xor_sync(ALL, range[t], d));
        }
    }
    // see_all looks at every element, ROWS rows at once.
    template <u32 ROWS, class F>
    __device__ __forceinline__ void see_all(Seen (&seen)[8], const Params &p, F chunk) const {
#pragma unroll 1
        for (u32 k = threadIdx.x / 2; k < p.ldq; k += ROWS * APART) {
            Chunk<ELEM> x[ROWS];
#pragma unroll
            for (u32 i = 0; i < ROWS; i++) x[i] = chunk(k + i * APART);
#pragma unroll
            for (u32 i = 0; i < ROWS; i++)
#pragma unroll
                for (int t = 0; t < 8; t++) seen[t].see(x[i].bits(t));
        }
    }
    // copy_and_see copies elements of 16 bits and finds the largest ones, as integers without the sign. It returns
    // whether all are finite; else seen is as it was.
    __device__ __forceinline__ bool copy_and_see(Seen (&seen)[8], const Params &p) const {
        constexpr u32 ROWS = 16;
        u32 most[4] = {};
#pragma unroll 1
        for (u32 k = threadIdx.x / 2; k < p.ldq; k += ROWS * APART) {
            Chunk<ELEM> x[ROWS];
#pragma unroll
            for (u32 i = 0; i < ROWS; i++) x[i] = load(k + i * APART, p);
#pragma unroll
            for (u32 i = 0; i < ROWS; i++) {
#pragma unroll
                for (int t = 0; t < 4; t++) most[t] = __vmaxu2(most[t], x[i].w[t] & 0x7fff7fff);
                if (k + i * APART < p.ldq)
                    *line(k + i * APART) = make_uint4(x[i].w[0], x[i].w[1], x[i].w[2], x[i].w[3]);
            }
        }
        u32 all = __vmaxu2(__vmaxu2(most[0], most[1]), __vmaxu2(most[2], most[3])), inf = ELEM == F16 ? 0x7c00 : 0x7f80;
        if ((all & 0xffff) >= inf || all >> 16 >= inf) return false;
        Chunk<ELEM> x;
#pragma unroll
        for (int t = 0; t < 4; t++) x.w[t] = most[t];
#pragma unroll
        for (int t = 0; t < 8; t++) seen[t].see(x.bits(t));
        return true;
    }
    // copied returns a row's elements that are in the slab.
    __device__ __forceinline__ Chunk<ELEM> copied(u32 k) const {
        Chunk<ELEM> x;
        uint4 v = *line(k);
        x.w[0] = v.x, x.w[1] = v.y, x.w[2] = v.z, x.w[3] = v.w;
        return x;
    }

    // to_digits makes digits of the elements.
    __device__ __forceinline__ void to_digits(const u32 *ranges, const Params &p) const {
        Scale<ELEM> scale[8];
#pragma unroll
        for (int t = 0; t < 8; t++) scale[t] = ranges[8 * half + t];
        uint2 *tops = (uint2 *)(slab + 32 * p.ldq) + half;
#pragma unroll 2
        for (u32 k = threadIdx.x / 2; k < p.ldq; k += APART) {
            Chunk<ELEM> x;
            if constexpr (ELEM == F32) x = load(k, p);
            else x = copied(k);
            u32 q[8], two[4], top[4];
#pragma unroll
            for (int t = 0; t < 8; t++) q[t] = scale[t].whole(__uint_as_float(x.bits(t)));
#pragma unroll
            for (int t = 0; t < 4; t++) {
                two[t] = __byte_perm(q[2 * t], q[2 * t + 1], 0x5410);
                top[t] = __byte_perm(q[2 * t], q[2 * t + 1], 0x0062);
            }
            *line(k) = make_uint4(two[0], two[1], two[2], two[3]);
            if (BITS == 23)
                tops[2 * k] = make_uint2(__byte_perm(top[0], top[1], 0x5410), __byte_perm(top[2], top[3], 0x5410));
        }
    }
};

// bring finds the ranges of the CTA's columns and leaves B in the slab. Columns past the last are zeros. ranges has
// room for those that each warp finds.
template <int ELEM>
__device__ __forceinline__ void bring(unsigned char *slab, u32 *ranges, const u32 *b, u32 first, const Params &p) {
    Share<ELEM> share(slab, b, first, p);
    u32 range[8];
    share.scan(range, p);
    if (threadIdx.x % 32 < 2)
#pragma unroll
        for (int t = 0; t < 8; t++) ranges[threadIdx.x / 32 * COLS + 8 * share.half + t] = range[t];
    __syncthreads();
    if (threadIdx.x < COLS) {
        u32 r = 0;
#pragma unroll
        for (int w = 0; w < WARPS; w++) r = Seen::join(r, ranges[w * COLS + threadIdx.x]);
        ranges[threadIdx.x] = r;
    }
    __syncthreads();
#if !KEPT
    share.to_digits(ranges, p);
    __syncthreads();
#endif
}

// Panel describes a panel to a lane, which has two of its rows.
struct Panel {
    u32 tiles, row[2], range[2];

    __device__ __forceinline__ void load(const u32 *item, const u32 *rows) {
        tiles = item[2];
#pragma unroll
        for (int e = 0; e < 2; e++) {
            row[e] = item[5 + 2 * (threadIdx.x % 4) + e];
            range[e] = row[e] == NOROW ? 0 : rows[2 * (size_t)row[e] + 1];
        }
    }
};

// Panels are those that a warp has, from first to last - 1, which lie one behind the other.
struct Panels {
    const u32 *items;
    u32 count, first, last;

    // weight returns what the panels before one are worth: their tiles, and EXTRA for each, so that warps have equally
    // many panels of about equal length.
    __device__ __forceinline__ u32 weight(u32 panel) const { return items[ITEM * (size_t)panel + 1] + EXTRA * panel; }
    // find returns the first panel of at least this weight. A warp tries 32 at a time.
    __device__ __forceinline__ u32 find(u32 least) const {
        u32 from = 0, many = count;
        while (many > 0) {
            u32 step = (many + 31) / 32, at = from + threadIdx.x % 32 * step;
            u32 below = __popc(__ballot_sync(ALL, at < from + many && weight(at) < least));
            if (below == 0) return from;
            u32 next = from + (below - 1) * step + 1; // the last one below is the one before
            many = min(from + many, next + step - 1) - next, from = next;
        }
        return from;
    }
    // share finds those of one of as many shares of about the same weight.
    __device__ __forceinline__ void share(u32 number, u32 shares) {
        u32 all = count == 0 ? 0 : weight(count - 1) + item(count - 1)[2] + EXTRA;
        first = begin(all, number, shares), last = begin(all, number + 1, shares);
    }
    // begin returns the first panel of a share: the one that begins nearest to where the share does.
    __device__ __forceinline__ u32 begin(u32 all, u32 number, u32 shares) const {
        if (number == 0 || count == 0) return 0;
        if (number == shares) return count;
        u32 at = (u64)all * number / shares, half = all / count / 2;
        return find(at > half ? at - half : 0);
    }
    __device__ __forceinline__ const u32 *item(u32 panel) const { return items + ITEM * (size_t)panel; }
    __device__ __forceinline__ u32 tiles() const {
        return first == last ? 0 : item(last - 1)[1] + item(last - 1)[2] - item(first)[1];
    }
};

// load_global2 loads two words, load_global4 four. (The compiler does not move them.)
__device__ __forceinline__ uint2 load_global2(const void *from) {
    uint2 x;
    asm volatile("ld.global.nc.v2.u32 {%0,%1}, [%2];" : "=r"(x.x), "=r"(x.y) : "l"(from) : "memory");
    return x;
}
__device__ __forceinline__ uint4 load_global4(const void *from) {
    uint4 x;
    asm volatile("ld.global.nc.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "l"(from)
                 : "memory");
    return x;
}

// Tiles is a lane's share of a warp's next tiles of A: the numbers of eight columns, and the digits of one row in them.
// Tile i is in place i mod AHEAD. Behind the last tile the last one follows again.
struct Tiles {
    const char *ints;
    const u32 *columns;
    u32 ints_left, columns_left; // tiles behind that at ints, at columns
    uint4 k[AHEAD][2];
    u32 a[AHEAD][S][2];

    __device__ __forceinline__ Tiles(const Panels &panels, const u32 *rows, const char *all) {
        u32 lane = threadIdx.x % 32;
        const u32 *item = panels.item(panels.first);
        columns = rows + item[0] + 8 * (lane % 4), ints = all + (size_t)item[1] * (256 * S) + 8 * lane;
        ints_left = columns_left = panels.tiles() - 1;
    }
    __device__ __forceinline__ void load_columns(int i) {
        k[i][0] = load_global4(columns), k[i][1] = load_global4(columns + 4);
        if (columns_left > 0) columns += 32, columns_left--;
    }
    __device__ __forceinline__ void load_digits(int i) {
#pragma unroll
        for (int d = 0; d < S; d++) {
            uint2 x = load_global2(ints + 256 * d);
            a[i][d][0] = x.x, a[i][d][1] = x.y;
        }
        if (ints_left > 0) ints += 256 * S, ints_left--;
    }
};

// Place tells a lane its columns, and where they are in shared memory.
template <int ELEM> struct Place {
    u32 col; // the first of two
    u32 ranges[2];
    Scale<ELEM> scale[2];
    Slab slab;
};

// step adds the products of a tile, which is in place i and whose words of B are there, fetches the words of the next
// one, and loads what is needed after that.
template <int ELEM>
__device__ __forceinline__ void step(int (&acc)[DIAGS][4], Words &words, Tiles &tiles, int i,
                                     const Place<ELEM> &place) {
    int next = (i + 1) % AHEAD;
    Fragments f;
    words.digits<ELEM>(f, place.scale);
    words.fetch(place.slab, tiles.k[next]);
    tiles.load_columns(next);
    add(acc, f, tiles.a[i]);
    tiles.load_digits(i);
}

__device__ __forceinline__ void clear(int (&acc)[DIAGS][4]) {
#pragma unroll
    for (int d = 0; d < DIAGS; d++)
#pragma unroll
        for (int e = 0; e < 4; e++) acc[d][e] = 0;
}

// finish writes the lane's two columns of two rows of C.
template <int ELEM>
__device__ __forceinline__ void finish(const int (&acc)[DIAGS][4], const Panel &panel, const Place<ELEM> &place,
                                       const u32 *rows, const void *values, const void *b, const u32 *bias, u32 *c,
                                       const Params &p) {
    bool plain = p.store == 0 && (p.ldc & 1) == 0 && place.col + 2 <= p.n;
#pragma unroll
    for (int e = 0; e < 2; e++) {
        u32 row = panel.row[e], ra = panel.range[e], y[2];
        if (row == NOROW || place.col >= p.n) continue;
#pragma unroll
        for (int h = 0; h < 2; h++)
            y[h] = rounded(total(acc, 2 * h + e), unit(ra, BITS) + unit(place.ranges[h], BITS));
        if (plain && ((ra | place.ranges[0] | place.ranges[1]) & WILD) == 0) {
            *(uint2 *)(c + (size_t)row * p.ldc + place.col) = make_uint2(y[0], y[1]);
            continue;
        }
#pragma unroll
        for (int h = 0; h < 2; h++)
            if (place.col + h < p.n)
                put_apart(row, place.col + h, y[h], ra, place.ranges[h], rows, values, b, bias, c, p);
    }
}

template <int ELEM>
__device__ __forceinline__ void multiply(unsigned char *smem, const u32 *rows, const char *ints, const void *values,
                                         const u32 *b, const u32 *bias, u32 *c, const Params &p) {
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = blockIdx.y * COLS, g = lane / 4;
    u32 at = shared_address(smem), *ranges = (u32 *)(smem + slab_bytes(p));
    Panels panels = {rows + p.heavy, p.items};
    panels.share((blockIdx.x + gridDim.x * blockIdx.z) * WARPS + warp, gridDim.x * gridDim.z * WARPS);
    launches_before();
    launches_after();
    bring<ELEM>(smem, ranges, b, first, p);
    if (panels.first == panels.last) return;
    u32 r0 = ranges[2 * g], r1 = ranges[2 * g + 1];
    Place<ELEM> place = {first + 2 * g, {r0, r1}, {r0, r1}, {at + 4 * g, at + 32 * p.ldq + 2 * g}};
#pragma unroll
    for (int h = 0; h < 2; h++) asm volatile("" : "+f"(place.scale[h].then)); // not computed in each step
    asm volatile("" : "+r"(place.slab.at));
    Tiles tiles(panels, rows, ints);
    Words words;
    if (panels.tiles() > 0) {
#pragma unroll
        for (int i = 0; i < AHEAD; i++) tiles.load_columns(i), tiles.load_digits(i);
        words.fetch(place.slab, tiles.k[0]);
        tiles.load_columns(0);
    }
    u32 number = panels.first;
    Panel now, next;
    next.load(panels.item(number), rows);
    int acc[DIAGS][4];
    auto turn = [&] { // the next panel begins
        clear(acc);
        now = next;
        if (number + 1 < panels.last) next.load(panels.item(number + 1), rows);
    };
    auto end = [&] { finish(acc, now, place, rows, values, b, bias, c, p); };
#if AHEAD == 1
#pragma unroll 1
    for (; number < panels.last; number++) {
        turn();
#pragma unroll 1
        for (u32 tile = 0; tile < now.tiles; tile++) step(acc, words, tiles, 0, place);
        end();
    }
#else
    // Places of tiles are constants: a panel may end at each. one multiplies a tile, or returns false if there is none.
    turn();
    auto one = [&](int i) {
        while (now.tiles == 0) {
            end();
            if (++number == panels.last) return false;
            turn();
        }
        step(acc, words, tiles, i, place);
        now.tiles--;
        return true;
    };
    while (one(0) && one(1) && (AHEAD < 3 || one(2 % AHEAD))) {}
#endif
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
    rfx(const u32 *__restrict__ rows, const char *__restrict__ ints, const void *__restrict__ values,
        const u32 *__restrict__ b, const u32 *__restrict__, const u32 *__restrict__ bias, u32 *c, i128 *,
        const __grid_constant__ Params p) {
    extern __shared__ __align__(1024) unsigned char smem[];
    if (elem_of(p) == F16) multiply<F16>(smem, rows, ints, values, b, bias, c, p);
    else if (elem_of(p) == BF16) multiply<BF16>(smem, rows, ints, values, b, bias, c, p);
#if !KEPT
    else multiply<F32>(smem, rows, ints, values, b, bias, c, p);
#endif
}
