// Few columns (nmSPARSE's SpMV, §3.2.1), for single entries on scalar cores.
//
// A warp computes NARROW_ROWS rows at a time, its lanes taking chunks of the rows' slots in turn, whose values are
// neighbours. The rows of B that chunk c can refer to are loaded to shared memory bank c mod 32 alone, as f32, so no
// two lanes meet in a bank (§3.2.1, Figure 4). A chunk is 8 slots where p.keep divides 8 and there is room, else a
// group. B that does not fit into shared memory comes in windows; where all fits, it is loaded once for all the rows
// that a CTA multiplies, which lie a grid apart in the matrix.
//
// Needs WARPS, NARROW_ROWS and NARROW_BYTES, the shared memory that there is: at least 32 KiB, which a lane's group of
// the largest p.every takes.

#pragma once
#include "nm.cuh"

__device__ __forceinline__ bool is_narrow(const Params &p) { return p.n <= (p.every <= 32 ? 8 : 4); }

// COUNT: columns.
template <int COUNT>
__device__ __forceinline__ void narrow_columns(const Elem *values, const u32 *index, const u32 *mask, const Elem *b,
                                               Dest to, const Params &p, float *smem) {
    u32 t = threadIdx.x, lane = t & 31, warp = t >> 5;
    u32 count = p.groups * p.keep, groups = 8 % p.keep == 0 ? 8 / p.keep : 1; // of a chunk
    while (groups > 1 && groups * p.every * COUNT * 32 * 4 > NARROW_BYTES) groups /= 2;
    u32 slots = groups * p.keep, rows = groups * p.every, chunks = (p.groups + groups - 1) / groups;
    u32 window = NARROW_BYTES / 4 / (rows * COUNT * 32); // chunks of a lane
    bool whole = (count & 7) == 0 && (slots & 7) == 0, once = chunks <= 32 * window;
    u32 bits = 32 - __clz(p.every - 1), unit = (1u << bits) - 1, words = (count * bits + 31) / 32;
    Out<Params> out(to, p);
    u32 begin = (blockIdx.x + blockIdx.z * p.width) * WARPS * NARROW_ROWS;
    for (u32 first = begin; first < p.rows; first += p.blocks * WARPS * NARROW_ROWS) {
        u32 mine = first + warp * NARROW_ROWS;
        float acc[NARROW_ROWS][COUNT] = {};
        for (u32 start = 0; start < chunks; start += 32 * window) {
            u32 here = min(window, (chunks - start + 31) / 32);
            if (!once || first == begin) {
                __syncthreads();
                for (u32 i = warp; i < here * rows; i += WARPS) {
                    u32 k = (start + i / rows * 32 + lane) * rows + i % rows; // row of B
#pragma unroll
                    for (int j = 0; j < COUNT; j++)
                        smem[(i * COUNT + j) * 32 + lane] = k < p.cols ? to_float(b[(u64)k * p.ldb + j]) : 0;
                }
                __syncthreads();
            }
            // Eight slots of each row at a time, the next ones on their way.
            u32 eights = (slots + 7) / 8, steps = here * eights;
            alignas(16) Elem v[2][NARROW_ROWS][8];
            u64 place[2][NARROW_ROWS];
            auto look = [&](u32 step, Elem(&v)[NARROW_ROWS][8], u64(&place)[NARROW_ROWS]) {
                u32 s = step % eights * 8, slot = (start + step / eights * 32 + lane) * slots + s;
                if (step >= steps || slot >= count) return;
                u32 at = slot * bits, w = at >> 5;
#pragma unroll
                for (int r = 0; r < NARROW_ROWS; r++) {
                    u32 row = min(mine + r, p.rows - 1);
                    const Elem *from = values + (u64)row * count + slot;
                    const u32 *is = index + (u64)row * words;
                    u32 w0 = is[w], w1 = is[min(w + 1, words - 1)], w2 = bits > 4 ? is[min(w + 2, words - 1)] : 0;
                    place[r] = (u64)__funnelshift_r(w1, w2, at & 31) << 32 | __funnelshift_r(w0, w1, at & 31);
                    if (whole) {
#pragma unroll
                        for (int e = 0; e < (int)sizeof(Elem) / 2; e++)
                            ((uint4 *)v[r])[e] = __ldg((const uint4 *)from + e);
                    } else {
#pragma unroll
                        for (int e = 0; e < 8; e++) v[r][e] = s + e < slots && slot + e < count ? from[e] : 0;
                    }
                }
            };
            auto add = [&](u32 step, Elem(&v)[NARROW_ROWS][8], u64(&place)[NARROW_ROWS]) {
                u32 s = step % eights * 8, slot = (start + step / eights * 32 + lane) * slots + s;
                if (step >= steps || slot >= count) return;
                const float *x = smem + step / eights * rows * COUNT * 32 + lane;
                u32 group = s / p.keep * p.every,
                    left = p.keep - s % p.keep; // rows before the group, its slots yet to come
#pragma unroll
                for (int e = 0; e < 8; e++) {
                    if (s + e >= slots || !whole && slot + e >= count) break;
#pragma unroll
                    for (int r = 0; r < NARROW_ROWS; r++) {
                        const float *y = x + (group + ((u32)place[r] & unit)) * COUNT * 32;
#pragma unroll
                        for (int j = 0; j < COUNT; j++) acc[r][j] = fmaf(to_float(v[r][e]), y[j * 32], acc[r][j]);
                        place[r] >>= bits;
                    }
                    if (--left == 0) group += p.every, left = p.keep;
                }
            };
            look(0, v[0], place[0]);
            for (u32 step = 0; step < steps; step += 2) {
                look(step + 1, v[1], place[1]);
                add(step, v[0], place[0]);
                look(step + 2, v[0], place[0]);
                add(step + 1, v[1], place[1]);
            }
        }
#pragma unroll
        for (int r = 0; r < NARROW_ROWS; r++) {
            float x[(COUNT + 3) / 4 * 4] = {};
#pragma unroll
            for (int j = 0; j < COUNT; j++) {
                x[j] = acc[r][j];
#pragma unroll
                for (int d = 16; d > 0; d /= 2) x[j] += __shfl_xor_sync(0xffffffff, x[j], d);
            }
            if (lane == r)
#pragma unroll
                for (int j = 0; j < COUNT; j += 4)
                    out.store(mine + r, j, make_float4(x[j], x[j + 1], x[j + 2], x[j + 3]),
                              Entries{values, index, mask, b, &p, 1});
        }
    }
}

__device__ __forceinline__ void narrow(const Elem *values, const u32 *index, const u32 *mask, const Elem *b, Dest to,
                                       const Params &p, void *smem) {
    if (p.n == 1) narrow_columns<1>(values, index, mask, b, to, p, (float *)smem);
    else if (p.n == 2) narrow_columns<2>(values, index, mask, b, to, p, (float *)smem);
    else if (p.n <= 4) narrow_columns<4>(values, index, mask, b, to, p, (float *)smem);
    else narrow_columns<8>(values, index, mask, b, to, p, (float *)smem);
}
