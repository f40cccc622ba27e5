// group24.cu for few columns: tiles of 64 rows by WIDTH columns (64 or 128). So that there is work for the whole device, the
// two blocks of a cluster, and the two groups of warps of each, share A's columns: each takes 256, every 1024. The four
// sums of an output are then added in this order.

#pragma once

template <int WIDTH> struct Few {
    static constexpr u32 TILE = WIDTH / 64 * SLAB, STAGE_BYTES = TILE + PIECE_VALUES;
    static constexpr u32 PITCH = WIDTH + 8, SUMS = 64 * PITCH; // f32, of a group
    static constexpr u32 ROOM = (SHARED_BYTES - 2 * SUMS * 4) / STAGE_BYTES / 2, RING = ROOM < MOST_STAGES / 2 ? ROOM : MOST_STAGES / 2; // of a group
    static_assert(CLUSTER == 2 && BLOCKS_DOWN == 1, "two blocks, and whole tiles of B");

    u32 ring, full, empty;
    float *sums;
    u32 rank, row, col, steps;

    __device__ __forceinline__ Few(unsigned char *smem, const Params &p) : ring(shared_address(smem)), full(ring + SHARED_BYTES), empty(full + 8 * MOST_STAGES) {
        sums = (float *)(smem + 2 * RING * STAGE_BYTES);
        rank = blockIdx.x % 2, row = blockIdx.x / 2 % p.blocks * 64, col = blockIdx.x / 2 / p.blocks * WIDTH;
        steps = pieces24(p);
    }
    // first is the first step of a group, share the number of its steps; step i is at(group, i).
    __device__ __forceinline__ u32 first(u32 group) const { return 4 * (2 * rank + group); }
    __device__ __forceinline__ u32 share(u32 group) const { return steps / 16 * 4 + min(max(steps % 16, first(group)) - first(group), 4); }
    __device__ __forceinline__ u32 at(u32 group, u32 i) const { return i / 4 * 16 + first(group) + i % 4; }

    __device__ __forceinline__ void start() const {
        for (u32 s = 0; s < 2 * RING; s++) {
            barrier_init(full + 8 * s, 1);
            barrier_init(empty + 8 * s, 1);
        }
        barrier_fence();
    }

    __device__ __forceinline__ void bring(const unsigned char *values, const TileMap *map, const Params &p) const {
        u32 stage = 0, parity = 1, slabs = slabs_inside(p, col, WIDTH / 64);
        for (u32 i = 0; i < share(0); i++) { // group 1 has no more
            for (u32 group = 0; group < 2; group++) {
                if (i >= share(group)) continue;
                u32 k = at(group, i), s = group * RING + stage, to = ring + s * STAGE_BYTES, bar = full + 8 * s;
                barrier_wait(empty + 8 * s, parity);
                barrier_expect(bar, slabs * SLAB + PIECE_VALUES);
                bulk_copy(to + TILE, values + (((u64)(row / 256) * steps + k) * 4 + row % 256 / 64) * PIECE_VALUES, PIECE_VALUES, bar, 1 << rank);
                for (u32 j = 0; j < slabs; j++) tile_copy(to + j * SLAB, map, k * DEPTH, col + 64 * j, bar, 1 << rank);
            }
            if (++stage == RING) stage = 0, parity ^= 1;
        }
    }

    // multiply is the work of group 0 or 1. All threads of the cluster meet once, here or elsewhere.
    template <class F> __device__ __forceinline__ void multiply(u32 group, const uint4 *places, Dest to, const Params &p, F recompute) const {
        float acc[WIDTH / 8][4] = {};
        u32 lane = threadIdx.x % 128, stage = 0, parity = 0, before;
        const uint4 *from = places + (((u64)(row / 256) * fours24(p) + first(group) / 4) * 4 + row % 256 / 64) * 128 + lane;
        auto look = [&](u32 four, u32 (&x)[1][4]) { load_places(x[0], from + (u64)four * 4 * 512); };
        auto step = [&](u32 i, u32 (&x)[1][4], int at, u32 (&y)[1][4], int last) {
            u32 s = group * RING + stage, b = ring + s * STAGE_BYTES, a = b + TILE;
            barrier_wait(full + 8 * s, parity);
            wgmma_fence();
            wgmma_sparse<ELEM, 0>(acc, rows_of_8(a), swizzled(b, SLAB), x[0][at]);
            wgmma_sparse<ELEM, 1>(acc, rows_of_8(a + PIECE_VALUES / 2), swizzled(b + SLAB / 2, SLAB), x[0][at]);
            wgmma_commit();
            if (i > 0) {
                wgmma_wait<1>(); // the step before is done
                wgmma_held(y[0][last]);
                if (lane == 0) barrier_arrive(empty + 8 * before, rank);
            }
            before = s;
            if (++stage == RING) stage = 0, parity ^= 1;
        };
        u32 held[2][1][4];
        four_steps<1>(share(group), held, look, step);
        wgmma_hold(acc);
        float *mine = sums + group * SUMS + (lane / 32 * 16 + lane % 32 / 4) * PITCH + lane % 4 * 2;
#pragma unroll
        for (int j = 0; j < WIDTH / 8; j++) {
            *(float2 *)(mine + 8 * j) = make_float2(acc[j][0], acc[j][1]);
            *(float2 *)(mine + 8 * PITCH + 8 * j) = make_float2(acc[j][2], acc[j][3]);
        }
        __syncwarp();
        cluster_sync();
        write(group * 128 + lane, to, p, recompute);
    }

    // write adds the four groups' sums of half the rows: four columns at a time, or one.
    template <class F> __device__ __forceinline__ void write(u32 thread, Dest to, const Params &p, F recompute) const {
        Out<Params> out(to, p);
        u32 at = shared_address(sums) + rank * 32 * PITCH * 4, width = min(p.n - col, WIDTH);
        if (out.plain && width % 4 == 0) {
            for (u32 i = thread; i < 32 * (width / 4); i += THREADS - 128) {
                u32 r = i / (width / 4), j = i % (width / 4) * 4;
                float4 x = make_float4(0, 0, 0, 0);
#pragma unroll
                for (u32 s = 0; s < 4; s++) {
                    float4 y = cluster_load4(at + 4 * (s % 2 * SUMS + r * PITCH + j), s / 2);
                    x.x += y.x, x.y += y.y, x.z += y.z, x.w += y.w;
                }
                out.store(row + rank * 32 + r, col + j, x, recompute);
            }
            return;
        }
        for (u32 i = thread; i < 32 * width; i += THREADS - 128) {
            u32 r = i / width, j = i % width, y = row + rank * 32 + r;
            float x = 0;
#pragma unroll
            for (u32 s = 0; s < 4; s++) x += cluster_load(at + 4 * (s % 2 * SUMS + r * PITCH + j), s / 2);
            if ((__float_as_uint(x) & 0x7f800000) == 0x7f800000) x = mended(p, y, col + j, make_float4(x, 0, 0, 0), recompute).x;
            if (y < p.rows) put(to, p, y, col + j, p.alpha * x);
        }
    }

    // put writes one element of C.
    static __device__ __forceinline__ void put(Dest to, const Params &p, u32 row, u32 col, float x) {
        u64 at = (u64)row * p.ldc + col;
        u32 type = store_type(p.store);
        float *f = (float *)to.c + at;
        u16 *h = (u16 *)to.c + at;
        if (p.beta != 0) x += p.beta * (type == F32 ? *f : type == F16 ? widen_lo<F16>(*h) : widen_lo<BF16>(*h));
        if (has_epilogue(p.store)) x = epilogue(x, p.store, to.bias, row, col);
        if (type == F32) *f = x;
        else *h = (u16)narrow(x, 0, type);
    }
};
