// group24.cu for few columns. A cluster computes (128 or 64 × WIDTH), WIDTH = 64 or 128. Its two CTAs split K: they
// take 256 columns of A alternately, so that there is work for the whole device. With DEEP = 1 a tile has 128 rows, and
// each of the two consumer warpgroups of a CTA multiplies half of them. With DEEP = 2 it has 64 rows, and the
// warpgroups split K too. The SPLITS = 2·DEEP warpgroups with the same rows exchange partial sums: each totals its
// share of the columns of C, in a fixed order.

#pragma once

template <int WIDTH, int DEEP> struct Few {
    static constexpr u32 TALL = 1; // tiles of 64 rows of a consumer warpgroup
    static constexpr u32 PIECES = TALL * 2 / DEEP, TILE_ROWS = 64 * PIECES, SPLITS = 2 * DEEP;
    static constexpr u32 TILE = WIDTH / 64 * SLAB, STAGE_BYTES = TILE + PIECES * PIECE_VALUES;
    static constexpr u32 ROOM = SHARED_BYTES / STAGE_BYTES / DEEP,
                         RING = ROOM < MOST_STAGES / DEEP ? ROOM : MOST_STAGES / DEEP; // stages of a split
    static constexpr u32 EIGHTS = WIDTH / 8 / SPLITS; // tiles of 8 columns that a warpgroup totals
    static constexpr u32 SUMS = TALL * (WIDTH / 8) * 128 * 16; // bytes, of a group: by tile, then thread
    static_assert(CLUSTER == 2, "two blocks");
    static_assert(2 * SUMS <= SHARED_BYTES && RING >= 2 && EIGHTS % 2 == 0, "sums are written where stages were");

    u32 pipeline, full, empty;
    u32 rank, row, col, steps;

    __device__ __forceinline__ Few(u32 smem, const Params &p)
        : pipeline(smem), full(pipeline + SHARED_BYTES), empty(full + 8 * MOST_STAGES) {
        rank = blockIdx.x % 2, row = blockIdx.x / 2 % p.blocks * TILE_ROWS, col = blockIdx.x / 2 / p.blocks * WIDTH;
        steps = pieces24(p);
    }
    // A's columns are cut into SPLITS shares. first is the first step of one, of_share the number of its steps; step i
    // is at(share, i).
    __device__ __forceinline__ u32 share(u32 group) const { return DEEP * rank + group % DEEP; }
    __device__ __forceinline__ u32 first(u32 share) const { return 4 * share; }
    __device__ __forceinline__ u32 of_share(u32 share) const {
        return steps / (4 * SPLITS) * 4 + min(max(steps % (4 * SPLITS), first(share)) - first(share), 4);
    }
    __device__ __forceinline__ u32 at(u32 share, u32 i) const { return i / 4 * (4 * SPLITS) + first(share) + i % 4; }

    // lines is in_lines for these tiles: a column-major B has those of 128 columns.
    static __device__ __forceinline__ bool lines(const Params &p) { return WIDTH == 128 && in_lines(p); }

    __device__ __forceinline__ void start() const {
        for (u32 s = 0; s < DEEP * RING; s++) {
            barrier_init(full + 8 * s, 1);
            barrier_init(empty + 8 * s, 2 / DEEP);
        }
        barrier_fence();
    }

    __device__ __forceinline__ void produce(const unsigned char *values, const TileMap *map, const Params &p) const {
        u32 stage = 0, parity = 1, slabs = lines(p) ? WIDTH / 64 : slabs_inside(p, col, WIDTH / 64);
        auto left = [&](u32 s, u32 k) {
            u32 bar = full + 8 * s;
            barrier_expect(bar, slabs * SLAB + PIECES * PIECE_VALUES);
            bulk_copy(pipeline + s * STAGE_BYTES + TILE,
                      values + (((u64)(row / 256) * steps + k) * 4 + row % 256 / 64) * PIECE_VALUES,
                      PIECES * PIECE_VALUES, bar, 1 << rank);
        };
        for (u32 i = 0; i < RING; i++)
            for (u32 d = 0; d < DEEP; d++)
                if (i < of_share(share(d))) left(d * RING + i, at(share(d), i));
        launches_before();
        for (u32 i = 0; i < of_share(share(0)); i++) { // the others have no more
            for (u32 d = 0; d < DEEP; d++) {
                if (i >= of_share(share(d))) continue;
                u32 k = at(share(d), i), s = d * RING + stage, to = pipeline + s * STAGE_BYTES, bar = full + 8 * s;
                if (i >= RING) {
                    barrier_wait(empty + 8 * s, parity);
                    left(s, k);
                }
                if (lines(p)) tile_copy(to, map, col, k * DEPTH, bar, 1 << rank);
                else
                    for (u32 j = 0; j < slabs; j++)
                        tile_copy(to + j * SLAB, map, k * DEPTH, col + 64 * j, bar, 1 << rank);
            }
            if (++stage == RING) stage = 0, parity ^= 1;
        }
    }

    // multiply is the work of group 0 or 1. All threads of the cluster meet once, here or elsewhere.
    template <int TRANS, class F>
    __device__ __forceinline__ void multiply(u32 group, const uint4 *places, Dest to, const Params &p,
                                             REMAINDER remainder, F recompute) const {
        float acc[TALL][WIDTH / 8][4] = {};
        u32 lane = threadIdx.x % 128, stage = 0, parity = 0, before, mine = share(group),
            down = DEEP == 1 ? group * TALL : 0;
        const uint4 *from =
            places + (((u64)(row / 256) * fours24(p) + first(mine) / 4) * 4 + row % 256 / 64 + down) * 128 + lane;
        u32 strip = row + down * 64 + lane / 32 * 16,
            split = col + mine * EIGHTS * 8; // what the warp stores in the end
        auto more = remainder.template gather<TALL, 64, EIGHTS>(p);
        more.look(strip);
        more.find();
        launches_before(); // what it reads of B, and C, the launches before may still write and read
        launches_after();
        more.start(split);
        auto look = [&](u32 four, u32(&x)[TALL][4]) {
#pragma unroll
            for (int i = 0; i < TALL; i++) load_places(x[i], from + (u64)four * SPLITS * 512 + i * 128);
        };
        auto step = [&](u32 k, u32(&x)[TALL][4], int at, u32(&y)[TALL][4], int last) {
            u32 s = group % DEEP * RING + stage, b = pipeline + s * STAGE_BYTES, a = b + TILE + down * PIECE_VALUES;
            barrier_wait(full + 8 * s, parity);
            multiply_pieces<TRANS>(acc, a, b, x, at);
            if (k > 0) {
                wgmma_wait<1>(); // the step before is done
#pragma unroll
                for (int i = 0; i < TALL; i++) wgmma_held(y[i][last]);
                if (lane == 0) barrier_arrive(empty + 8 * before, rank);
            }
            before = s;
            if (++stage == RING) stage = 0, parity ^= 1;
        };
        u32 held[2][TALL][4];
        four_steps<TALL>(of_share(mine), held, look, step);
#pragma unroll
        for (int i = 0; i < TALL; i++) wgmma_hold(acc[i]);
        group_sync(2 * 128, 1); // nothing is read of the stages any more, and nothing more comes
#pragma unroll
        for (u32 s = 0; s < SPLITS; s++)
            if (s != mine) give(acc, s, pipeline + group * SUMS + lane * 16);
        __syncwarp();
        cluster_sync();
#pragma unroll
        for (u32 s = 0; s < SPLITS; s++)
            if (s == mine) {
                float sums[TALL][EIGHTS][4];
                take(sums, acc, s, group, lane);
                more.add(sums);
#pragma unroll
                for (int i = 0; i < TALL; i++) store_inside(sums[i], to, p, strip + i * 64, split, recompute);
            }
    }

    // give writes the sums of a part to shared memory, for the group that adds them up.
    static __device__ __forceinline__ void give(const float (&acc)[TALL][WIDTH / 8][4], u32 split, u32 to) {
#pragma unroll
        for (u32 i = 0; i < TALL; i++)
#pragma unroll
            for (u32 j = split * EIGHTS; j < (split + 1) * EIGHTS; j++)
                asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to + (i * (WIDTH / 8) + j) * 2048),
                             "f"(acc[i][j][0]), "f"(acc[i][j][1]), "f"(acc[i][j][2]), "f"(acc[i][j][3])
                             : "memory");
    }

    // take adds up the sums of the group's own part.
    __device__ __forceinline__ void take(float (&sums)[TALL][EIGHTS][4], const float (&acc)[TALL][WIDTH / 8][4],
                                         u32 split, u32 group, u32 lane) const {
#pragma unroll
        for (u32 i = 0; i < TALL; i++)
#pragma unroll
            for (u32 j = 0; j < EIGHTS; j++) {
                float4 other[SPLITS];
                u32 tile = i * (WIDTH / 8) + split * EIGHTS + j;
#pragma unroll
                for (u32 s = 0; s < SPLITS; s++)
                    if (s != split)
                        other[s] = cluster_load4(
                            pipeline + (DEEP == 1 ? group : s % 2) * SUMS + tile * 2048 + lane * 16, s / DEEP);
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    float x = 0;
#pragma unroll
                    for (u32 s = 0; s < SPLITS; s++) x += s == split ? acc[i][split * EIGHTS + j][e] : (&other[s].x)[e];
                    sums[i][j][e] = x;
                }
            }
    }
};
