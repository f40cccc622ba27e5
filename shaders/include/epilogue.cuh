// The epilogue: a bias and an activation, applied to alpha·A·B + beta·C where it is stored. The parameter `store` says
// which (spec.Problem.StoreWord). docs/bound.md says how activations are computed, and bounds their error.

#pragma once
#include "half.cuh"

// store_type returns the type of C in the word `store`, as half.cuh numbers it. has_epilogue reports whether the word
// has anything else; forms of a kernel without EPILOGUE are not launched with such words (spec.WithEpilogues).
__device__ __forceinline__ unsigned store_type(unsigned store) { return store & 3; }
__device__ __forceinline__ bool has_epilogue(unsigned store) {
#ifdef EPILOGUE
    return store > 3;
#else
    return false;
#endif
}

// activated returns the activation of this number (0 none, 1 ReLU, 2 GELU, 3 SiLU) of x.
__device__ __forceinline__ float activated(float x, unsigned activation) {
    if (activation == 0) return x;
    // Above a limit, GELU and SiLU are 0 for negative x, and x for positive x; ReLU always is.
    unsigned bits = __float_as_uint(x), size = bits & 0x7fffffffu;
    unsigned limit = activation == 1 ? 0 : activation == 2 ? 0x41200000u : 0x42ae0000u; // 10, 87
    if (size >= limit) return bits >> 31 && size <= 0x7f800000u ? 0.0f : x;
    // x/(1 + exp(t)), with exp(t) = 2^n·exp(r), |r| ≤ ln(2)/2.
    float t = activation == 2 ? -x * (1.59576912f + 0.0713548163f * (x * x)) : -x;
    float n = floorf(t * 1.44269504f + 0.5f);
    float r = t - n * 0.693359375f + n * 0.000212194440f;
    float y = 1.0f / 5040;
    y = y * r + 1.0f / 720;
    y = y * r + 1.0f / 120;
    y = y * r + 1.0f / 24;
    y = y * r + 1.0f / 6;
    y = y * r + 0.5f;
    y = y * r + 1.0f;
    y = y * r + 1.0f;
    return x / (1.0f + y * __uint_as_float((unsigned)((int)n + 127) << 23));
}

// epilogue returns the activation of x + bias for the output in this row and column.
__device__ __forceinline__ float epilogue(float x, unsigned store, const float *bias, unsigned row, unsigned col) {
    unsigned kind = store >> 2 & 3;
    if (kind != 0) x += bias[(unsigned long long)(kind == 1 ? row : col) << (store >> 8 & 15)];
    return activated(x, store >> 4 & 15);
}

// store_quad writes the epilogue of x + beta·C, for four neighbouring columns of a row from column col on, to a C of
// any type. Columns from n on are not written. It is a call, so that the kernel needs no registers for it.
static __device__ __noinline__ void store_quad(void *c, const float *bias, unsigned store, unsigned row, unsigned col,
                                               unsigned n, unsigned ldc, float beta, float4 x) {
    unsigned long long at = (unsigned long long)row * ldc + col;
    unsigned type = store_type(store), count = col < n ? min(n - col, 4) : 0;
    float *f = (float *)c + at, y[4] = {x.x, x.y, x.z, x.w};
    unsigned short *h = (unsigned short *)c + at;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (i >= count) break;
        if (beta != 0) y[i] += beta * (type == F32 ? f[i] : type == F16 ? widen_lo<F16>(h[i]) : widen_lo<BF16>(h[i]));
        if (has_epilogue(store)) y[i] = epilogue(y[i], store, bias, row, col + i);
    }
    unsigned w[2] = {narrow(y[0], y[1], type), narrow(y[2], y[3], type)};
    if (type != F32 && count == 4 && (ldc & 3) == 0) {
        *(uint2 *)h = make_uint2(w[0], w[1]);
        return;
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (i >= count) break;
        if (type == F32) f[i] = y[i];
        else h[i] = (unsigned short)(w[i / 2] >> (16 * (i & 1)));
    }
}
