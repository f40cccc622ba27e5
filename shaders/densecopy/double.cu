// Computes: dst = alpha·src + beta·dst with an epilogue, dense matrices, src or dst of f64.
// Tile: as kernel.cu (densecopy.go).
// Data movement: straight through registers; a transposition goes through shared memory.
// Bound by: memory bandwidth.

#define DOUBLE
#include "params.h"
#include "../include/f64.cuh"

typedef unsigned int u32;

// scale returns what becomes of x, which goes to element e of line l, i of dst: x itself where that is all.
__device__ __forceinline__ double scale(double x, const void *dst, size_t i, const double *bias, u32 l, u32 e,
                                        const Params &p) {
    double alpha = alpha_of(p), beta = beta_of(p);
    if (beta != 0) x = fma(alpha, x, beta * widened(dst, i, store_type(p.store)));
    else if (alpha != 1) x = alpha * x;
    return p.store > 3 ? epilogue64(x, p.store, bias, l, e) : x;
}

// Where src is transposed, its elements of the workgroup's tile are in shared memory: element e of line l is tile[e -
// e0][l - l0].
extern "C" __global__ void __launch_bounds__(128)
    densecopy(const void *__restrict__ src, const double *__restrict__ bias, void *dst, const Params p) {
    __shared__ double tile[64][33];
    u32 type = store_type(p.store);
    u32 number = blockIdx.x + blockIdx.z * p.width;
    u32 per = type == F64 || type == F32 ? 1 : 2; // elements that an invocation takes at once: a word of 16-bit ones
    u32 l0 = number / p.tiles * (1024 >> p.shift), w0 = number % p.tiles << p.shift, e0 = w0 * per;
    if (p.turned) {
        u32 l = l0 + threadIdx.x;
        for (u32 t = threadIdx.y; t < 32 * per; t += 4)
            if (l < p.lines && e0 + t < p.len)
                tile[t][threadIdx.x] = widened(src, p.first + (size_t)(e0 + t) * p.lds + l, p.stype);
        __syncthreads();
    }
    for (u32 t = threadIdx.y * 32 + threadIdx.x; t < 1024; t += 128) {
        u32 l = l0 + (t >> p.shift), w = w0 + (t & ((1 << p.shift) - 1));
        if (l >= p.lines) return;
        for (u32 e = w * per; e < min(w * per + per, p.len); e++) {
            double x = p.turned ? tile[e - e0][l - l0] : widened(src, p.first + (size_t)l * p.lds + e, p.stype);
            size_t i = (size_t)l * p.ldd + e;
            narrowed(dst, i, type, scale(x, dst, i, bias, l, e, p));
        }
    }
}
