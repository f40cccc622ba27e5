// Computes: dst = alpha·src + beta·dst with an epilogue, dense matrices of any 16- or 32-bit type, order and stride.
// Tile: a CTA copies 1024 words of dst: (32 × 32) where src and dst differ in order, else as long a run as the lines
// allow (densecopy.go).
// Data movement: straight through registers; a transposition goes through shared memory, so that reads and writes are
// both coalesced.
// Bound by: memory bandwidth.

#include "params.h"
#include "../include/epilogue.cuh"
#include "../include/half.cuh"

typedef unsigned int u32;

// load returns element e of src's line l, as f32 bits.
__device__ __forceinline__ u32 load(const void *src, u32 l, u32 e, const Params &p) {
    size_t i = p.first + (size_t)l * p.lds + e;
    if (p.stype == F32) return ((const u32 *)src)[i];
    u32 h = ((const unsigned short *)src)[i];
    return __float_as_uint(p.stype == F16 ? widen_lo<F16>(h) : widen_lo<BF16>(h));
}

// scale returns what becomes of x and, where beta is not 0, y, which goes to element e of line l: x itself where that
// is all.
__device__ __forceinline__ float scale(u32 x, float y, const float *bias, u32 l, u32 e, const Params &p) {
    float f = __uint_as_float(x);
    if (p.beta != 0) f = fmaf(p.alpha, f, p.beta * y);
    else if (p.alpha != 1) f = p.alpha * f;
    return p.store > 3 ? epilogue(f, p.store, bias, l, e) : f;
}

// Tile is src's elements of the workgroup's tile where src is transposed: element e of line l is
// v[e - e0][l - l0].
struct Tile {
    u32 v[65][33];
};

// value returns what goes to element e of dst's line l, before scaling. l is in the tile.
__device__ __forceinline__ u32 value(const Tile &t, const void *src, u32 l, u32 e, u32 l0, int e0, const Params &p) {
    return p.turned ? t.v[(int)e - e0][l - l0] : load(src, l, e, p);
}

extern "C" __global__ void __launch_bounds__(128)
    densecopy(const void *__restrict__ src, const float *__restrict__ bias, u32 *dst, const Params p) {
    __shared__ Tile tile;
    u32 type = store_type(p.store);
    u32 number = blockIdx.x + blockIdx.z * p.width;
    u32 per = type == F32 ? 1 : 2; // elements of a word
    u32 l0 = number / p.tiles * (1024 >> p.shift), w0 = number % p.tiles << p.shift;
    int e0 = (int)(w0 * per) - (int)(per - 1); // a word of 16-bit elements may start at the one before
    if (p.turned) {
        u32 l = l0 + threadIdx.x;
        for (u32 t = threadIdx.y; t < 32 * per + per - 1; t += 4) {
            u32 e = e0 + (int)t;
            if (l < p.lines && e < p.len) tile.v[t][threadIdx.x] = load(src, e, l, p);
        }
        __syncthreads();
    }
#pragma unroll
    for (u32 t = threadIdx.y * 32 + threadIdx.x; t < 1024; t += 128) {
        u32 l = l0 + (t >> p.shift), w = w0 + (t & ((1 << p.shift) - 1));
        if (l >= p.lines) return;
        if (per == 1) {
            if (w >= p.len) continue;
            float *y = (float *)dst + (size_t)l * p.ldd + w;
            *y = scale(value(tile, src, l, w, l0, e0, p), p.beta != 0 ? *y : 0, bias, l, w, p);
            continue;
        }
        size_t first = (size_t)l * p.ldd;
        int e = (int)(2 * w) - (int)(first & 1); // the word's first element, in line l
        bool tight = p.ldd == p.len;
        if (e < 0 && tight && l > 0) continue; // the previous line's
        bool lo = e >= 0 && e < (int)p.len, hi = e + 1 < (int)p.len;
        bool wraps = e + 1 == (int)p.len && tight && l + 1 < p.lines; // its second starts the next line
        if (!lo && !hi) continue;
        u32 x0 = lo ? value(tile, src, l, e, l0, e0, p) : 0, x1 = 0;
        if (hi) x1 = value(tile, src, l, e + 1, l0, e0, p);
        if (wraps) x1 = p.turned ? load(src, 0, l + 1, p) : load(src, l + 1, 0, p);
        u32 *word = dst + first / 2 + w;
        bool both = lo && (hi || wraps);
        u32 old = p.beta != 0 || !both ? *word : 0;
        float y0 = type == F16 ? widen_lo<F16>(old) : widen_lo<BF16>(old),
              y1 = type == F16 ? widen_hi<F16>(old) : widen_hi<BF16>(old);
        if (lo) y0 = scale(x0, y0, bias, l, e, p);
        if (hi || wraps) y1 = scale(x1, y1, bias, wraps ? l + 1 : l, wraps ? 0 : e + 1, p);
        u32 y = narrow(y0, y1, type);
        if (!lo) y = (y & 0xffff0000u) | (old & 0xffffu);
        if (!hi && !wraps) y = (y & 0xffffu) | (old & 0xffff0000u);
        *word = y;
    }
}
