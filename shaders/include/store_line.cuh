// Storing sums to a C of either order (orders.cuh), for kernels whose threads have four neighbouring columns of a row.

#pragma once
#include "orders.cuh"
#include "result.cuh"

// store_line writes the epilogue of x + beta·C, for four neighbouring columns of a row from column col on, to a
// column-major C of any type. Columns from n on are not written. Lanes of a warp that have neighbouring rows write
// contiguous memory.
static __device__ __noinline__ void store_line(void *c, const float *bias, u32 store, u32 row, u32 col, u32 n, u32 ldc,
                                               float beta, float4 x) {
    u32 type = store_type(store);
    float y[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (col + i >= n) break;
        u64 at = (u64)(col + i) * ldc + row;
        float *f = (float *)c + at;
        u16 *h = (u16 *)c + at;
        if (beta != 0) y[i] += beta * (type == F32 ? *f : type == F16 ? widen_lo<F16>(*h) : widen_lo<BF16>(*h));
        if (has_epilogue(store)) y[i] = epilogue(y[i], store, bias, row, col + i);
        if (type == F32) *f = y[i];
        else *h = (u16)narrow(y[i], 0, type);
    }
}

// EitherOut is Out for a C of either order.
template <class P> struct EitherOut {
    Dest to;
    const P &p;

    template <class F> __device__ __forceinline__ void store(u32 row, u32 col, float4 x, F recompute) const {
        if (!by_columns_c(p.store)) return Out<P>(to, p).store(row, col, x, recompute);
        u32 top = max(max(__float_as_uint(x.x) & 0x7fffffff, __float_as_uint(x.y) & 0x7fffffff),
                      max(__float_as_uint(x.z) & 0x7fffffff, __float_as_uint(x.w) & 0x7fffffff));
        if (top >= 0x7f800000) x = mended(p, row, col, x, recompute);
        x = make_float4(p.alpha * x.x, p.alpha * x.y, p.alpha * x.z, p.alpha * x.w);
        if (row < p.rows) store_line(to.c, to.bias, p.store, row, col, p.n, p.ldc, p.beta, x);
    }
};
