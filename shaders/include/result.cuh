// Storing results: C = alpha·x + beta·C in any type, with an epilogue, and finite repair. P is a kernel's Params, which
// has rows, n, ldc, store, alpha and beta.

#pragma once
#include "epilogue.cuh"
#include "units.cuh"

// Special computes an output from its row's entries alone. It is used if a sum that padding may have touched is not
// finite: a structural zero must not touch B, and the class of the result (Inf, NaN) must not depend on the order of
// the sum.
struct Special {
    float sum = 0;
    u32 seen = 0; // 1: +Inf, 2: -Inf, 4: NaN, of products whose operands are not finite

    __device__ __forceinline__ void add(float x, float y) {
        float t = x * y;
        if ((__float_as_uint(x) & 0x7f800000) == 0x7f800000 || (__float_as_uint(y) & 0x7f800000) == 0x7f800000)
            seen |= t != t ? 4 : t > 0 ? 1 : 2;
        else sum += t;
    }
    __device__ __forceinline__ float result() const {
        if (seen & 4 || seen == 3) return __uint_as_float(0x7fffffff);
        return seen == 1 ? __uint_as_float(0x7f800000) : seen == 2 ? __uint_as_float(0xff800000) : sum;
    }
};

// mended replaces those of four neighbouring columns of a row that are not finite. recompute(row, col) returns an
// output computed from the entries alone.
template <class P, class F>
static __device__ __noinline__ float4 mended(const P &p, u32 row, u32 col, float4 y, F recompute) {
    float x[4] = {y.x, y.y, y.z, y.w};
    for (int i = 0; i < 4; i++)
        if ((__float_as_uint(x[i]) & 0x7f800000) == 0x7f800000 && row < p.rows && col + i < p.n)
            x[i] = recompute(row, col + i);
    return make_float4(x[0], x[1], x[2], x[3]);
}

// Dest is the destination of results: C, and the bias that an epilogue adds.
struct Dest {
    void *c;
    const float *bias;
};

// stored writes four neighbouring columns of a row to a C of any type; x is alpha times the sums. Columns from n on are
// not written.
template <class P> __device__ __forceinline__ void stored(Dest to, const P &p, u32 row, u32 col, float4 x) {
    if (row < p.rows) store_quad(to.c, to.bias, p.store, row, col, p.n, p.ldc, p.beta, x);
}

// Out stores sums to C. The common path is inline; the others are calls.
template <class P> struct Out {
    Dest to;
    const P &p;
    bool plain; // C is f32 and not read, there is no epilogue, and C's rows are aligned to 16 bytes
    __device__ __forceinline__ Out(Dest to, const P &p)
        : to(to), p(p), plain(p.store == F32 && p.beta == 0 && (p.ldc & 3) == 0) {}

    // store writes four neighbouring columns of a row from column col, a multiple of 4.
    template <class F> __device__ __forceinline__ void store(u32 row, u32 col, float4 x, F recompute) const {
        u32 top = max(max(__float_as_uint(x.x) & 0x7fffffff, __float_as_uint(x.y) & 0x7fffffff),
                      max(__float_as_uint(x.z) & 0x7fffffff, __float_as_uint(x.w) & 0x7fffffff));
        if (top >= 0x7f800000) x = mended(p, row, col, x, recompute);
        x = make_float4(p.alpha * x.x, p.alpha * x.y, p.alpha * x.z, p.alpha * x.w);
        if (!plain || col + 4 > p.n) stored(to, p, row, col, x);
        else if (row < p.rows) *(float4 *)((float *)to.c + (u64)row * p.ldc + col) = x;
    }
};

// store_tiles writes a warp's sums, DOWN tiles of 16 rows by ACROSS (an even number) tiles of 8 columns, in the layout
// of mma's accumulators: lane 4g + q has columns 2q and 2q + 1 of rows g and g + 8. Neighbouring lanes swap halves of
// two tiles, so that each writes four columns of one.
template <int DOWN, int ACROSS, class P, class F>
__device__ __forceinline__ void store_tiles(float (&acc)[DOWN][ACROSS][4], Dest to, const P &p, u32 row, u32 col,
                                            F recompute) {
    Out<P> out(to, p);
    u32 lane = threadIdx.x & 31, odd = lane & 1;
    row += lane >> 2;
    col += 8 * odd + 4 * (lane >> 1 & 1);
#pragma unroll
    for (int i = 0; i < DOWN; i++)
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int j = 0; j < ACROSS; j += 2) {
                float *mine = &acc[i][j][2 * h], *other = &acc[i][j + 1][2 * h];
                float got[2];
#pragma unroll
                for (int e = 0; e < 2; e++) got[e] = __shfl_xor_sync(0xffffffff, odd ? mine[e] : other[e], 1);
                float4 x = odd ? make_float4(got[0], got[1], other[0], other[1])
                               : make_float4(mine[0], mine[1], got[0], got[1]);
                out.store(row + 16 * i + 8 * h, col + 8 * j, x, recompute);
            }
}
