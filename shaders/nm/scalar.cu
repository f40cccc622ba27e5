// Computes: C = alpha·A·B + beta·C, A (rows × cols) N:M sparse in units of a multiple of 8 rows, f32, f16 or bf16 on
// CUDA cores.
// Tile: a warp computes (8 × 128) of a panel, a lane (8 × 4): a load of a row of B feeds 32 multiply-adds.
// Data movement: straight from L1 to registers. Lanes decode the columns of 32 condensed columns at a time and shuffle
// them to each other. The warps of a CTA have neighbouring rows and find each other's rows of B in L1.
// Bound by: FMA.
// Constants: ENTRY, ELEM (half.cuh), WARPS.

#include "nm.cuh"

struct Four {
    float x[4];
};
#if ELEM == F32
__device__ __forceinline__ Four four(const float *p) {
    float4 v = __ldg((const float4 *)p);
    return {v.x, v.y, v.z, v.w};
}
#else
__device__ __forceinline__ Four four(const u16 *p) {
    uint2 v = __ldg((const uint2 *)p);
    return {widen_lo<ELEM>(v.x), widen_hi<ELEM>(v.x), widen_lo<ELEM>(v.y), widen_hi<ELEM>(v.y)};
}
#endif

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    ENTRY(const Elem *__restrict__ values, const u32 *__restrict__ index, const u32 *__restrict__ mask,
          const Elem *__restrict__ b, const float *__restrict__ bias, void *__restrict__ c,
          const __grid_constant__ Params p) {
    u32 lane = threadIdx.x & 31, row = ((blockIdx.x + blockIdx.z * p.width) * WARPS + (threadIdx.x >> 5)) * 8;
    if (row >= p.rows) return;
    u32 panel = row / p.tall, count = p.groups * p.keep << p.wide, col = blockIdx.y * 128 + 4 * lane;
    Places places(index, p, panel);
    const Elem *from = b + min(col, p.ldb - 4); // columns past the leading dimension are never stored
    const Elem *value = values + (u64)panel * count * p.tall + row % p.tall;
    float acc[8][4] = {};
    for (u32 k = 0; k < count; k += 32) {
        u32 mine = min(k + lane, count - 1);
        // The last group may keep columns past the matrix; their values are 0.
        u32 at = min(column(p, mine, places.place(mine >> p.wide)), p.cols - 1);
        u32 here = min(count - k, 32);
#pragma unroll 4
        for (u32 i = 0; i < here; i++) {
            Four x = four(from + (u64)__shfl_sync(0xffffffff, at, i) * p.ldb);
            const Elem *v = value + (u64)(k + i) * p.tall;
#pragma unroll
            for (int r = 0; r < 8; r += 4) {
                Four a = four(v + r);
#pragma unroll
                for (int e = 0; e < 4; e++)
#pragma unroll
                    for (int j = 0; j < 4; j++) acc[r + e][j] = fmaf(a.x[e], x.x[j], acc[r + e][j]);
            }
        }
    }
    Out<Params> out({c, bias}, p);
#pragma unroll
    for (int r = 0; r < 8; r++)
        out.store(row + r, col, make_float4(acc[r][0], acc[r][1], acc[r][2], acc[r][3]),
                  Entries{values, index, mask, b, &p, p.tall});
}
