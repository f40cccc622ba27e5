// group24.cu for few columns: tiles of 64 rows by WIDTH columns (64 or 128). The two blocks of a cluster, and the two
// groups of warps of each, take A's columns in turn, 64 at a time, so that there is work for the whole device; the four
// sums of an output are then added in this order.

#pragma once

template <int WIDTH> struct Few {
    static constexpr u32 TILE = WIDTH / 64 * SLAB, STAGE_BYTES = TILE + 1024 * ((PIECE_VALUES + PIECE_PLACES + 1023) / 1024);
    static constexpr u32 PITCH = WIDTH + 8, SUMS = 64 * PITCH; // f32, of a group
    static constexpr u32 ROOM = (SHARED_BYTES - 2 * SUMS * 4) / STAGE_BYTES, RING = ROOM < MOST_STAGES ? ROOM : MOST_STAGES;
    static_assert(CLUSTER == 2 && BLOCKS_DOWN == 1, "two blocks, and whole tiles of B");

    u32 ring, full, empty;
    float *sums;
    u32 rank, row, col, steps, mine; // steps of the row, of this block: rank, rank + 2, …

    __device__ __forceinline__ Few(unsigned char *smem, const Params &p) : ring(shared_address(smem)), full(ring + SHARED_BYTES), empty(full + 8 * MOST_STAGES) {
        sums = (float *)(smem + RING * STAGE_BYTES);
        rank = blockIdx.x % 2, row = blockIdx.x / 2 % p.blocks * 64, col = blockIdx.x / 2 / p.blocks * WIDTH;
        steps = pieces24(p), mine = (steps + 1 - rank) / 2;
    }

    __device__ __forceinline__ void start() const {
        for (u32 s = 0; s < RING; s++) {
            barrier_init(full + 8 * s, 1);
            barrier_init(empty + 8 * s, 4); // warps
        }
        barrier_fence();
    }

    __device__ __forceinline__ void bring(const unsigned char *values, const unsigned char *places, const TileMap *map, const Params &p) const {
        u32 stage = 0, parity = 1, slabs = slabs_inside(p, col, WIDTH / 64);
        for (u32 i = 0; i < mine; i++) {
            u32 k = rank + 2 * i, to = ring + stage * STAGE_BYTES, bar = full + 8 * stage;
            u64 piece = ((u64)(row / 256) * steps + k) * 4 + row % 256 / 64;
            barrier_wait(empty + 8 * stage, parity);
            barrier_expect(bar, slabs * SLAB + PIECE_VALUES + PIECE_PLACES);
            bulk_copy(to + TILE, values + piece * PIECE_VALUES, PIECE_VALUES, bar, 1 << rank);
            bulk_copy(to + TILE + PIECE_VALUES, places + piece * PIECE_PLACES, PIECE_PLACES, bar, 1 << rank);
            for (u32 j = 0; j < slabs; j++) tile_copy(to + j * SLAB, map, k * DEPTH, col + 64 * j, bar, 1 << rank);
            if (++stage == RING) stage = 0, parity ^= 1;
        }
    }

    // multiply is the work of group 0 or 1. All threads of the cluster meet once, here or elsewhere.
    template <class F> __device__ __forceinline__ void multiply(u32 group, void *c, const Params &p, F recompute) const {
        float acc[WIDTH / 8][4] = {};
        u32 lane = threadIdx.x % 128, stage = group, parity = 0, before;
        auto step = [&](u32 i, u32 &places, u32 &last) {
            u32 b = ring + stage * STAGE_BYTES, a = b + TILE;
            barrier_wait(full + 8 * stage, parity);
            places = load_shared(a + PIECE_VALUES + 4 * lane);
            wgmma_fence();
            wgmma_sparse<ELEM, 0>(acc, rows_of_8(a), swizzled(b, SLAB), places);
            wgmma_sparse<ELEM, 1>(acc, rows_of_8(a + PIECE_VALUES / 2), swizzled(b + SLAB / 2, SLAB), places);
            wgmma_commit();
            if (i > group) {
                wgmma_wait<1>(); // the step before is done
                wgmma_held(last);
                __syncwarp();
                if (lane % 32 == 0) barrier_arrive(empty + 8 * before, rank);
            }
            before = stage;
            stage += 2;
            if (stage >= RING) stage -= RING, parity ^= 1;
        };
        u32 places[2];
#pragma unroll 1
        for (u32 i = group; i < mine; i += 4) {
            step(i, places[0], places[1]);
            if (i + 2 < mine) step(i + 2, places[1], places[0]);
        }
        wgmma_wait<0>();
        wgmma_hold(acc);
        wgmma_held(places[0]);
        wgmma_held(places[1]);
        float *to = sums + group * SUMS + (lane / 32 * 16 + lane % 32 / 4) * PITCH + lane % 4 * 2;
#pragma unroll
        for (int j = 0; j < WIDTH / 8; j++) {
            *(float2 *)(to + 8 * j) = make_float2(acc[j][0], acc[j][1]);
            *(float2 *)(to + 8 * PITCH + 8 * j) = make_float2(acc[j][2], acc[j][3]);
        }
        __syncwarp();
        cluster_sync();
        write(group * 128 + lane, c, p, recompute);
    }

    // write adds the four groups' sums of half the rows.
    template <class F> __device__ __forceinline__ void write(u32 thread, void *c, const Params &p, F recompute) const {
        Out<Params> out(c, p);
        u32 at = shared_address(sums);
        for (u32 i = thread; i < 32 * (WIDTH / 4); i += THREADS - 128) {
            u32 r = rank * 32 + i / (WIDTH / 4), j = i % (WIDTH / 4) * 4;
            float4 x = make_float4(0, 0, 0, 0);
#pragma unroll
            for (u32 s = 0; s < 4; s++) {
                float4 y = cluster_load(at + 4 * (s % 2 * SUMS + r * PITCH + j), s / 2);
                x.x += y.x, x.y += y.y, x.z += y.z, x.w += y.w;
            }
            out.store(row + r, col + j, x, recompute);
        }
    }
};
