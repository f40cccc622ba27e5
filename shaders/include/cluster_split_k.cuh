// Split-K within a cluster: CTAs with partial sums of the same tile send them to each other's shared memory and add
// them in order.

#pragma once
#include "bulk.cuh"
#include "launches.cuh"
#include "store_columns.cuh"

__device__ __forceinline__ void cluster_arrive() {
    asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_wait() { asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory"); }

__device__ __forceinline__ void prefetch(const TileMap *map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// copies: body of the producer thread of an operand, with STAGES_OF_RING stages. It calls copy(stage, step) for steps
// first to last - 1, each when all readers of the stage's last step have arrived at its barrier; `empty` is the address
// of the first barrier.
template <int STAGES_OF_RING, class F> __device__ __forceinline__ void copies(u32 empty, u32 first, u32 last, F copy) {
    u32 stage = 0, parity = 1;
#pragma unroll 1
    for (u32 k = first; k < last; k++) {
        barrier_wait(empty + 8 * stage, parity);
        copy(stage, k);
        if (++stage == STAGES_OF_RING) stage = 0, parity ^= 1;
    }
}

// store_inside stores a warp's 16 rows of sums. They are pairs of tiles of 8 columns, STRIDE columns apart; columns
// from `end` on are not stored.
template <int STRIDE, int N, class P, class F>
__device__ __forceinline__ void store_inside(float (&acc)[N][4], Dest to, const P &p, u32 row, u32 col, u32 end,
                                             F recompute) {
    if (by_columns_c(p.store)) return store_columns<STRIDE>(acc, to, p, row, col, end, recompute);
    float(&sums)[1][N][4] = reinterpret_cast<float(&)[1][N][4]>(acc);
    if (!store_plain<STRIDE>(sums, to, p, row, col, end)) store_sums<STRIDE>(sums, to, p, row, col, end, recompute);
}

// map_to_cta returns the address of `at` in the shared memory of CTA number `block` of the cluster.
__device__ __forceinline__ u32 map_to_cta(u32 at, u32 block) {
    u32 there;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(block));
    return there;
}
// send writes 16 bytes to an address of map_to_cta. They count at a barrier, also an address of map_to_cta.
__device__ __forceinline__ void send(u32 to, const float (&x)[4], u32 barrier) {
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(to),
        "r"(__float_as_uint(x[0])), "r"(__float_as_uint(x[1])), "r"(__float_as_uint(x[2])), "r"(__float_as_uint(x[3])),
        "r"(barrier)
        : "memory");
}
__device__ __forceinline__ void load_partial(float (&x)[4], u32 at) {
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
                 : "r"(at)
                 : "memory");
}

// Exchange adds the partial sums of SUMMANDS CTAs of a cluster. Each CTA has WARPS warps with 16 rows each, and WIDTH
// (an even number) tiles of 8 columns in the layout of mma's accumulators. CTA q has split q of the sum; it totals
// pairs of tiles q, q + SUMMANDS, q + 2·SUMMANDS and so on.
template <int WIDTH, int SUMMANDS, int WARPS> struct Exchange {
    static constexpr u32 PAIRS = WIDTH / 2, OWN = (PAIRS + SUMMANDS - 1) / SUMMANDS,
                         FROM = OWN * 2 * WARPS * 512; // bytes from one CTA
    static constexpr u32 BYTES = (SUMMANDS - 1) * FROM; // of shared memory, at `at`
    u32 at, barrier, split;

    // start initialises the barrier. One thread calls it before the cluster's CTAs meet.
    __device__ __forceinline__ void start() const {
        barrier_init(barrier, 1);
        barrier_fence();
        barrier_expect(barrier, (SUMMANDS - 1) * ((PAIRS + SUMMANDS - 1 - split) / SUMMANDS) * 2 * WARPS * 512);
    }

    // give sends this warp's partial sums to the other CTAs. All warps call it when all CTAs may be sent to.
    __device__ __forceinline__ void give(const float (&acc)[WIDTH][4], u32 warp) const {
#pragma unroll
        for (u32 q = 0; q < SUMMANDS; q++) {
            if (q == split) continue;
            u32 there = map_to_cta(place(split - (split > q), warp), q), done = map_to_cta(barrier, q);
#pragma unroll
            for (u32 i = q; i < PAIRS; i += SUMMANDS)
#pragma unroll
                for (u32 e = 0; e < 2; e++) send(there + (i / SUMMANDS * 2 + e) * WARPS * 512, acc[2 * i + e], done);
        }
    }

    // take, called after give, adds the partial sums in the order of K. Sums of pairs that this CTA does not total are
    // undefined.
    __device__ __forceinline__ void take(float (&sums)[2 * OWN][4], const float (&acc)[WIDTH][4], u32 warp) const {
        barrier_wait(barrier, 0);
#pragma unroll
        for (u32 i = 0; i < 2 * OWN; i++) {
            float x[SUMMANDS][4];
#pragma unroll
            for (u32 s = 0; s + 1 < SUMMANDS; s++) load_partial(x[s], place(s, warp) + i * WARPS * 512);
#pragma unroll
            for (u32 v = 0; v < 4; v++) {
                float own = 0, sum = 0;
#pragma unroll
                for (u32 q = 0; q < SUMMANDS; q++)
                    if (i / 2 * SUMMANDS + q < PAIRS && q == split) own = acc[2 * (i / 2 * SUMMANDS + q) + i % 2][v];
#pragma unroll
                for (u32 q = 0; q < SUMMANDS; q++) {
                    float before = q > 0 ? x[q - 1][v] : 0, after = q + 1 < SUMMANDS ? x[q][v] : 0;
                    sum += q == split ? own : q < split ? after : before;
                }
                sums[i][v] = sum;
            }
        }
    }

    // place returns where a lane finds what CTA `from` has sent.
    __device__ __forceinline__ u32 place(u32 from, u32 warp) const {
        return at + from * FROM + (warp * 32 + threadIdx.x % 32) * 16;
    }
};

// add_and_store adds the partial sums of a tile at (row, col) and stores it. All warps with sums call it when all CTAs
// of the cluster may be sent to.
template <int WIDTH, int SUMMANDS, int WARPS, class P, class F>
__device__ __forceinline__ void add_and_store(float (&acc)[WIDTH][4], const Exchange<WIDTH, SUMMANDS, WARPS> &x,
                                              u32 warp, Dest to, const P &p, u32 row, u32 col, F recompute) {
    u32 end = min(p.n, col + 8 * WIDTH);
    row += 16 * warp;
    if (SUMMANDS > 1) {
        float sums[2 * Exchange<WIDTH, SUMMANDS, WARPS>::OWN][4];
        x.give(acc, warp);
        x.take(sums, acc, warp);
        store_inside<16 * SUMMANDS>(sums, to, p, row, col + 16 * x.split, end, recompute);
    } else store_inside<16>(acc, to, p, row, col, end, recompute);
    __syncwarp();
}
