// Computes: B (cols × n) in RFX-p's fixed point, q (quantise.go). Phases 0 and 4 find ranges of parts of columns,
// phases 1 to 3 join them and quantise: to integers, to digits, to digits in the order of fragments. Phase 6 finds the
// ranges of whole columns, which phase 5 sets to those of columns without elements.
// Tile: a CTA has a tile of rows and columns of B.
// Data movement: straight through registers; ranges of a tile meet in shared memory.
// Bound by: memory bandwidth.
// Constants: LOCAL, threads of a CTA; OVERLAP (overlap.cuh).

#include "columns.cuh"

// split gathers four columns' digits by place.
__device__ __forceinline__ void split(u32 (&place)[4], const u32 *x) {
    u32 a = __byte_perm(x[0], x[1], 0x5140), b = __byte_perm(x[2], x[3], 0x5140);
    place[0] = __byte_perm(a, b, 0x5410), place[1] = __byte_perm(a, b, 0x7632);
    a = __byte_perm(x[0], x[1], 0x7362), b = __byte_perm(x[2], x[3], 0x7362);
    place[2] = __byte_perm(a, b, 0x5410), place[3] = __byte_perm(a, b, 0x7632);
}

// Phase 1, 2 or 3 comes right after phase 0 or 4, and before it waits it reads what that reads so, B: they begin
// together. Phases 5 and 6 do so, too.

// scan is phase 0. S is Seen, or SeenAll where no other phase follows.
template <class S, int ELEM> __device__ __forceinline__ void scan(const u32 *__restrict__ b, u32 *q, const Params &p) {
    Place at = place<4>(p);
    u32 r[4];
    if (p.bits != 0) launches_after();
    find<S, ELEM>(r, b, at, p);
    launches_before();
    if (p.bits == 0) launches_after();
    if (at.j < p.ldq && at.sub == 0) write(q + (size_t)(blockIdx.x + 1) * p.ldq + at.j, r);
}

// clear is phase 5.
__device__ __forceinline__ void clear(u32 *q, const Params &p) {
    launches_after();
    launches_before();
    u32 j = blockIdx.y * LOCAL + threadIdx.x;
    if (j < p.ldq) q[j] = 0;
}

// join_at joins a range without lowest bits with one in memory. The maximum of the two does so, unless just one is
// WILD. It is WILD then, and the maximum with both together joins what is missing.
__device__ __forceinline__ void join_at(u32 *q, u32 r) {
    u32 before = atomicMax(q, r), both = Seen::join(before, r);
    if (both != max(before, r)) atomicMax(q, both);
}

// scan_whole is phase 6.
template <int ELEM> __device__ __forceinline__ void scan_whole(const u32 *__restrict__ b, u32 *q, const Params &p) {
    Place at = place<4>(p);
    u32 r[4];
    find<Seen, ELEM>(r, b, at, p);
    launches_before();
    launches_after();
    if (at.j >= p.ldq || at.sub != 0) return;
#pragma unroll
    for (int t = 0; t < 4; t++)
        if (r[t] != 0) join_at(q + at.j + t, r[t]);
}

// joined waits for phase 0 and returns the ranges of the lane's columns.
template <int C> __device__ __forceinline__ void joined(u32 (&r)[C], u32 *q, const Place &at, const Params &p) {
    bool inside = at.j < p.ldq;
#pragma unroll
    for (int t = 0; t < C; t++) r[t] = 0;
    launches_before();
    launches_after();
#pragma unroll 4
    for (u32 c = at.sub; inside && c < p.chunks; c += at.subs) {
        u32 x[C];
        read(x, q + (size_t)(c + 1) * p.ldq + at.j);
#pragma unroll
        for (int t = 0; t < C; t++) r[t] = Seen::join(r[t], x[t]);
    }
    join_lanes<Seen>(r, at.lane, p.across);
    if (inside && at.sub == 0 && blockIdx.x == 0) write(q + at.j, r);
}

// Columns has the scales of a lane's columns: at p = 47 they are in units of 2^l, else times scale and more.
template <int BITS, int C> struct Columns {
    int l[C];
    float scale[C], more[C];

    __device__ __forceinline__ Columns(const u32 (&range)[C], const Params &p) {
#pragma unroll
        for (int t = 0; t < C; t++)
            if (BITS == 47) l[t] = unit(range[t], p.bits);
            else factors(range[t], p.bits, scale[t], more[t]);
    }
    // whole returns the integer of a finite element. At p = 15 adding 3·2^22 rounds it, to the last bits of an f32.
    __device__ __forceinline__ int whole(u32 x, int t) const {
        float y = __uint_as_float(x) * scale[t];
        return BITS == 15 ? __float_as_int(__fmaf_rn(y, more[t], 12582912.0f)) : __float2int_rn(y * more[t]);
    }
};

// put stores a row's integers: phase 1. BITS is 15, 31 (for 23, too) or 47.
template <int BITS>
__device__ __forceinline__ void put(u32 *rows, u32 k, u32 (&x)[4], const Columns<BITS, 4> &c, const Place &at,
                                    const Params &p) {
    u32 upper[4];
#pragma unroll
    for (int t = 0; t < 4; t++) {
        if (BITS == 47) { // two balanced digits of 24 bits
            long long d = whole47(x[t], c.l[t]);
            int lower = (int)((u32)d << 8) >> 8;
            x[t] = lower, upper[t] = (u32)((d - lower) >> 24);
        } else {
            x[t] = c.whole(x[t], t);
        }
    }
    if (BITS == 15) {
        *(uint2 *)(rows + ((size_t)k * p.ldq + at.j) / 2) =
            make_uint2(__byte_perm(x[0], x[1], 0x5410), __byte_perm(x[2], x[3], 0x5410));
        return;
    }
    u32 *row = rows + (size_t)k * (BITS == 47 ? 2 : 1) * p.ldq + at.j;
    write(row, x);
    if (BITS == 47) write(row + p.ldq, upper);
}

// put stores a row's digits: phase 2.
template <int BITS>
__device__ __forceinline__ void put(u32 *rows, u32 k, u32 (&x)[8], const Columns<BITS, 8> &c, const Place &at,
                                    const Params &p) {
    u32 places = (p.bits + 1) / 8, pitch = ((places * p.ldq + 31) & ~63u) + 32, lo[4], hi[4];
#pragma unroll
    for (int t = 0; t < 8; t++) x[t] = digits(c.whole(x[t], t), p.bits);
    split(lo, x);
    split(hi, x + 4);
    char *row = (char *)rows + (size_t)k * pitch;
    *(uint4 *)(row + 2 * at.j) = make_uint4(lo[0], hi[0], lo[1], hi[1]);
    if (places == 3) *(uint2 *)(row + 2 * p.ldq + at.j) = make_uint2(lo[2], hi[2]);
    if (places == 4) *(uint4 *)(row + 2 * p.ldq + 2 * at.j) = make_uint4(lo[2], hi[2], lo[3], hi[3]);
}

// Rows is the elements of the lane's next rows, at.subs apart, from row k on.
template <int ELEM, int C> struct Rows {
    static const int AHEAD = 16 / C;
    Some<ELEM, C> of[AHEAD];

    __device__ __forceinline__ void load(const u32 *__restrict__ b, u32 k, const Place &at, const Params &p) {
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            if (at.j < p.ldq && k + i * at.subs < at.end) of[i].load(b, k + i * at.subs, at.j, p.ldb);
    }
};

// convert stores all rows of the lane, whose first ones are loaded.
template <int BITS, int ELEM, int C>
__device__ __forceinline__ void convert(Rows<ELEM, C> &loaded, const u32 *b, u32 *rows, const u32 (&range)[C],
                                        const Place &at, const Params &p) {
    Columns<BITS, C> columns(range, p);
    u32 wild = 0;
#pragma unroll
    for (int t = 0; t < C; t++) wild |= range[t] & WILD;
    bool special = wild != 0 || at.j + C > p.n;
#pragma unroll 1
    for (u32 k = at.begin + at.sub; k < at.end; k += loaded.AHEAD * at.subs) {
        if (k != at.begin + at.sub) loaded.load(b, k, at, p);
#pragma unroll
        for (int i = 0; i < loaded.AHEAD; i++) {
            u32 row = k + i * at.subs, x[C];
            if (row >= at.end) break;
#pragma unroll
            for (int t = 0; t < C; t++) x[t] = loaded.of[i].bits(t);
            if (special)
#pragma unroll
                for (int t = 0; t < C; t++) x[t] = at.j + t < p.n && finite(x[t]) ? x[t] : 0;
            put<BITS>(rows, row, x, columns, at, p);
        }
    }
}

// join_and_convert is phase 1, or with C = 8 phase 2. The first rows of B are loaded while phase 0 runs.
template <int ELEM, int C> __device__ __forceinline__ void join_and_convert(const u32 *b, u32 *q, const Params &p) {
    Place at = place<C>(p);
    Rows<ELEM, C> loaded;
    loaded.load(b, at.begin + at.sub, at, p);
    u32 range[C], *rows = q + (size_t)(p.chunks + 1) * p.ldq;
    joined(range, q, at, p);
    if (at.j >= p.ldq) return;
    if constexpr (C == 8) convert<31>(loaded, b, rows, range, at, p);
    else if (p.bits == 15) convert<15>(loaded, b, rows, range, at, p);
    else if (p.bits == 47) convert<47>(loaded, b, rows, range, at, p);
    else convert<31>(loaded, b, rows, range, at, p);
}

// load1 returns the f32 bits of an element.
template <int ELEM> __device__ __forceinline__ u32 load1(const u32 *b, size_t i) {
    if (ELEM == F32) return __ldg(b + i);
    u32 h = __ldg((const unsigned short *)b + i);
    return __float_as_uint(widen_lo<ELEM>(h));
}

// to_fragments is phase 3: a warp has a tile of 32 rows and 8 columns. Lane 4g + t has, of column g, rows 4t to 4t + 3
// and 16 + 4t to 16 + 4t + 3.
template <int ELEM> __device__ __forceinline__ void to_fragments(const u32 *__restrict__ b, u32 *q, const Params &p) {
    __shared__ u32 found[WARPS][8];
    u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = 8 * blockIdx.y, j = first + lane / 4;
    u32 tile = blockIdx.x * WARPS + warp, tiles = (p.k + 63) / 64 * 2, k = 32 * tile + 4 * (lane % 4);
    u32 x[2][4];
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (u32 i = 0; i < 4; i++) {
            u32 row = k + 16 * h + i;
            x[h][i] = row < p.k && j < p.n ? load1<ELEM>(b, (size_t)row * p.ldb + j) : 0;
        }
    launches_before();
    launches_after();
    u32 r = 0;
#pragma unroll 4
    for (u32 c = threadIdx.x / 8; c < p.chunks; c += LOCAL / 8)
        r = Seen::join(r, q[(size_t)(c + 1) * p.ldq + first + lane % 8]);
    r = Seen::join(r, __shfl_xor_sync(ALL, r, 8));
    r = Seen::join(r, __shfl_xor_sync(ALL, r, 16));
    if (lane < 8) found[warp][lane] = r;
    __syncthreads();
    r = 0;
#pragma unroll
    for (int w = 0; w < WARPS; w++) r = Seen::join(r, found[w][lane / 4]);
    if (blockIdx.x == 0 && warp == 0 && lane % 4 == 0) q[j] = r;
    if (tile >= tiles) return;
    u32 places = (p.bits + 1) / 8;
    uint2 *to = (uint2 *)(q + (size_t)(p.chunks + 1) * p.ldq);
    to += ((size_t)blockIdx.y * tiles + tile) * places * 32 + lane;
    u32 lower[2][4], upper[2][4];
    if (p.bits == 47) {
        int l = unit(r, 47);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            u32 low[4], high[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                Digits d = digits47(x[h][i], l);
                low[i] = d.lo, high[i] = d.hi;
            }
            split(lower[h], low);
            split(upper[h], high);
        }
        to[128] = make_uint2(upper[0][0], upper[1][0]);
        to[160] = make_uint2(upper[0][1], upper[1][1]);
    } else {
        float scale, more;
        factors(r, p.bits, scale, more);
#pragma unroll
        for (int h = 0; h < 2; h++) {
#pragma unroll
            for (int i = 0; i < 4; i++) x[h][i] = digits(whole(x[h][i], scale, more), p.bits);
            split(lower[h], x[h]);
        }
    }
#pragma unroll
    for (int d = 0; d < 4; d++)
        if (d < places) to[d * 32] = make_uint2(lower[0][d], lower[1][d]);
}

// scan_columns is phase 4: phase 0 for few columns. A lane has one of eight columns.
template <int ELEM> __device__ __forceinline__ void scan_columns(const u32 *__restrict__ b, u32 *q, const Params &p) {
    __shared__ u32 found[WARPS][8];
    u32 lane = threadIdx.x % 32, j = 8 * blockIdx.y + lane % 8, begin = blockIdx.x * p.rows,
        end = min(begin + p.rows, p.k);
    launches_after();
    Seen seen;
    if (j < p.n)
#pragma unroll 4
        for (u32 k = begin + threadIdx.x / 8; k < end; k += LOCAL / 8) seen.see(load1<ELEM>(b, (size_t)k * p.ldb + j));
    u32 r = seen.range();
    r = Seen::join(r, __shfl_xor_sync(ALL, r, 8));
    r = Seen::join(r, __shfl_xor_sync(ALL, r, 16));
    if (lane < 8) found[threadIdx.x / 32][lane] = r;
    __syncthreads();
    launches_before();
    if (threadIdx.x >= 8) return;
#pragma unroll
    for (int w = 1; w < WARPS; w++) r = Seen::join(r, found[w][lane]);
    q[(size_t)(blockIdx.x + 1) * p.ldq + j] = r;
}

template <int ELEM> __device__ __forceinline__ void phase(const u32 *b, u32 *q, const Params &p) {
    if (p.phase == 1) join_and_convert<ELEM, 4>(b, q, p);
    else if (p.phase == 2) join_and_convert<ELEM, 8>(b, q, p);
    else if (p.phase == 3) to_fragments<ELEM>(b, q, p);
    else if (p.phase == 4) scan_columns<ELEM>(b, q, p);
    else if (p.phase == 6) scan_whole<ELEM>(b, q, p);
    else if (p.bits == 0) scan<SeenAll, ELEM>(b, q, p);
    else scan<Seen, ELEM>(b, q, p);
}

extern "C" __global__ void __launch_bounds__(LOCAL, 1024 / LOCAL) // 64 registers
    quantise(const u32 *__restrict__ b, u32 *q, const Params p) {
    if (p.phase == 5) clear(q, p);
    else if (p.elem == F32) phase<F32>(b, q, p);
    else if (p.elem == F16) phase<F16>(b, q, p);
    else phase<BF16>(b, q, p);
}
