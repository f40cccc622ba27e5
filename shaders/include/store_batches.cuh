// Storing tiles of sums to a C that is read (beta), or of any type, or with an epilogue. A thread handles several
// elements at a time: it loads C's elements together, and computes four activations at once. The results are those of
// store_tiles, bit for bit.

#pragma once
#include "finite.cuh"
#include "result.cuh"

// quotient returns x / y for 1 ≤ y < 2^124 and 2^-80 ≤ |x| < 2^7, or x = +0. It takes the steps of the compiler's
// division, without the test for other operands.
__device__ __forceinline__ float quotient(float x, float y) {
    float r;
    asm("rcp.approx.f32 %0, %1;" : "=f"(r) : "f"(y));
    r = fmaf(r, fmaf(-y, r, 1.0f), r);
    float q = x * r;
    q = fmaf(r, fmaf(-y, q, x), q);
    return fmaf(r, fmaf(-y, q, x), q);
}

// activated_rarely is activated as a call, which is not worth inlining.
static __device__ __noinline__ float activated_rarely(float x, u32 activation) { return activated(x, activation); }

// smooth applies the activation, GELU or SiLU, to four x.
__device__ __forceinline__ void smooth(float (&x)[4], u32 activation) {
    u32 limit = activation == 2 ? 0x41200000u : 0x42ae0000u; // as in activated
    float y[4];
    bool slow[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float t = activation == 2 ? -x[i] * (1.59576912f + 0.0713548163f * (x[i] * x[i])) : -x[i];
        float whole = __fadd_rd(t * 1.44269504f + 0.5f, 12582912.0f),
              n = whole - 12582912.0f; // n = floor(…), which whole's low bits hold too
        float r = t - n * 0.693359375f + n * 0.000212194440f, e = 1.0f / 5040;
        e = e * r + 1.0f / 720;
        e = e * r + 1.0f / 120;
        e = e * r + 1.0f / 24;
        e = e * r + 1.0f / 6;
        e = e * r + 0.5f;
        e = e * r + 1.0f;
        e = e * r + 1.0f;
        e = 1.0f + e * __uint_as_float((__float_as_uint(whole) << 23) + 0x3f800000u);
        u32 bits = __float_as_uint(x[i]), size = bits & 0x7fffffffu;
        y[i] = quotient(x[i], e);
        if (size >= limit) y[i] = bits >> 31 && size <= 0x7f800000u ? 0.0f : x[i];
        slow[i] = size < limit && (size < 0x17800000u && bits != 0 || !(e < 0x1p124f));
    }
    if (slow[0] || slow[1] || slow[2] || slow[3])
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (slow[i]) y[i] = activated_rarely(x[i], activation);
#pragma unroll
    for (int i = 0; i < 4; i++) x[i] = y[i];
}

// Quads is two pairs of tiles (16 rows by 8 columns) of sums, in the layout of mma's accumulators: a thread has four
// quads of neighbouring columns.
struct Quads {
    float x[2][2][4];
};

// store_quads stores the epilogue of alpha·sums + beta·C. The pairs begin at row `row` and columns col and col +
// stride. If the second begins at column end or after it, it is not stored. It is a call, because the code of all sums
// of a tile would take longer to fetch than to run.
template <class P, class F>
static __device__ __noinline__ void store_quads(Quads s, Dest to, const P *p, u32 rows, u32 n, u32 ldc, u32 store,
                                                float alpha, float beta, u32 row, u32 col, u32 stride, u32 end,
                                                const F *recompute) {
    u32 lane = threadIdx.x & 31, odd = lane & 1, type = store_type(store), kind = store >> 2 & 3,
        activation = store >> 4 & 15, shift = store >> 8 & 15;
    bool second = col + stride < end,
         inside = row + 16 <= rows && col + (second ? stride : 0) + 16 <= n && (ldc & 3) == 0;
    row += lane >> 2;
    col += 8 * odd + 4 * (lane >> 1 & 1);
    u32 bytes = type == F32 ? 4 : 2;
    char *first = (char *)to.c + ((u64)row * ldc + col) * bytes;
    auto at = [&](int q, int h) { return first + (u64)ldc * (8 * h * bytes) + stride * (q * bytes); };
    float before[2][2][4] = {};
    if (beta != 0 && inside)
#pragma unroll
        for (int q = 0; q < 2; q++)
#pragma unroll
            for (int h = 0; h < 2; h++) {
                float(&y)[4] = before[q][h];
                if (q == 1 && !second) continue;
                if (type == F32) {
                    float4 w = *(const float4 *)at(q, h);
                    y[0] = w.x, y[1] = w.y, y[2] = w.z, y[3] = w.w;
                } else {
                    uint2 w = *(const uint2 *)at(q, h);
                    if (type == F16)
                        y[0] = widen_lo<F16>(w.x), y[1] = widen_hi<F16>(w.x), y[2] = widen_lo<F16>(w.y),
                        y[3] = widen_hi<F16>(w.y);
                    else
                        y[0] = widen_lo<BF16>(w.x), y[1] = widen_hi<BF16>(w.x), y[2] = widen_lo<BF16>(w.y),
                        y[3] = widen_hi<BF16>(w.y);
                }
            }
#pragma unroll
    for (int q = 0; q < 2; q++) {
        if (q == 1 && !second) continue;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float *mine = &s.x[q][0][2 * h], *other = &s.x[q][1][2 * h], got[2], y[4];
            u32 top = 0, r = row + 8 * h, c = col + stride * q;
#pragma unroll
            for (int e = 0; e < 2; e++) got[e] = __shfl_xor_sync(0xffffffff, odd ? mine[e] : other[e], 1);
#pragma unroll
            for (int e = 0; e < 2; e++) y[e] = odd ? got[e] : mine[e], y[2 + e] = odd ? other[e] : got[e];
#pragma unroll
            for (int e = 0; e < 4; e++) top = max(top, __float_as_uint(y[e]) & 0x7fffffff);
            if (top >= 0x7f800000) {
                float4 m = mended(*p, r, c, make_float4(y[0], y[1], y[2], y[3]), *recompute);
                y[0] = m.x, y[1] = m.y, y[2] = m.z, y[3] = m.w;
            }
#pragma unroll
            for (int e = 0; e < 4; e++) y[e] = __fmul_rn(alpha, y[e]); // not fused with the addition
            if (!inside) {
                stored(to, *p, r, c, make_float4(y[0], y[1], y[2], y[3]));
                continue;
            }
            if (beta != 0)
#pragma unroll
                for (int e = 0; e < 4; e++) y[e] = fmaf(beta, before[q][h][e], y[e]);
            if (kind != 0)
#pragma unroll
                for (int e = 0; e < 4; e++) y[e] += to.bias[(u64)(kind == 1 ? r : c + e) << shift];
            if (activation == 1)
#pragma unroll
                for (int e = 0; e < 4; e++) y[e] = activated(y[e], 1);
            else if (activation > 1) smooth(y, activation);
            if (type == F32) *(float4 *)at(q, h) = make_float4(y[0], y[1], y[2], y[3]);
            else *(uint2 *)at(q, h) = make_uint2(narrow(y[0], y[1], type), narrow(y[2], y[3], type));
        }
    }
}

// store_in_batches is store_tiles for pairs of tiles that are STRIDE columns apart, in few instructions. Those from
// column `end` on, which is not past C, are not stored.
template <int STRIDE, int ACROSS, class P, class F>
__device__ __forceinline__ void store_in_batches(float (&acc)[1][ACROSS][4], Dest to, const P &p, u32 row, u32 col,
                                                 u32 end, F recompute) {
#pragma unroll
    for (int q = 0; q < ACROSS / 2; q += 2) {
        u32 from = col + STRIDE * q;
        Quads two = {};
#pragma unroll
        for (int i = 0; i < 2 * (q + 1 < ACROSS / 2 ? 2 : 1); i++)
#pragma unroll
            for (int e = 0; e < 4; e++) two.x[i / 2][i % 2][e] = acc[0][2 * q + i][e];
        if (from < end)
            store_quads(two, to, &p, p.rows, p.n, p.ldc, p.store, p.alpha, p.beta, row, from, STRIDE,
                        q + 1 < ACROSS / 2 ? end : from, &recompute);
    }
}

// store_sums is store_in_batches in a kernel's form for a C that is read, or for an epilogue. In others it stores sums
// of the common types inline.
template <int STRIDE, int ACROSS, class P, class F>
__device__ __forceinline__ void store_sums(float (&acc)[1][ACROSS][4], Dest to, const P &p, u32 row, u32 col, u32 end,
                                           F recompute) {
#ifdef EPILOGUE
    store_in_batches<STRIDE>(acc, to, p, row, col, end, recompute);
#else
#pragma unroll
    for (int q = 0; q < ACROSS / 2; q++)
        if (col + STRIDE * q < end)
            store_tiles(*(float(*)[1][2][4]) & acc[0][2 * q], to, p, row, col + STRIDE * q, recompute);
#endif
}

// store_halves stores a warp's 16 rows of sums times alpha as elements of 16-bit type T, in the layout of store_tiles:
// a lane writes four columns of a row at a time. (Eight at a time, after one more exchange, took as long.)
template <int T, int STRIDE, int ACROSS>
__device__ __forceinline__ void store_halves(const float (&acc)[1][ACROSS][4], u16 *at, u32 ldc, float alpha) {
    u32 odd = threadIdx.x & 1;
#pragma unroll
    for (int q = 0; q < ACROSS / 2; q++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const float *x = &acc[0][2 * q][2 * h], *y = &acc[0][2 * q + 1][2 * h];
            u32 lo = narrow(__fmul_rn(alpha, x[0]), __fmul_rn(alpha, x[1]), T),
                hi = narrow(__fmul_rn(alpha, y[0]), __fmul_rn(alpha, y[1]), T),
                got = __shfl_xor_sync(0xffffffff, odd ? lo : hi, 1);
            *(uint2 *)(at + h * 8 * (u64)ldc + STRIDE * q) = odd ? make_uint2(got, hi) : make_uint2(lo, got);
        }
}

// store_plain is store_sums for the common case: all of the warp's 16 rows and all columns before `end` are in C, C is
// not read, what a lane writes at a time is aligned, there is no epilogue, and all sums are finite. Else it stores
// nothing and returns false. It has few instructions, because instructions that run once must be fetched.
template <int STRIDE, int ACROSS, class P>
__device__ __forceinline__ bool store_plain(const float (&acc)[1][ACROSS][4], Dest to, const P &p, u32 row, u32 col,
                                            u32 end) {
    if (p.store > 3 || p.beta != 0 || (p.ldc & 3) != 0 || row + 16 > p.rows ||
        col + STRIDE * (ACROSS / 2 - 1) + 16 > end)
        return false;
    if (!all_finite(acc[0])) return false;
    u32 lane = threadIdx.x & 31, odd = lane & 1;
    u64 first = (u64)(row + (lane >> 2)) * p.ldc + col + 8 * odd + 4 * (lane >> 1 & 1);
    if (p.store != F32) {
        if (p.store == F16) store_halves<F16, STRIDE>(acc, (u16 *)to.c + first, p.ldc, p.alpha);
        else store_halves<BF16, STRIDE>(acc, (u16 *)to.c + first, p.ldc, p.alpha);
        return true;
    }
    float *at = (float *)to.c + first;
#pragma unroll
    for (int q = 0; q < ACROSS / 2; q++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const float *mine = &acc[0][2 * q][2 * h], *other = &acc[0][2 * q + 1][2 * h];
            float got[2], x[4];
#pragma unroll
            for (int e = 0; e < 2; e++) got[e] = __shfl_xor_sync(0xffffffff, odd ? mine[e] : other[e], 1);
#pragma unroll
            for (int e = 0; e < 2; e++)
                x[e] = p.alpha * (odd ? got[e] : mine[e]), x[2 + e] = p.alpha * (odd ? other[e] : got[e]);
            *(float4 *)(at + h * 8 * (u64)p.ldc + STRIDE * q) = make_float4(x[0], x[1], x[2], x[3]);
        }
    return true;
}

// Eight is two tiles (16 rows by 8 columns) of sums, in the layout of mma's accumulators: a thread has eight sums.
struct Eight {
    float x[2][4];
};

// store_across is store_quads for a transposed C: a row of sums is a column of C. The sums have `rows` rows and n
// columns, and C's rows are ldc apart.
template <class P, class F>
static __device__ __noinline__ void store_across(Eight s, Dest to, const P *p, u32 rows, u32 n, u32 ldc, u32 store,
                                                 float alpha, float beta, u32 row, u32 col, const F *recompute) {
    u32 lane = threadIdx.x & 31, type = store_type(store), kind = store >> 2 & 3, activation = store >> 4 & 15,
        shift = store >> 8 & 15;
    u32 bytes = type == F32 ? 4 : 2;
    row += lane >> 2;
    col += 2 * (lane & 3);
    char *first = (char *)to.c + ((u64)col * ldc + row) * bytes;
    auto at = [&](int j, int e) { return first + ((u64)ldc * (8 * j + e % 2) + e / 2 * 8) * bytes; };
    auto inside = [&](int j, int e) { return row + e / 2 * 8 < rows && col + 8 * j + e % 2 < n; };
    float before[2][4];
    if (beta != 0)
#pragma unroll
        for (int j = 0; j < 2; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                before[j][e] = 0;
                if (!inside(j, e)) continue;
                if (type == F32) before[j][e] = *(const float *)at(j, e);
                else
                    before[j][e] =
                        type == F16 ? widen_lo<F16>(*(const u16 *)at(j, e)) : widen_lo<BF16>(*(const u16 *)at(j, e));
            }
#pragma unroll
    for (int j = 0; j < 2; j++) {
        float(&y)[4] = s.x[j];
#pragma unroll
        for (int e = 0; e < 4; e++) {
            if ((__float_as_uint(y[e]) & 0x7f800000) == 0x7f800000 && inside(j, e))
                y[e] = (*recompute)(row + e / 2 * 8, col + 8 * j + e % 2);
            y[e] = __fmul_rn(alpha, y[e]); // not fused with the addition
            if (beta != 0) y[e] = fmaf(beta, before[j][e], y[e]);
            if (has_epilogue(store) && kind != 0 && inside(j, e))
                y[e] += to.bias[(u64)(kind == 1 ? row + e / 2 * 8 : col + 8 * j + e % 2) << shift];
        }
        if (has_epilogue(store)) {
            if (activation == 1)
#pragma unroll
                for (int e = 0; e < 4; e++) y[e] = activated(y[e], 1);
            else if (activation > 1) smooth(y, activation);
        }
#pragma unroll
        for (int e = 0; e < 4; e++)
            if (inside(j, e)) {
                if (type == F32) *(float *)at(j, e) = y[e];
                else *(u16 *)at(j, e) = (u16)narrow(y[e], y[e], type);
            }
    }
}

// store_transposed_plain is store_transposed for the common case: all sums are finite and in C, which is f32 and not
// read, and there is no epilogue. Else it stores nothing and returns false.
template <int ACROSS, class P>
__device__ __forceinline__ bool store_transposed_plain(const float (&acc)[ACROSS][4], Dest to, const P &p, u32 row,
                                                       u32 col) {
    if (p.store != F32 || p.beta != 0 || row + 16 > p.rows || col + 8 * ACROSS > p.n) return false;
    if (!all_finite(acc)) return false;
    u32 lane = threadIdx.x & 31;
    float *c = (float *)to.c + (u64)(col + 2 * (lane & 3)) * p.ldc + row + (lane >> 2);
#pragma unroll
    for (int j = 0; j < ACROSS; j++, c += (u64)8 * p.ldc)
#pragma unroll
        for (int e = 0; e < 4; e++) c[(u64)p.ldc * (e % 2) + e / 2 * 8] = __fmul_rn(p.alpha, acc[j][e]);
    return true;
}

// store_transposed stores a warp's 16 rows of sums, which are columns of C.
template <int ACROSS, class P, class F>
__device__ __forceinline__ void store_transposed(const float (&acc)[ACROSS][4], Dest to, const P &p, u32 row, u32 col,
                                                 F recompute) {
    if (store_transposed_plain(acc, to, p, row, col)) return;
#pragma unroll
    for (int j = 0; j < ACROSS; j += 2) {
        Eight two = {};
#pragma unroll
        for (int i = 0; i < 2 && j + i < ACROSS; i++)
#pragma unroll
            for (int e = 0; e < 4; e++) two.x[i][e] = acc[j + i][e];
        u32 end = min(p.n, col + 8 * ACROSS);
        if (row < p.rows && col + 8 * j < end)
            store_across(two, to, &p, p.rows, end, p.ldc, p.store, p.alpha, p.beta, row, col + 8 * j, &recompute);
    }
}

// fetch_before prefetches HIGH rows of BROAD columns of C into L2. A whole warp calls it.
template <int HIGH, int BROAD, class P>
__device__ __forceinline__ void fetch_before(Dest to, const P &p, u32 row, u32 col) {
#ifdef EPILOGUE
    if (p.beta == 0) return;
    constexpr u32 LINE = 32; // elements, of 128 bytes at most
    u32 bytes = store_type(p.store) == F32 ? 4 : 2;
#pragma unroll 1
    for (u32 i = threadIdx.x & 31; i < HIGH * ((BROAD + LINE - 1) / LINE); i += 32) {
        u32 r = row + i % HIGH, c = col + i / HIGH * LINE;
        if (r < p.rows && c < p.n)
            asm volatile("prefetch.global.L2 [%0];" ::"l"((const char *)to.c + ((u64)r * p.ldc + c) * bytes));
    }
#endif
}
