// What the CUDA kernels share: which work item a warp has, and the rare paths: sums that are not finite, C of any kind,
// and the partial sums of split panels. Elem is the element type, BLOCK the active columns of a block, WARPS those of a
// CTA. With OVERLAP launches overlap: a warp reads its work item and its first block's columns while the launch before
// still runs.

#pragma once
#include "../include/result.cuh"
#include "../include/overlap.cuh"
#include "slots.cuh"

#define ROWS 16 // of a panel
#define NO_SLOT 0xffffffffu
#define ALL 0xffffffffu

// step is p + n·size. (In C++ it takes twice as many instructions.)
__device__ __forceinline__ const void *step(const void *p, u32 n, u32 size) {
    const void *q;
    asm("mad.wide.u32 %0, %1, %2, %3;" : "=l"(q) : "r"(n), "r"(size), "l"(p));
    return q;
}

// Share is a warp's work: some blocks of a work item, alone or in a team of 2^shift warps of its CTA.
struct Share {
    uint4 part; // of the work list: panel, first block, last + 1, slot
    u32 shift, member;
    u32 skip, count; // of the part's blocks
    bool busy; // there is such a part

    // Of the workgroup's parts those for teams of four warps come first, then of two, then of one.
    __device__ __forceinline__ Share(const uint4 *work, const Params &p, u32 group, u32 warp) {
        u32 item = group, last = p.fours;
        shift = 2;
        if (group >= p.fours) {
            shift = 1, item = 2 * group - p.fours + warp / 2, last = p.fours + p.twos;
            if (item - warp / 2 >= last)
                shift = 0, item = 4 * group - 3 * p.fours - 2 * ((p.twos + 1) & ~1u) + p.twos + warp, last = p.items;
        }
        member = warp & ((1 << shift) - 1);
        busy = item < last;
        part = make_uint4(0, 0, 0, NO_SLOT);
        if (busy) part = __ldg(work + item);
        u32 all = part.z - part.y;
        skip = all * member >> shift, count = (all * (member + 1) >> shift) - skip;
    }
};

// What these functions need of the matrix and of B.
struct Matrix {
    const u32 *columns, *sizes, *packed;
    const Elem *b;
};

// An output from the entries of a panel's blocks alone: see Special.
static __device__ __noinline__ float entries(Matrix m, u32 ldb, u32 first, u32 last, u32 row, u32 col) {
    Special sum;
    for (u32 q = first; q < last; q++) {
        const u32 *block = m.packed + 4 * (u64)m.sizes[q];
        const Elem *values = (const Elem *)(block + BLOCK / 2);
        for (u32 i = 0; i < BLOCK / 2; i++) {
            u32 w = block[i];
            for (u32 c = 0; c < 4; c++) {
                u32 bit = row % 8 * 4 + c;
                if (i % 2 != row / 8 || !(w >> bit & 1)) continue;
                u32 k = m.columns[(u64)q * BLOCK + i / 2 * 4 + c];
                sum.add(to_float(values[__popc(w & ((1u << bit) - 1))]), to_float(m.b[(u64)k * ldb + col]));
            }
            values += __popc(w);
        }
    }
    return sum.result();
}

// row_in returns the row of C that is in a place; places is the work list.
__device__ __forceinline__ u32 row_in(const Params &p, const u32 *places, u32 place) {
    return p.places == 0 || place >= p.rows ? place : __ldg(places + p.places + place);
}

// finish writes four neighbouring sums of a panel's row to C, whatever they are and wherever.
static __device__ __noinline__ void finish(const Params *p, Dest to, Matrix m, const u32 *places, u32 panel, u32 first,
                                           u32 last, u32 row, u32 col, float4 v) {
    Out<Params>(to, *p).store(row_in(*p, places, panel * ROWS + row), col, v,
                              [&](u32, u32 j) { return entries(m, p->ldb, first, last, row, j); });
}

// add_slots is phase 1: a warp adds up one row of a split panel's slots.
static __device__ __noinline__ void add_slots(const Params *p, const uint4 *work, Matrix m, Dest to, const float *part,
                                              u32 number) {
    u32 row = number % ROWS, col = blockIdx.y * 128 + threadIdx.x % 32 * 4;
    if (number / ROWS >= p->items || col >= p->n) return;
    uint4 w = work[p->parts + number / ROWS];
    finish(p, to, m, (const u32 *)work, w.x, w.y, w.z, row, col, sum_slots<ROWS>(*p, w, part, row, col));
}
