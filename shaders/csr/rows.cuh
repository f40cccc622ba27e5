// How kernel.cu and double.cu divide rows and row segments among lanes: see csr.go. Class S holds the sums of a lane:
// one row of C, and the lane's columns. S::Values is one vector load of values of A, S::Columns one of a row of B. With
// TEAMS a whole CTA, the team, computes a row segment; with MIDDLE a warp computes a row of middle length. With OVERLAP
// launches overlap: a lane reads a row's bounds and its first entries while the previous launch still runs.

#pragma once
#include "params.h"
#include "../include/overlap.cuh"
#include "../include/load.cuh"

#define ALL 0xffffffffu

#ifdef TEAMS
#define SEGMENT_WORDS 4 // of a segment: begin, end, row, and its row of the workspace (ALL: the segment is a whole row)
#define WARPS 4

// team computes one row segment with all warps of the CTA.
template <class S>
__device__ __forceinline__ void team(const uint4 *__restrict__ colidx, const typename S::Values *__restrict__ values,
                                     const uint4 *segment, const typename S::Columns *__restrict__ b,
                                     const typename S::Sum *__restrict__ bias, void *__restrict__ c,
                                     typename S::Sum *part, const Params &p) {
    __shared__ __align__(16) typename S::Sum others[WARPS - 1][S::SHARED];
    u32 shift = __ffs(p.across) - 1, group = threadIdx.x >> shift, lane = threadIdx.x & (p.across - 1),
        warp = threadIdx.x / 32;
    uint4 w = __ldg(segment);
    S sums(lane, p);
    sums.entries(w.x, sums.inside(p) ? w.y : w.x, group, 32 * WARPS >> shift, colidx, values, b, p);
    sums.join(p.across, 32);
    if (warp > 0 && threadIdx.x % 32 < p.across) sums.share(others[warp - 1], lane);
    __syncthreads();
    if (threadIdx.x >= p.across || !sums.inside(p)) return;
#pragma unroll
    for (int i = 0; i < WARPS - 1; i++) sums.add(others[i], lane);
    if (w.w != ALL) sums.store_partial(part + (size_t)w.w * p.ldp, p);
    else sums.store(c, bias, w.z, p);
}

#ifdef MIDDLE
// warp_row computes one row with a warp of the CTA: row block · WARPS + the warp's number of the list.
template <class S>
__device__ __forceinline__ void warp_row(const uint4 *__restrict__ colidx,
                                         const typename S::Values *__restrict__ values, const uint4 *list, u32 block,
                                         const typename S::Columns *__restrict__ b,
                                         const typename S::Sum *__restrict__ bias, void *__restrict__ c,
                                         const Params &p) {
    u32 shift = __ffs(p.across) - 1, group = threadIdx.x % 32 >> shift, lane = threadIdx.x & (p.across - 1),
        item = block * WARPS + threadIdx.x / 32;
    S sums(lane, p);
    bool busy = item < p.warps && sums.inside(p);
    uint4 w = busy ? __ldg(list + item) : make_uint4(0, 0, 0, 0);
    sums.entries(w.x, w.y, group, 32 >> shift, colidx, values, b, p);
    sums.join(p.across, 32);
    if (busy && group == 0) sums.store(c, bias, w.z, p);
}
#endif
#else
#define SEGMENT_WORDS 2 // of a segment: begin, end
#endif

// multiply computes a thread's share of an item: a row, a row segment, or in phase 1 the sum of a heavy row's partial
// sums. p.across × p.along lanes compute an item.
template <class S>
__device__ __forceinline__ void multiply(const u32 *__restrict__ rowptr, const uint4 *__restrict__ colidx,
                                         const typename S::Values *__restrict__ values, const u32 *__restrict__ heavy,
                                         const typename S::Columns *__restrict__ b,
                                         const typename S::Sum *__restrict__ bias, void *__restrict__ c,
                                         typename S::Sum *part, const Params &p) {
    u32 group = threadIdx.x >> (__ffs(p.across) - 1); // the lane group, of those in the CTA
    u32 lane = threadIdx.x & (p.across - 1);
    u32 block = blockIdx.x + blockIdx.z * p.width, before = p.segments; // segments come before the rows
#ifdef TEAMS
    if (p.phase == 0) {
        if (block < p.segments) {
            team<S>(colidx, values, (const uint4 *)heavy + block, b, bias, c, part, p);
            return;
        }
        block -= p.segments;
#ifdef MIDDLE
        u32 ctas = (p.warps + WARPS - 1) / WARPS;
        if (block < ctas) {
            warp_row<S>(colidx, values, (const uint4 *)heavy + p.segments, block, b, bias, c, p);
            return;
        }
        block -= ctas;
#endif
    }
    before = 0;
#endif
    u32 item = block * p.per + (group >> (__ffs(p.along) - 1));
    group &= p.along - 1; // the lane group, of those with the same item
    S sums(lane, p);
    bool busy = item < p.items && sums.inside(p);
    bool segment = p.phase == 0 && item < before;
    u32 row = 0;
    if (busy && p.phase == 1) {
        const u32 *r = heavy + SEGMENT_WORDS * ((size_t)p.segments + p.warps) + 3 * (size_t)item;
        row = r[0];
        launches_before();
        launches_after();
        sums.slots(r[1], r[2], group, part, p);
    } else if (busy) {
        row = item - before;
        u32 begin = segment ? heavy[2 * (size_t)item] : rowptr[row];
        u32 end = segment ? heavy[2 * (size_t)item + 1] : rowptr[row + 1];
        busy = segment || end - begin <= p.longest; // a heavy row is computed in segments
        sums.entries(begin, busy ? end : begin, group, p.along, colidx, values, b, p);
    } else {
        launches_before();
        launches_after();
    }
    sums.join(p.across, p.across * p.along);
    if (!busy || group != 0) return;
    if (segment) sums.store_partial(part + (size_t)item * p.ldp, p);
    else sums.store(c, bias, row, p);
}
