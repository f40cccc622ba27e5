// Computes: C (M×N) = alpha·A·B + beta·C in f32 as kernel.cu, for large matrices with many entries in long rows, and
// many short rows.
// Tile: p.across neighbouring lanes, 8 or 16 (4 in phase 1), form a lane group and have a tile of columns. A warp
// computes a listed row or row segment (csr.go); its lane groups take the entries in turn, four at a time. Then each
// lane group computes EACH short rows, one after the other. Phase 1 adds the partial sums of a row's segments: a CTA
// those of the first p.per rows, a warp those of each of the others.
// Data movement: segments are listed by their first columns, so that those that run at the same time need rows of B
// that others need too, and most of these come from the L2 cache. For short rows a lane group loads eight entries with
// eight lanes, a row ahead of the row that it multiplies.
// Bound by: gathers of rows of B from the L2 cache, and from memory for the short rows.
// Constants: BLOCKS (CTAs of 128 threads on a multiprocessor), OVERLAP (overlap.cuh).

#include "sums.cuh"

#define EACH 8
#define TOGETHER 8 // entries of a short row that a lane group loads at once
#define UNROLL 4   // rows of B that a lane loads at once

// Group says which lane group of its warp a thread belongs to.
struct Group {
    u32 shift, number, lane; // lanes are 1 << shift
    __device__ __forceinline__ Group(const Params &p)
        : shift(__ffs(p.across) - 1), number(threadIdx.x % 32 >> shift), lane(threadIdx.x & (p.across - 1)) {}
};

// Entries are the bounds of a row, and the entry of this lane among the first eight.
struct Entries {
    u32 begin, end, col;
    float value;
    bool mine; // the row is a short row of this lane group

    __device__ __forceinline__ void bounds(u32 low, u32 high, bool in, const Params &p) {
        mine = in && high - low <= p.longest;
        begin = low, end = mine ? high : low;
    }
    __device__ __forceinline__ void load(const u32 *__restrict__ colidx, const float *__restrict__ values, u32 lane) {
        bool in = lane < TOGETHER && begin + lane < end;
        col = in ? __ldg(colidx + begin + lane) : 0;
        value = in ? __ldg(values + begin + lane) : 0.0f;
    }
};

// short_rows computes EACH rows with each lane group of the warp, of `first` and the rows after it.
__device__ __forceinline__ void short_rows(const u32 *__restrict__ rowptr, const u32 *__restrict__ colidx,
                                           const float *__restrict__ values, const uint4 *__restrict__ b,
                                           const float *__restrict__ bias, void *__restrict__ c, u32 first,
                                           const Params &p) {
    Group g(p);
    u32 lane = threadIdx.x % 32, low = 0, high = 0, ld = p.ldb / VEC, groups = 32 >> g.shift;
    if (lane < EACH * groups && first + lane < p.items) {
        low = __ldg(rowptr + first + lane);
        high = __ldg(rowptr + first + lane + 1);
    }
    Entries now, next;
    now.bounds(__shfl_sync(ALL, low, g.number), __shfl_sync(ALL, high, g.number), first + g.number < p.items, p);
    now.load(colidx, values, g.lane);
    launches_before();
    launches_after();
    Sums sums(g.lane, p);
    bool inside = sums.inside(p);
    const uint4 *columns = b + sums.col / VEC;
    for (u32 row = 0; __any_sync(ALL, row < EACH);) {
        bool last = now.begin + TOGETHER >= now.end;
        u32 after = (row + 1) * groups + g.number, to = min(after, 31u), l = __shfl_sync(ALL, low, to),
            h = __shfl_sync(ALL, high, to);
        if (last) {
            next.bounds(l, h, row + 1 < EACH && first + after < p.items, p);
        } else {
            next = now;
            next.begin += TOGETHER;
        }
        next.load(colidx, values, g.lane);
#pragma unroll
        for (u32 i = 0; i < TOGETHER; i += UNROLL) {
            if (i > 0 && !__any_sync(ALL, now.begin + i < now.end)) break;
            uint4 q[UNROLL];
#pragma unroll
            for (u32 j = 0; j < UNROLL; j++)
                q[j] = load(columns + (size_t)__shfl_sync(ALL, now.col, i + j, p.across) * ld,
                            inside && now.begin + i + j < now.end);
#pragma unroll
            for (u32 j = 0; j < UNROLL; j++)
                Sums::accumulate(sums.x[0], __shfl_sync(ALL, now.value, i + j, p.across), q[j]);
        }
        if (last) {
            if (now.mine && inside) sums.store(c, bias, first + row * groups + g.number, p);
            sums = Sums(g.lane, p);
            row++;
        }
        now = next;
    }
}

// listed computes a listed row or row segment with a warp.
__device__ __forceinline__ void listed(const uint4 *__restrict__ colidx, const Sums::Values *__restrict__ values,
                                       const uint4 *list, u32 item, const uint4 *__restrict__ b,
                                       const float *__restrict__ bias, void *__restrict__ c, float *part,
                                       const Params &p) {
    Group g(p);
    Sums sums(g.lane, p);
    bool busy = item < p.segments && sums.inside(p);
    uint4 w = busy ? __ldg(list + item) : make_uint4(0, 0, 0, 0);
    sums.entries(w.x, w.y, g.number, 32 >> g.shift, colidx, values, b, p);
    sums.join(p.across, 32);
    if (!busy || g.number != 0) return;
    if (w.w != ALL) sums.store_partial(part + (size_t)w.w * p.ldp, p);
    else sums.store(c, bias, w.z, p);
}

// add_slots adds the partial sums of a row with a CTA or a warp: phase 1.
__device__ __forceinline__ void add_slots(const u32 *rows, u32 block, const float *__restrict__ bias,
                                          void *__restrict__ c, const float *part, const Params &p) {
    __shared__ __align__(16) float others[WARPS - 1][Sums::SHARED];
    Group g(p);
    u32 warp = threadIdx.x / 32, groups = 32 >> g.shift;
    bool team = block < p.per;
    u32 item = team ? block : p.per + (block - p.per) * WARPS + warp;
    Sums sums(g.lane, p);
    bool busy = item < p.items && sums.inside(p);
    const u32 *r = rows + 3 * (size_t)item;
    u32 row = busy ? r[0] : 0, slot = busy ? r[1] : 0, end = busy ? r[2] : 0;
    launches_before();
    launches_after();
    slot += g.number + (team ? warp * groups : 0);
    u32 step = team ? WARPS * groups : groups;
#pragma unroll 8
    for (; slot < end; slot += step) Sums::take(sums.x[0], part + (size_t)slot * p.ldp + sums.col);
    sums.join(p.across, 32);
    if (team) {
        if (warp > 0 && g.number == 0) sums.share(others[warp - 1], g.lane);
        __syncthreads();
        if (warp > 0) return;
#pragma unroll
        for (int i = 0; i < WARPS - 1; i++) sums.add(others[i], g.lane);
    }
    if (busy && g.number == 0) sums.store(c, bias, row, p);
}

extern "C" __global__ void __launch_bounds__(128, BLOCKS)
    csr(const u32 *__restrict__ rowptr, const uint4 *__restrict__ colidx, const Sums::Values *__restrict__ values,
        const u32 *__restrict__ heavy, const uint4 *__restrict__ b, const float *__restrict__ bias,
        void *__restrict__ c, float *part, const Params p) {
    u32 block = blockIdx.x + blockIdx.z * p.width;
    if (p.phase == 1) {
        add_slots(heavy + SEGMENT_WORDS * (size_t)p.segments, block, bias, c, part, p);
        return;
    }
    u32 before = (p.segments + WARPS - 1) / WARPS;
    if (block < before) {
        listed(colidx, values, (const uint4 *)heavy, block * WARPS + threadIdx.x / 32, b, bias, c, part, p);
        return;
    }
    u32 warp = (block - before) * WARPS + threadIdx.x / 32, first = warp * EACH * (32 >> Group(p).shift);
    short_rows(rowptr, (const u32 *)colidx, (const float *)values, b, bias, c, first, p);
}
