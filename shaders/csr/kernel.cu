// Computes: C (M×N) = alpha·A·B + beta·C. A (M×K) is in CSR, B (K×N) is row-major. B has elements of f32, f16 or bf16,
// and sums are in f32.
// Tile: a row of A × a tile of columns of C, computed by p.across × p.along neighbouring lanes. p.across lanes next to
// each other form a lane group. Each of them has CHUNKS times VEC columns, 16 bytes of a row of B, p.across · VEC
// columns apart. The p.along lane groups take the row's entries in turn, four at a time, and a shuffle reduction adds
// their sums. A heavy row, which has many more entries than the average, is cut into segments, which leave partial sums
// in the workspace. A second launch, phase 1, adds them (csr.go). With TEAMS a whole CTA computes a segment, and a warp
// a row of middle length.
// Data movement: entries of A and rows of B go from global memory to registers. Each lane has loads of four rows of B
// in flight. Shared memory holds only the sums that the warps of a CTA exchange.
// Bound by: gathers of rows of B, from the L2 cache if B fits it, else from memory.
// Constants: ELEM (half.cuh), TEAMS and OVERLAP (rows.cuh), BLOCKS (CTAs of 128 threads on a multiprocessor), CHUNKS,
// AHEAD. Lanes of products with few warps are short of memory requests, so they load entries AHEAD; 8 CTAs leave 64
// registers a thread. Where warps are many, 12 CTAs hide more of the latency of gathers than that. With two CHUNKS a
// lane has twice the memory requests, and reads entries once for twice the columns.

#ifndef BLOCKS
#define BLOCKS 8
#define AHEAD
#endif
#include "sums.cuh"

extern "C" __global__ void __launch_bounds__(128, BLOCKS)
    csr(const u32 *__restrict__ rowptr, const uint4 *__restrict__ colidx, const Sums::Values *__restrict__ values,
        const u32 *__restrict__ heavy, const uint4 *__restrict__ b, const float *__restrict__ bias,
        void *__restrict__ c, float *part, const Params p) {
    multiply<Sums>(rowptr, colidx, values, heavy, b, bias, c, part, p);
}
