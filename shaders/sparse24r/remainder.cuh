// The remainder by dense MMA. It is panels of 16 rows; a step is 16 vectors (16 × 1) of a panel (see remainderArray in
// sparse24r.go). Each warp gathers a step's rows of B into its own shared memory, and adds the product to its sums. The
// accumulators of sparse MMA have the layout of those of mma.m16n8k16.

#pragma once
#include "../nm/nm.cuh"

#define REMAINDER Remainder
#define REMAINDER_ARGS const u32 *__restrict__ remainder,
#define REMAINDER_OF(memory, b) Remainder(remainder, values, b, memory)
#define REMAINDER_BYTES 4096

// RestEntries computes an output again from the entries of Pairs and of the remainder alone: the finite repair.
template <class E> struct RestEntries {
    E pairs;
    const u32 *remainder; // from its second word on
    const u16 *values, *b; // values: of the remainder
    u32 panels, ldb;

    __device__ __forceinline__ float operator()(u32 row, u32 col) const {
        Special s;
        pairs.terms(s, row, col);
        u32 last = remainder[row / 16 + 1], count = remainder[panels], r = row % 16;
        for (u32 q = remainder[row / 16]; q < last; q++) {
            if (!(remainder[panels + 1 + count + q / 2] >> (q % 2 * 16 + r) & 1)) continue;
            u32 k = q % 16; // see mma.m16n8k16's operand A
            u16 value = values[(u64)(q / 16) * 256 + (r % 8 * 4 + k % 8 / 2) * 8 + (k / 8 * 2 + r / 8) * 2 + k % 2];
            s.add(to_float(value), to_float(b[(u64)remainder[panels + 1 + q] * ldb + col]));
        }
        return s.result();
    }
};

// Gather adds the remainder of TALL strips of 16 rows, APART rows apart, to the sums of N tiles of 8 columns. It goes
// through the steps of one strip after another. Each step's rows of B are prefetched one step early, and the column
// numbers of the step after that.
template <int TALL, int APART, int N> struct Gather {
    static constexpr u32 NONE = 0xffffffff;
    const u32 *ptr, *cols; // of the remainder's panels and vectors
    const u16 *values, *b; // values of the remainder
    u32 memory, ldb, panels;
    u32 lane, col; // of the tile
    uint2 next[TALL]; // of each strip of the tile of look: the first vector, and the one after the last
    uint2 steps[TALL]; // of each strip of the tile: the first step, and the one after the last
    u32 next_step; // the step to load next
    u32 from; // the column of its vector number lane % 16
    uint4 a; // operand A of the step that was prefetched last

    // after returns the first step of the strips from i on.
    __device__ __forceinline__ u32 after(int i) const {
        u32 first = NONE;
#pragma unroll
        for (int j = TALL - 1; j >= 0; j--)
            if (j >= i && steps[j].x < steps[j].y) first = steps[j].x;
        return first;
    }
    __device__ __forceinline__ void know(u32 step) {
        next_step = step;
        if (step != NONE) from = cols[step * 16 + threadIdx.x % 16];
    }
    // place reads the lane's number again, so that values that depend on it need no registers while the loop
    // multiplies.
    __device__ __forceinline__ void place() { asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane)); }
    // at returns the address of 16 bytes of row k of a step's rows of B.
    __device__ __forceinline__ u32 at(u32 k, u32 chunk) const {
        return memory + (k * N + (chunk ^ (k & (N < 8 ? N - 1 : 7)))) * 16;
    }

    // prefetch_step prefetches the rows of B of the next step, if there is one.
    __device__ __forceinline__ void prefetch_step() {
        if (next_step == NONE) return;
        place();
        a = *(const uint4 *)(values + (u64)next_step * 256 + lane * 8);
#pragma unroll
        for (int j = 0; j < N / 2; j++) {
            u32 k = (j * 32 + lane) / N, chunk = lane % N, c = col + 8 * chunk, row = __shfl_sync(0xffffffff, from, k);
            copy<16>(at(k, chunk), b + (u64)row * ldb + (c < ldb ? c : 0), c < ldb ? 16 : 0);
        }
        copy_commit();
        u32 next = next_step + 1;
#pragma unroll
        for (int i = 0; i < TALL; i++)
            if (steps[i].x <= next_step && next_step < steps[i].y && next == steps[i].y) next = after(i + 1);
        know(next);
    }

    // look, find and start prepare the first step, each long before the next one reads its results. (The loop that
    // multiplies is slower if it contains such loads.)
    __device__ __forceinline__ void look(u32 row) {
#pragma unroll
        for (int i = 0; i < TALL; i++) {
            u32 panel = (row + i * APART) / 16;
            next[i] = panel < panels ? make_uint2(ptr[panel], ptr[panel + 1]) : make_uint2(0, 0);
        }
    }
    __device__ __forceinline__ void find() {
#pragma unroll
        for (int i = 0; i < TALL; i++) { // from one lane, so that the compiler knows that all lanes have the same
            steps[i].x = __shfl_sync(0xffffffff, next[i].x, 0) / 16;
            steps[i].y = __shfl_sync(0xffffffff, next[i].y, 0) / 16;
        }
        know(after(0));
    }
    __device__ __forceinline__ void start(u32 first) {
        col = first;
        prefetch_step();
    }

    __device__ __forceinline__ void add(float (&acc)[TALL][N][4]) {
        static_assert(N % 2 == 0 && N * 256 <= REMAINDER_BYTES, "a step's rows of B fit the memory");
#pragma unroll
        for (int i = 0; i < TALL; i++) {
#pragma unroll 1
            for (u32 step = steps[i].x; step < steps[i].y; step++) {
                u32 x[4] = {a.x, a.y, a.z, a.w}, y[N / 2][4];
                copy_wait<0>();
                __syncwarp();
                place();
#pragma unroll
                for (int j = 0; j < N / 2; j++) ldmatrix_trans(y[j], at(lane % 16, 2 * j + lane / 16));
                __syncwarp();
                prefetch_step();
#pragma unroll
                for (int j = 0; j < N; j++) mma<ELEM>(acc[i][j], x, y[j / 2][j % 2 * 2], y[j / 2][j % 2 * 2 + 1]);
            }
        }
    }
};

// Remainder is the arrays of the remainder, and this warp's shared memory.
struct Remainder {
    const u32 *remainder; // from its second word on
    const u16 *values, *b; // values of the remainder
    u32 memory; // of this warp

    __device__ __forceinline__ Remainder(const u32 *remainder, const u16 *values, const u16 *b, u32 memory)
        : remainder(remainder + 1), values(values + (u64)remainder[0] * 256), b(b), memory(memory) {}

    template <int TALL, int APART, int N, class P>
    __device__ __forceinline__ Gather<TALL, APART, N> gather(const P &p) const {
        return {remainder, remainder + p.panels + 1, values, b, memory, p.ldb, p.panels};
    }

    template <class E, class P> __device__ __forceinline__ RestEntries<E> entries(E pairs, const P &p) const {
        return {pairs, remainder, values, b, p.panels, p.ldb};
    }
};
