// Computes: nothing of use: it measures what an NVIDIA device attains (peak.go). KIND: 1 copy, 2 read, 3 fma, 4 matrix
// (F16, BF16, TF32, F64 or S8; depth K), 5 fma in f64.
// Tile: p.rounds rounds for each thread.
// Data movement: KIND 1 and 2 through memory or cache; the others stay in registers.
// Bound by: the unit that KIND names.

#if KIND == 5 || defined(F64)
#define DOUBLE
#endif
#include "params.h"

typedef unsigned int u32;

#if KIND == 1
__device__ __forceinline__ void work(const uint4 *__restrict__ src, uint4 *__restrict__ dst, Params p, u32 id,
                                     u32 all) {
#pragma unroll 4
    for (u32 r = 0; r < p.rounds; r++) {
        size_t i = (size_t)r * all + id;
        dst[i] = src[i];
    }
}
#elif KIND == 2
__device__ __forceinline__ void work(const uint4 *__restrict__ src, uint4 *__restrict__ dst, Params p, u32 id,
                                     u32 all) {
    uint4 s = {0, 0, 0, 0};
    u32 at = id;
#pragma unroll 8
    for (u32 r = 0; r < p.rounds; r++) {
        uint4 x = __ldcg(src + (at & (p.span - 1)));
        s.x ^= x.x;
        s.y ^= x.y;
        s.z ^= x.z;
        s.w ^= x.w;
        at += all + 256;
    }
    dst[id] = s;
}
#elif KIND == 3
__device__ __forceinline__ void work(const uint4 *__restrict__ src, uint4 *__restrict__ dst, Params p, u32 id,
                                     u32 all) {
    float a[8], x = __uint_as_float(src[0].x), y = __uint_as_float(src[0].y);
#pragma unroll
    for (int i = 0; i < 8; i++) a[i] = (float)(id + i);
    for (u32 r = 0; r < p.rounds; r++)
#pragma unroll
        for (int i = 0; i < 32; i++) a[i & 7] = __fmaf_rn(a[i & 7], x, y);
    float s = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) s += a[i];
    dst[id].x = __float_as_uint(s);
}
#elif KIND == 5
__device__ __forceinline__ void work(const uint4 *__restrict__ src, uint4 *__restrict__ dst, Params p, u32 id,
                                     u32 all) {
    double a[8], x = __hiloint2double(src[0].x, src[0].y), y = __hiloint2double(src[0].z, src[0].w);
#pragma unroll
    for (int i = 0; i < 8; i++) a[i] = (double)(id + i);
    for (u32 r = 0; r < p.rounds; r++)
#pragma unroll
        for (int i = 0; i < 32; i++) a[i & 7] = __fma_rn(a[i & 7], x, y);
    double s = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) s += a[i];
    dst[id].x = (u32)__double2loint(s);
}
#elif defined(F64)
// mma is d += a·b of 8×8×4, or 16×8×8.
__device__ __forceinline__ void mma(double (&d)[4], const double (&a)[2], const double (&b)[1]) {
#if K == 8
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%4,%5}, {%6,%6}, {%0,%1,%2,%3};"
        : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
        : "d"(a[0]), "d"(a[1]), "d"(b[0]));
#else
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                 : "+d"(d[0]), "+d"(d[1])
                 : "d"(a[0]), "d"(b[0]));
#endif
}
__device__ __forceinline__ void work(const uint4 *__restrict__ src, uint4 *__restrict__ dst, Params p, u32 id,
                                     u32 all) {
    double d[8][4] = {};
    uint4 x = src[id & 31];
    double a[2] = {__hiloint2double(x.x, x.y), __hiloint2double(x.z, x.w)}, b[1] = {__hiloint2double(x.y, x.z)};
    for (u32 r = 0; r < p.rounds; r++)
#pragma unroll
        for (int i = 0; i < 8; i++) mma(d[i], a, b);
    double s = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) s += d[i][0] + d[i][1] + d[i][2] + d[i][3];
    dst[id].x = (u32)__double2loint(s);
}
#else
#if defined(S8) && K == 32
#define OP "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"
#elif defined(S8)
#define OP "mma.sync.aligned.m16n8k16.row.col.s32.s8.s8.s32"
#elif defined(TF32)
#define OP "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
#elif defined(BF16) && K == 16
#define OP "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
#elif defined(BF16)
#define OP "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32"
#elif K == 16
#define OP "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
#else
#define OP "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
#endif
#ifdef S8
typedef int Sum;
#define SUM "+r"
#else
typedef float Sum;
#define SUM "+f"
#endif
__device__ __forceinline__ void mma(Sum (&d)[4], const u32 (&a)[4], const u32 (&b)[2]) {
#if K == 32 || (K == 16 && !defined(S8)) || defined(TF32)
    asm volatile(OP " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : SUM(d[0]), SUM(d[1]), SUM(d[2]), SUM(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    asm volatile(OP " {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
                 : SUM(d[0]), SUM(d[1]), SUM(d[2]), SUM(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b[0]));
#endif
}
__device__ __forceinline__ void work(const uint4 *__restrict__ src, uint4 *__restrict__ dst, Params p, u32 id,
                                     u32 all) {
    Sum d[8][4] = {};
    uint4 x = src[id & 31];
    u32 a[4] = {x.x, x.y, x.z, x.w}, b[2] = {x.y, x.z};
    for (u32 r = 0; r < p.rounds; r++)
#pragma unroll
        for (int i = 0; i < 8; i++) mma(d[i], a, b);
    Sum s = 0;
#pragma unroll
    for (int i = 0; i < 8; i++) s += d[i][0] + d[i][1] + d[i][2] + d[i][3];
    dst[id].x = (u32)s;
}
#endif

extern "C" __global__ void __launch_bounds__(256)
    peak(const uint4 *__restrict__ src, uint4 *__restrict__ dst, Params p) {
    work(src, dst, p, blockIdx.x * 256 + threadIdx.x, gridDim.x * 256);
}
