// Asynchronous copies and warp-level MMA of compute capability 8.0.

#pragma once
#include "half.cuh"

typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned long long u64;

__device__ __forceinline__ u32 shared_address(const void *p) { return (u32)__cvta_generic_to_shared(p); }

// copy copies `bytes` bytes from global to shared memory, and zeros after them, SIZE (4, 8 or 16) bytes in all.
template <int SIZE> __device__ __forceinline__ void copy(u32 to, const void *from, int bytes) {
    if (SIZE == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes));
    else asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(SIZE), "r"(bytes));
}
__device__ __forceinline__ void copy_commit() { asm volatile("cp.async.commit_group;"); }
template <int N> __device__ __forceinline__ void copy_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

// ldmatrix loads four 8×8 matrices of 16-bit elements; lane l gives the address of row l mod 8 of matrix l / 8.
// ldmatrix_trans transposes each.
__device__ __forceinline__ void ldmatrix(u32 (&x)[4], u32 from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(from)
                 : "memory");
}
__device__ __forceinline__ void ldmatrix_trans(u32 (&x)[4], u32 from) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(from)
                 : "memory");
}

// mma computes d += a·b for 16×8×16, with sums in f32.
template <int T> __device__ __forceinline__ void mma(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    if (T == BF16)
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

// mma_k8 computes d += a·b for 16×8×8, with sums in f32.
template <int T> __device__ __forceinline__ void mma_k8(float (&d)[4], u32 a0, u32 a1, u32 b) {
    if (T == BF16)
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a0), "r"(a1), "r"(b));
    else
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a0), "r"(a1), "r"(b));
}

// mma_sparse computes d += a·b for 16×8×32 and a 2:4 sparse a. Lanes 2·select and 2·select + 1 of each quad of lanes
// give the places of a's entries, each for 16 columns, 2 bits an entry: of row lane/4 in the lower half, of row lane/4
// + 8 in the upper half.
#define MMA_SPARSE(TYPE, SELECT) \
    asm volatile("mma.sp.sync.aligned.m16n8k32.row.col.f32." TYPE "." TYPE ".f32 " \
                 "{%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9,%10,%11},{%0,%1,%2,%3},%12," SELECT ";" \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(b[2]), "r"(b[3]), \
                   "r"(places))
template <int T>
__device__ __forceinline__ void mma_sparse(float (&d)[4], const u32 (&a)[4], const u32 (&b)[4], u32 places,
                                           bool select) {
    if (T == BF16) {
        if (select) MMA_SPARSE("bf16", "0x1");
        else MMA_SPARSE("bf16", "0x0");
    } else {
        if (select) MMA_SPARSE("f16", "0x1");
        else MMA_SPARSE("f16", "0x0");
    }
}
#undef MMA_SPARSE
