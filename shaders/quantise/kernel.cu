// Computes: B (cols × n) in RFX-p's fixed point, q (quantise.go). Phases 0 and 4 find ranges of parts of columns,
// phases 1 to 3 join them and quantise: to integers, to digits, to digits in the order of fragments.
// Tile: a CTA has a tile of rows and columns of B.
// Data movement: straight through registers; ranges of a tile meet in shared memory.
// Bound by: memory bandwidth.
// Constants: LOCAL, threads of a CTA; OVERLAP (overlap.cuh).

#include "columns.cuh"

// load returns the f32 bits of row k's elements j and j+1, zeros for those past the last column. j is even.
__device__ __forceinline__ uint2 load(const u32 *b, u32 k, u32 j, const Params &p) {
    size_t i = (size_t)k * p.ldb + j;
    uint2 x;
    if (p.elem == F32) {
        x = *(const uint2 *)(b + i);
    } else {
        u32 w = b[i / 2];
        x = p.elem == F16 ? make_uint2(__float_as_uint(widen_lo<F16>(w)), __float_as_uint(widen_hi<F16>(w)))
                          : make_uint2(w << 16, w & 0xffff0000u);
    }
    return make_uint2(j < p.n ? x.x : 0, j + 1 < p.n ? x.y : 0);
}

__device__ __forceinline__ uint2 join(uint2 r, uint2 s) { return make_uint2(join(r.x, s.x), join(r.y, s.y)); }

// store writes elements j and j+1 of a row.
__device__ __forceinline__ void store(u32 *row, u32 j, uint2 x, int l0, int l1, const Params &p) {
    long long a = quantise(x.x, l0), b = quantise(x.y, l1);
    if (p.bits == 15) {
        row[j / 2] = ((u32)a & 0xffffu) | (u32)b << 16;
    } else if (p.bits != 47) {
        *(uint2 *)(row + j) = make_uint2((u32)a, (u32)b);
    } else { // two balanced digits of 24 bits
        int lo_a = (int)((u32)a << 8) >> 8, lo_b = (int)((u32)b << 8) >> 8;
        *(uint2 *)(row + j) = make_uint2(lo_a, lo_b);
        *(uint2 *)(row + p.ldq + j) = make_uint2((u32)((a - lo_a) >> 24), (u32)((b - lo_b) >> 24));
    }
}

// split gathers four columns' digits by place.
__device__ __forceinline__ void split(u32 (&place)[4], const u32 *x) {
    u32 a = __byte_perm(x[0], x[1], 0x5140), b = __byte_perm(x[2], x[3], 0x5140);
    place[0] = __byte_perm(a, b, 0x5410), place[1] = __byte_perm(a, b, 0x7632);
    a = __byte_perm(x[0], x[1], 0x7362), b = __byte_perm(x[2], x[3], 0x7362);
    place[2] = __byte_perm(a, b, 0x5410), place[3] = __byte_perm(a, b, 0x7632);
}

// scan is phase 0.
template <int ELEM> __device__ __forceinline__ void scan(const u32 *__restrict__ b, u32 *q, const Params &p) {
    Place at = place(p);
    u32 r[8];
    find<ELEM>(r, b, at, p);
    launches_before();
    launches_after();
    if (at.j < p.ldq && at.sub == 0) write8(q + (size_t)(blockIdx.x + 1) * p.ldq + at.j, r);
}

// to_digits is phase 2.
template <int ELEM> __device__ __forceinline__ void to_digits(const u32 *__restrict__ b, u32 *q, const Params &p) {
    Place at = place(p);
    bool inside = at.j < p.ldq;
    u32 r[8] = {};
    launches_before();
    launches_after();
#pragma unroll 4
    for (u32 c = at.sub; inside && c < p.chunks; c += at.subs) {
        const uint4 *v = (const uint4 *)(q + (size_t)(c + 1) * p.ldq + at.j);
        uint4 x = v[0], y = v[1];
        r[0] = join(r[0], x.x), r[1] = join(r[1], x.y), r[2] = join(r[2], x.z), r[3] = join(r[3], x.w);
        r[4] = join(r[4], y.x), r[5] = join(r[5], y.y), r[6] = join(r[6], y.z), r[7] = join(r[7], y.w);
    }
    join8(r, at.lane, p.across);
    if (!inside) return;
    if (at.sub == 0 && blockIdx.x == 0) write8(q + at.j, r);
    float scale[8], more[8];
#pragma unroll
    for (int t = 0; t < 8; t++) {
        factors(r[t], p.bits, scale[t], more[t]);
        if (at.j + t >= p.n) scale[t] = 0;
    }
    u32 places = (p.bits + 1) / 8, pitch = ((places * p.ldq + 31) & ~63u) + 32;
    char *rows = (char *)(q + (size_t)(p.chunks + 1) * p.ldq);
#pragma unroll 4
    for (u32 k = at.begin + at.sub; k < at.end; k += at.subs) {
        u32 x[8], lo[4], hi[4];
        load8<ELEM>(x, b, k, at.j, p.ldb);
#pragma unroll
        for (int t = 0; t < 8; t++) x[t] = digits(whole(x[t], scale[t], more[t]), p.bits);
        split(lo, x);
        split(hi, x + 4);
        char *row = rows + (size_t)k * pitch;
        *(uint4 *)(row + 2 * at.j) = make_uint4(lo[0], hi[0], lo[1], hi[1]);
        if (places == 3) *(uint2 *)(row + 2 * p.ldq + at.j) = make_uint2(lo[2], hi[2]);
        if (places == 4) *(uint4 *)(row + 2 * p.ldq + 2 * at.j) = make_uint4(lo[2], hi[2], lo[3], hi[3]);
    }
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
        r = join(r, q[(size_t)(c + 1) * p.ldq + first + lane % 8]);
    r = join(r, __shfl_xor_sync(ALL, r, 8));
    r = join(r, __shfl_xor_sync(ALL, r, 16));
    if (lane < 8) found[warp][lane] = r;
    __syncthreads();
    r = 0;
#pragma unroll
    for (int w = 0; w < WARPS; w++) r = join(r, found[w][lane / 4]);
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
    Seen seen = {0, 0, 0xffffffffu};
    if (j < p.n)
#pragma unroll 4
        for (u32 k = begin + threadIdx.x / 8; k < end; k += LOCAL / 8) see(seen, load1<ELEM>(b, (size_t)k * p.ldb + j));
    u32 r = range_of(seen);
    r = join(r, __shfl_xor_sync(ALL, r, 8));
    r = join(r, __shfl_xor_sync(ALL, r, 16));
    if (lane < 8) found[threadIdx.x / 32][lane] = r;
    __syncthreads();
    launches_before();
    launches_after();
    if (threadIdx.x >= 8) return;
#pragma unroll
    for (int w = 1; w < WARPS; w++) r = join(r, found[w][lane]);
    q[(size_t)(blockIdx.x + 1) * p.ldq + j] = r;
}

template <int ELEM> __device__ __forceinline__ void by_eights(const u32 *b, u32 *q, const Params &p) {
    if (p.phase == 0) scan<ELEM>(b, q, p);
    else if (p.phase == 2) to_digits<ELEM>(b, q, p);
    else if (p.phase == 3) to_fragments<ELEM>(b, q, p);
    else scan_columns<ELEM>(b, q, p);
}

extern "C" __global__ void __launch_bounds__(LOCAL) quantise(const u32 *__restrict__ b, u32 *q, const Params p) {
    __shared__ uint2 found[WARPS][32];
    if (p.phase != 1) {
        if (p.elem == F32) by_eights<F32>(b, q, p);
        else if (p.elem == F16) by_eights<F16>(b, q, p);
        else by_eights<BF16>(b, q, p);
        return;
    }
    u32 shift = __ffs(p.across) - 1;
    u32 lane = threadIdx.x & (p.across - 1), sub = threadIdx.x >> shift, subs = LOCAL >> shift;
    u32 j = 2 * (blockIdx.y * p.across + lane); // the first of the lane's columns
    u32 begin = blockIdx.x * p.rows, end = min(begin + p.rows, p.k);
    bool inside = j < p.ldq;
    launches_before();
    launches_after();
    uint2 r = make_uint2(0, 0);
    if (inside) {
#pragma unroll 8
        for (u32 c = sub; c < p.chunks; c += subs)
            r = join(r, *(const uint2 *)(q + (size_t)(c + 1) * p.ldq + j));
    }
    // Join what the lanes of these two columns found, for all of them.
    for (u32 d = p.across; d < 32; d *= 2)
        r = join(r, make_uint2(__shfl_xor_sync(ALL, r.x, d), __shfl_xor_sync(ALL, r.y, d)));
    if (threadIdx.x % 32 < p.across) found[threadIdx.x / 32][lane] = r;
    __syncthreads();
#pragma unroll
    for (int w = 0; w < WARPS; w++) r = join(r, found[w][lane]);
    if (!inside) return;
    if (sub == 0 && blockIdx.x == 0) *(uint2 *)(q + j) = r;
    int l0 = unit(r.x, p.bits), l1 = unit(r.y, p.bits);
    u32 *rows = q + (size_t)(p.chunks + 1) * p.ldq;
    u32 words = p.bits == 15 ? p.ldq / 2 : p.bits == 47 ? 2 * p.ldq : p.ldq; // of a row
#pragma unroll 8
    for (u32 k = begin + sub; k < end; k += subs) store(rows + (size_t)k * words, j, load(b, k, j, p), l0, l1, p);
}
