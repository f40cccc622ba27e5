// Computes: the ranges of parts of columns of B (cols × n), q (quantise.go): phase 0 on compute capability 9.0, with fewer
// ranges to join in the next phase.
// Tile: a CTA has a tile of rows and columns of B, as phase 0 of kernel.cu. The CTAs of a cluster have TOGETHER parts of
// the same columns and leave their ranges, joined, in the first of these parts; the others get empty ranges.
// Data movement: straight through registers; ranges meet in shared memory, and the cluster's in its first CTA.
// Bound by: memory bandwidth, and the latency of a launch where B is small.
// Constants: TOGETHER, CTAs of a cluster.

#define OVERLAP
#include "columns.cuh"
#include "../include/bulk.cuh"

__device__ __forceinline__ u32 range_at(u32 at, u32 block) {
    u32 x;
    asm volatile("{ .reg .b32 there; mapa.shared::cluster.u32 there, %1, %2; ld.shared::cluster.u32 %0, [there]; }"
                 : "=r"(x)
                 : "r"(at), "r"(block)
                 : "memory");
    return x;
}

extern "C" __global__ void __launch_bounds__(LOCAL) __cluster_dims__(TOGETHER, 1, 1)
    ranges(const u32 *__restrict__ b, u32 *q, const Params p) {
    __shared__ __align__(16) u32 mine[LOCAL];
    Place at = place(p);
    u32 r[8];
    if (p.elem == F32) find<F32>(r, b, at, p);
    else if (p.elem == F16) find<F16>(r, b, at, p);
    else find<BF16>(r, b, at, p);
    if (at.sub == 0) write8(mine + 8 * at.lane, r);
    cluster_sync();
    u32 rank = blockIdx.x % TOGETHER, col = 8 * p.across * blockIdx.y + threadIdx.x, x = 0;
    bool mine_too = threadIdx.x < 8 * p.across && col < p.ldq && blockIdx.x < p.chunks;
    if (rank == 0 && mine_too)
#pragma unroll
        for (u32 i = 0; i < TOGETHER; i++) x = join(x, range_at(shared_address(mine + threadIdx.x), i));
    launches_before();
    launches_after();
    if (mine_too) q[(size_t)(blockIdx.x + 1) * p.ldq + col] = x;
    cluster_sync(); // no CTA exits while another reads its ranges
}
