// Computes: rows of a dense matrix copied to or from the places that a list names (rowcopy.go).
// Tile: 16 bytes a thread.
// Data movement: straight through registers, neighbours side by side.
// Bound by: memory bandwidth.

#include "params.h"

typedef unsigned int u32;

extern "C" __global__ void __launch_bounds__(256)
    rowcopy(const u32 *__restrict__ index, const uint4 *__restrict__ src, uint4 *dst, const Params p) {
    u32 first = (blockIdx.x + blockIdx.z * p.width) * (256 * EACH) + threadIdx.x;
    uint4 x[EACH];
    size_t to[EACH];
#pragma unroll
    for (int k = 0; k < EACH; k++) { // all loads are under way at once
        u32 t = first + 256 * k;
        if (t >= p.items) continue;
        u32 row = t / p.quads, q = t - row * p.quads;
        size_t from = row;
        to[k] = row;
        if (p.place == 1) from = index[row];
        if (p.place == 2) to[k] = index[row];
        to[k] = (to[k] + p.dstrow) * p.quads + q;
        x[k] = src[(from + p.srcrow) * p.quads + q];
    }
#pragma unroll
    for (int k = 0; k < EACH; k++)
        if (first + 256 * k < p.items) dst[to[k]] = x[k];
}
