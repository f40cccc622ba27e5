// f64: alpha and beta, which are words behind a kernel's parameters (spec.ScalarBytes), elements of any type as f64,
// and the epilogue in f64. docs/bound.md says how activations are computed, and bounds their error.

#pragma once
#include "epilogue.cuh"
#define F64 3

// alpha_of and beta_of return the scalars of a kernel's Params.
template <class P> __device__ __forceinline__ double alpha_of(const P &p) {
    return __hiloint2double((int)p.alpha_high, (int)p.alpha_low);
}
template <class P> __device__ __forceinline__ double beta_of(const P &p) {
    return __hiloint2double((int)p.beta_high, (int)p.beta_low);
}

// widened returns element i of m, whose type is numbered as in half.cuh, and F64.
__device__ __forceinline__ double widened(const void *m, size_t i, unsigned type) {
    if (type == F64) return ((const double *)m)[i];
    if (type == F32) return ((const float *)m)[i];
    unsigned h = ((const unsigned short *)m)[i];
    return type == F16 ? widen_lo<F16>(h) : widen_lo<BF16>(h);
}

// narrowed writes x, rounded once, to element i of m. For 16 bits x is first cut to f32, with the last bit set if that
// is not exact. Rounding the result is the same as rounding x.
__device__ __forceinline__ void narrowed(void *m, size_t i, unsigned type, double x) {
    if (type == F64) {
        ((double *)m)[i] = x;
        return;
    }
    if (type == F32) {
        ((float *)m)[i] = __double2float_rn(x);
        return;
    }
    float f = __double2float_rz(x);
    if ((double)f != x && x == x) f = __uint_as_float(__float_as_uint(f) | 1);
    ((unsigned short *)m)[i] = (unsigned short)narrow(f, 0, type);
}

// activated64 returns the activation of this number (0 none, 1 ReLU, 2 GELU, 3 SiLU) of x.
static __device__ __noinline__ double activated64(double x, unsigned activation) {
    if (activation == 0) return x;
    // Above a limit, GELU and SiLU are 0 for negative x, and x for positive x; ReLU always is.
    double limit = activation == 1 ? 0 : activation == 2 ? 10 : 87;
    if (x != x || x >= limit) return x;
    if (x <= -limit) return 0;
    // x/(1 + exp(t)), with exp(t) = 2^n·exp(r), |r| ≤ ln(2)/2.
    double t = activation == 2 ? -x * (1.5957691216057308 + 0.07135481627260025 * (x * x)) : -x;
    double n = floor(t * 1.4426950408889634 + 0.5);
    double r = t - n * 0.693145751953125 - n * 1.4286068203094172e-06;
    const double c[] = {
        1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720,
        1.0 / 120,       1.0 / 24,       1.0 / 6,       0.5,          1.0,         1.0};
    double y = 1.0 / 6227020800;
#pragma unroll
    for (int i = 0; i < 13; i++) y = y * r + c[i];
    return x / (1 + y * __hiloint2double(((int)n + 1023) << 20, 0));
}

// epilogue64 returns the activation of x + bias for the output in this row and column.
__device__ __forceinline__ double epilogue64(double x, unsigned store, const double *bias, unsigned row, unsigned col) {
    unsigned kind = store >> 2 & 3;
    if (kind != 0) x += bias[(unsigned long long)(kind == 1 ? row : col) << (store >> 8 & 15)];
    return activated64(x, store >> 4 & 15);
}
