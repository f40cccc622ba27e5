// Computes: for each modulus, the sums of products of residues of A (rows × cols) and B (cols × n) as residues, by
// wgmma on 8-bit integers; with DIGITS = 1 the sums of products of two digits, for each of the three sums of their
// places. combine.cu puts them together. residues.go explains residues and how operands lie.
// Tile: a CTA computes 128 × COLS for one modulus, each of its two consumer warpgroups 64 × COLS. The two CTAs of a
// cluster have neighbouring rows. Clusters are persistent and take tiles of all moduli in turns, a column of tiles after
// another.
// Data movement: a producer thread issues bulk copies into STAGES stage buffers of 128 values of k. Operands lie in
// memory as they are to lie in shared memory, swizzled by 128 bytes. Each CTA loads its rows of A, and half of the
// columns of B for both.
// With SPARSE = 1 A is 2:4 sparse, by the sparse form of the instruction: residues24.go says how it lies. Places of
// values go from memory to registers, two stages ahead.
// Bound by: the bandwidth of the L2 cache, tensor cores, and that of shared memory, which copies and operands share.
// Constants: COLS (64, 128 or 256), STAGES, DIGITS, SPARSE.

#include "params.h"
#include "../include/bulk.cuh"
#include "../include/launches.cuh"
#include "../include/residues.cuh"
#include "../include/wgmma_sums.cuh"

#undef SUMS_TILE
#define SUMS_TILE(i) "+r"(d[i][0]), "+r"(d[i][1]), "+r"(d[i][2]), "+r"(d[i][3])

#define DEPTH 128 // values of k in a stage, a byte each
#define ROWS 128
#define GROUPS 2 // consumer warpgroups
#define CLUSTER 2
#define THREADS (128 + 128 * GROUPS)
#define LINE (SPARSE ? DEPTH / 2 : DEPTH) // bytes of a row of A in a stage
#define A_BYTES (ROWS * LINE)
#define STAGE_BYTES (A_BYTES + COLS * DEPTH)
#define BIAS (1u << 30) // a sum of fewer than 2^16 products of residues is smaller

// wgmma is d += l·r of 64×N×32 by four warps, both K-major; wgmma_sparse is that of 64×N×64, l being 2:4. Lane 4g + t
// of warp w has the places of eight groups of row 16w + 8(t mod 2) + g: of columns 32(t / 2) to 32(t / 2) + 31.
#define WGMMA(N, L, R, E) \
    __device__ __forceinline__ void wgmma(int (&d)[N / 8][4], u64 l, u64 r) { \
        asm volatile("wgmma.mma_async.sync.aligned.m64n" #N "k32.s32.s8.s8 {" REGS_##N "}, %" #L ", %" #R ", 1;" \
                     : SUMS_##N \
                     : "l"(l), "l"(r)); \
    } \
    __device__ __forceinline__ void wgmma_sparse(int (&d)[N / 8][4], u64 l, u64 r, u32 places) { \
        asm volatile("wgmma.mma_async.sp.sync.aligned.m64n" #N "k64.s32.s8.s8 {" REGS_##N "}, %" #L ", %" #R ", %" #E \
                     ", 0, 1;" \
                     : SUMS_##N \
                     : "l"(l), "l"(r), "r"(places)); \
    } \
    __device__ __forceinline__ void hold(int (&d)[N / 8][4]) { asm volatile("" : SUMS_##N::"memory"); }
#if COLS == 256
WGMMA(256, 128, 129, 130)
#elif COLS == 128
WGMMA(128, 64, 65, 66)
#else
WGMMA(64, 32, 33, 34)
#endif

// swizzled describes an operand in shared memory: lines of 128 bytes, their 16-byte chunks exchanged by the line mod 8.
__device__ __forceinline__ u64 swizzled(u32 at) {
    return (u64)((at & 0x3ffff) >> 4) | (u64)1 << 16 | (u64)(1024 >> 4) << 32 | (u64)1 << 62;
}

// rows_of_8 describes 64 rows in shared memory that lie in tiles of 8 rows by 16 bytes, along the rows first.
__device__ __forceinline__ u64 rows_of_8(u32 at) {
    return (u64)((at & 0x3ffff) >> 4) | (u64)(1024 >> 4) << 16 | (u64)(128 >> 4) << 32;
}

// bulk_copy_here copies bytes to this CTA's shared memory.
__device__ __forceinline__ void bulk_copy_here(u32 to, const void *from, u32 bytes, u32 barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

// Pipeline says where the stage buffers and their barriers are. A stage is full when its copies have arrived. It is
// empty when the consumer warpgroups of both CTAs have read it.
struct Pipeline {
    u32 stages, full, empty;

    __device__ __forceinline__ Pipeline(u32 at)
        : stages(at), full(at + STAGES * STAGE_BYTES), empty(full + 8 * STAGES) {}
    __device__ __forceinline__ void start() const {
        for (u32 s = 0; s < STAGES; s++) {
            barrier_init(full + 8 * s, 1);
            barrier_init(empty + 8 * s, GROUPS * CLUSTER);
        }
        barrier_fence();
    }
};

struct PipelineState {
    u32 stage, parity;
    __device__ __forceinline__ void next() {
        if (++stage == STAGES) stage = 0, parity ^= 1;
    }
};

// Work is the sizes of the product and the CTA's place in them: p.longest cluster tiles of rows, p.per stages of k,
// p.segments moduli, or places of digits.
struct Work {
    u32 rank, cluster, clusters, tiles, all;

    __device__ __forceinline__ Work(const Params &p) {
        rank = blockIdx.x % CLUSTER, cluster = blockIdx.x / CLUSTER, clusters = gridDim.x / CLUSTER;
        tiles = p.longest * ((p.ldq + COLS - 1) / COLS), all = tiles * p.segments;
    }
    // at returns the cluster's item of a turn, `all` or more if there is none. Every second turn goes backwards, so that
    // a cluster whose item takes long gets one that does not.
    __device__ __forceinline__ u32 at(u32 turn) const {
        return turn * clusters + (turn & 1 ? clusters - 1 - cluster : cluster);
    }
};

// Item is a tile for a modulus, or for a place: place 1, which takes two passes over k, comes first, so that the last
// items are short.
struct Item {
    u32 number, tile, passes;

    __device__ __forceinline__ Item(u32 i, const Work &w) : tile(i % w.tiles), passes(1) {
        number = i / w.tiles;
        if (DIGITS) {
            passes = number == 0 ? 2 : 1;
            number = number == 0 ? 1 : number == 1 ? 0 : 2;
        }
    }
    // left and right return which residues, or digits, of A and B a pass multiplies.
    __device__ __forceinline__ u32 left(u32 pass) const { return DIGITS ? (number + 1 - pass) / 2 : number; }
    __device__ __forceinline__ u32 right(u32 pass) const { return DIGITS ? (number + pass) / 2 : number; }
    __device__ __forceinline__ u32 row(const Work &w, const Params &p) const {
        return (tile % p.longest * CLUSTER + w.rank) * ROWS;
    }
};

// copy_all is the body of the producer thread.
__device__ __forceinline__ void copy_all(const Pipeline &pipeline, const Work &w, const char *a, const char *b,
                                         const Params &p) {
    PipelineState at = {0, 1}; // with parity 1 the first wait for each empty stage returns at once
    size_t lines = (size_t)p.longest * (CLUSTER * ROWS);
#pragma unroll 1
    for (u32 turn = 0; w.at(turn) < w.all; turn++) {
        Item item(w.at(turn), w);
        u32 col = item.tile / p.longest * COLS, columns = min(COLS, p.ldq - col), half = COLS / CLUSTER * w.rank,
            mine = columns > half ? min(columns - half, COLS / CLUSTER) * DEPTH : 0;
#pragma unroll 1
        for (u32 pass = 0; pass < item.passes; pass++) {
            const char *left = a + ((size_t)item.left(pass) * p.per * lines + item.row(w, p)) * LINE,
                       *right = b + ((size_t)item.right(pass) * p.per * p.ldq + col + half) * DEPTH;
#pragma unroll 1 // unrolled, ptxas 12.4 and 13.0 lose the upper half of `left`
            for (u32 k = 0; k < p.per; k++) {
                u32 to = pipeline.stages + at.stage * STAGE_BYTES, bar = pipeline.full + 8 * at.stage;
                barrier_wait(pipeline.empty + 8 * at.stage, at.parity);
                barrier_expect(bar, A_BYTES + columns * DEPTH);
                bulk_copy_here(to, left, A_BYTES, bar);
                if (mine > 0) bulk_copy(to + A_BYTES + half * DEPTH, right, mine, bar, (1 << CLUSTER) - 1);
                left += lines * LINE, right += (size_t)p.ldq * DEPTH;
                at.next();
            }
        }
    }
}

// Consumer is what a consumer warpgroup knows while it sums.
struct Consumer {
    const Pipeline &pipeline;
    PipelineState &at;
    u32 group, before; // before: the stage of the step before

    // release has one thread arrive at each CTA's barrier.
    __device__ __forceinline__ void release() const {
        if (threadIdx.x % 128 < CLUSTER) barrier_arrive(pipeline.empty + 8 * before, threadIdx.x % 128);
    }
    // step awaits a stage, calls f, which issues its instructions, given the stage's distance in descriptors, and
    // releases the stage of the step before.
    template <class F> __device__ __forceinline__ void step(u32 k, F f) {
        barrier_wait(pipeline.full + 8 * at.stage, at.parity);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        f((u64)(at.stage * (STAGE_BYTES >> 4))); // descriptors count units of 16 bytes
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        if (k > 0) {
            asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory"); // the step before is done
            release();
        }
        before = at.stage;
        at.next();
    }
    __device__ __forceinline__ void end(int (&acc)[COLS / 8][4], u32 steps) const {
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        hold(acc);
        if (steps > 0) release();
    }
};

#if SPARSE

// load_places loads a lane's places of two stages, a word for each instruction. (The compiler does not move it.)
__device__ __forceinline__ uint4 load_places(const uint4 *from) {
    uint4 x;
    asm volatile("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "l"(from)
                 : "memory");
    return x;
}
// held keeps places in their registers until here: an instruction reads them until it is waited for.
__device__ __forceinline__ void held(const uint4 &x) {
    asm volatile("" ::"r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w) : "memory");
}

// sum adds the products of a tile to the sums of a consumer warpgroup. Its places of two stages are `apart` from those
// of the next two.
__device__ __forceinline__ void sum(int (&acc)[COLS / 8][4], Consumer c, u32 steps, const uint4 *places, size_t apart) {
    u64 l = rows_of_8(c.pipeline.stages + c.group * 64 * LINE), r = swizzled(c.pipeline.stages + A_BYTES);
    auto multiply = [&](u32 k, u32 first, u32 second) {
        c.step(k, [&](u64 to) {
            wgmma_sparse(acc, l + to, r + to, first);
            wgmma_sparse(acc, l + to + (2048 >> 4), r + to + 4, second);
        });
    };
    auto pair = [&](u32 k, const uint4 &now, uint4 &next) {
        if (k >= steps) return;
        multiply(k, now.x, now.y);
        held(next);
        if (k + 2 < steps) next = load_places(places + k / 2 * apart + apart);
        if (k + 1 < steps) multiply(k + 1, now.z, now.w);
    };
    uint4 x = {}, y = {};
    if (steps > 0) x = load_places(places);
#pragma unroll 1
    for (u32 k = 0; k < steps; k += 4) {
        pair(k, x, y);
        pair(k + 2, y, x);
    }
    c.end(acc, steps);
    held(x), held(y);
}

#else

// sum adds the products of a tile to the sums of a consumer warpgroup.
__device__ __forceinline__ void sum(int (&acc)[COLS / 8][4], Consumer c, u32 steps) {
    u64 l = swizzled(c.pipeline.stages + c.group * 64 * DEPTH), r = swizzled(c.pipeline.stages + A_BYTES);
#pragma unroll 1
    for (u32 k = 0; k < steps; k++)
        c.step(k, [&](u64 to) {
#pragma unroll
            for (u32 e = 0; e < DEPTH / 32; e++) wgmma(acc, l + to + 2 * e, r + to + 2 * e);
        });
    c.end(acc, steps);
}

#endif

// Divisors hold the constants to reduce by each modulus.
struct Divisors {
    u32 m[MOST_MODULI], reciprocal[MOST_MODULI], bias[MOST_MODULI];
};
constexpr Divisors divisors() {
    Divisors d = {};
    for (int i = 0; i < MOST_MODULI; i++)
        d.m[i] = modulus(i), d.reciprocal[i] = reciprocal(modulus(i)), d.bias[i] = multiple(modulus(i), BIAS);
    return d;
}
__constant__ Divisors by = divisors();

// store_residues reduces the sums by the modulus of that number and stores them as bytes, 16 columns to a word of four.
__device__ __forceinline__ void store_residues(const int (&acc)[COLS / 8][4], u32 number, uint4 *to) {
    u32 m = by.m[number], reciprocal = by.reciprocal[number];
#pragma unroll
    for (int c = 0; c < COLS / 32; c++) {
        u32 word[4];
#pragma unroll
        for (int j = 0; j < 4; j++) {
            u32 r[4];
#pragma unroll
            for (int e = 0; e < 4; e++) r[e] = modulo((u32)acc[4 * c + j][e], m, reciprocal);
            word[j] = __byte_perm(r[0] | r[1] << 8, r[2] | r[3] << 8, 0x5410);
        }
        to[c * 128] = make_uint4(word[0], word[1], word[2], word[3]);
    }
}

// store_sums stores the sums as they are.
__device__ __forceinline__ void store_sums(const int (&acc)[COLS / 8][4], uint4 *to) {
#pragma unroll
    for (int j = 0; j < COLS / 8; j++) to[j * 128] = make_uint4(acc[j][0], acc[j][1], acc[j][2], acc[j][3]);
}

// multiply is the body of a consumer warpgroup. Sums of residues begin at a multiple of the modulus, so that none is
// negative.
__device__ __forceinline__ void multiply(const Pipeline &pipeline, const Work &w, u32 group, const char *a, uint4 *part,
                                         const Params &p) {
    constexpr u32 WORDS = COLS / (DIGITS ? 8 : 32) * 128; // of a tile of this warpgroup
    PipelineState at = {0, 0};
#pragma unroll 1
    for (u32 turn = 0; w.at(turn) < w.all; turn++) {
        Item item(w.at(turn), w);
        int acc[COLS / 8][4];
        int start = DIGITS ? 0 : by.bias[item.number];
#pragma unroll
        for (int j = 0; j < COLS / 8; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) acc[j][e] = start;
#if SPARSE
        size_t lines = (size_t)p.longest * (CLUSTER * ROWS); // behind the planes of values there are places
        const uint4 *places = (const uint4 *)(a + lines * LINE * p.per * (DIGITS ? 2 : p.segments)) +
                              (item.row(w, p) / 64 + group) * 128 + threadIdx.x % 128;
        for (u32 pass = 0; pass < item.passes; pass++)
            sum(acc, {pipeline, at, group, 0}, p.per, places, lines / 64 * 128);
#else
        sum(acc, {pipeline, at, group, 0}, p.per * item.passes);
#endif
        if (w.at(turn + 1) >= w.all && threadIdx.x == 128) launches_after(); // the cluster's last tile
        uint4 *to = part + (((size_t)(item.number * w.tiles + item.tile) * CLUSTER + w.rank) * GROUPS + group) * WORDS +
                    threadIdx.x % 128;
        if (DIGITS) store_sums(acc, to);
        else store_residues(acc, item.number, to);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) __cluster_dims__(CLUSTER, 1, 1)
    rfx(const u32 *__restrict__ rows, const char *__restrict__ ints, const void *__restrict__ values,
        const void *__restrict__ b, const u32 *__restrict__ q, const u32 *__restrict__ bias, u32 *c, uint4 *part,
        const Params p) {
    extern __shared__ __align__(1024) unsigned char smem[];
    Pipeline pipeline(shared_address(smem));
    Work w(p);
    if (threadIdx.x == 0) pipeline.start();
    cluster_sync();
    launches_before();
    u32 group = threadIdx.x / 128;
    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) copy_all(pipeline, w, ints, (const char *)(q + p.first), p);
        __syncwarp();
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        multiply(pipeline, w, group - 1, ints, part, p);
        __syncwarp();
    }
    cluster_sync(); // no CTA exits while the other copies to it or arrives at its barriers
}
