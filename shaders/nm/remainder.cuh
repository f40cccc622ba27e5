// Hooks for a remainder: what a kernel adds to the products of a 2:4 matrix before they are stored. Here that is
// nothing. A source that includes the kernel's may define REMAINDER and supply its own (shaders/sparse24r). Its kernels
// have the arguments REMAINDER_ARGS after the mask, from which REMAINDER is made: REMAINDER_OF(memory for each warp in
// shared memory, the matrix b).

#pragma once

#ifndef REMAINDER
#define REMAINDER NoRemainder
#define REMAINDER_ARGS
#define REMAINDER_OF(memory, b) NoRemainder()
#define REMAINDER_BYTES 0 // of shared memory, for a warp

struct NoRemainder {
    struct Nothing {
        // look loads the counts of the strips' remainder entries, the first strip at row `row`; find awaits them and
        // loads the entries' positions. They read A alone, and are best called well before start, which has the
        // first of it on its way.
        __device__ __forceinline__ void look(u32 row) {}
        __device__ __forceinline__ void find() {}
        __device__ __forceinline__ void start(u32 col) {}
        // add adds the products to sums as the matrix unit holds them, from column col of start on.
        template <int TALL, int N> __device__ __forceinline__ void add(float (&acc)[TALL][N][4]) {}
    };
    // gather is called by a warp before it multiplies tiles of TALL strips of 16 rows, APART rows apart, and N tiles of
    // 8 columns.
    template <int TALL, int APART, int N, class P> __device__ __forceinline__ Nothing gather(const P &p) const {
        return {};
    }
    // entries returns what gives an output from the entries alone, pairs doing so for the 2:4 matrix.
    template <class E, class P> __device__ __forceinline__ E entries(E pairs, const P &p) const { return pairs; }
};
#endif
