// Computes: the softmax of each row of a sparse matrix's values, in place (softmax.go), in f32, or f64 with DOUBLE.
// Tile: p.lanes threads a row: eight, or all of the CTA.
// Data movement: the row is read three times, which the caches hold, and written twice. Maxima and sums meet in shared
// memory.
// Bound by: memory bandwidth.

#include "params.h"

typedef unsigned int u32;

#ifdef DOUBLE
typedef double Real;
#define LEAST -700.0
#else
typedef float Real;
#define LEAST -87.0f
#endif

// exp_of returns exp(t) for t <= 0, as 2^n·exp(r) with |r| ≤ ln(2)/2, and 0 below LEAST.
__device__ __forceinline__ Real exp_of(Real t) {
    if (t != t) return t;
    if (t <= LEAST) return 0;
#ifdef DOUBLE
    double n = floor(t * 1.4426950408889634 + 0.5);
    double r = t - n * 0.693145751953125 - n * 1.4286068203094172e-06;
    const double c[] = {
        1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720,
        1.0 / 120,       1.0 / 24,       1.0 / 6,       0.5,          1.0,         1.0};
    double y = 1.0 / 6227020800;
#pragma unroll
    for (int i = 0; i < 13; i++) y = y * r + c[i];
    return y * __hiloint2double(((int)n + 1023) << 20, 0);
#else
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
    return y * __uint_as_float((u32)((int)n + 127) << 23);
#endif
}

extern "C" __global__ void __launch_bounds__(128) softmax(const u32 *__restrict__ spans, Real *s, const Params p) {
    __shared__ Real meet[128];
    u32 me = threadIdx.x, lane = me & (p.lanes - 1);
    u32 item = (blockIdx.x + blockIdx.z * p.width) * (128 / p.lanes) + me / p.lanes, begin = 0, end = 0;
    if (item < p.items) {
        begin = spans[2 * (size_t)(p.first + item)];
        end = spans[2 * (size_t)(p.first + item) + 1];
    }
    Real most = -__longlong_as_double(0x7ff0000000000000ll), sum = 0;
    for (u32 i = begin + lane; i < end; i += p.lanes) most = s[i] > most ? s[i] : most;
    meet[me] = most;
    for (u32 d = p.lanes / 2; d > 0; d /= 2) {
        __syncthreads();
        if (lane < d) meet[me] = meet[me + d] > meet[me] ? meet[me + d] : meet[me];
    }
    __syncthreads();
    most = meet[me - lane];
    for (u32 i = begin + lane; i < end; i += p.lanes) {
        Real y = exp_of(s[i] - most);
        s[i] = y;
        sum += y;
    }
    __syncthreads();
    meet[me] = sum;
    for (u32 d = p.lanes / 2; d > 0; d /= 2) {
        __syncthreads();
        if (lane < d) meet[me] += meet[me + d];
    }
    __syncthreads();
    sum = meet[me - lane];
    for (u32 i = begin + lane; i < end; i += p.lanes) s[i] /= sum;
}
