// A warp's ring of pieces, and the stages of B that warps of their own bring to shared memory, as in staged.cu: for quantised.cu, whose steps multiply
// B_ROWS rows of B and have MASK_BYTES bytes of the mask.

#pragma once
#include "lanestream.cuh"

#define TILES (COLS / 8)
#define PITCH (COLS + 4)                 // of a row of sums in shared memory
#define SUMS (GROUP_ROWS * PITCH * 4)    // bytes of a group's sums
#define LANES (32 * PRODUCERS / B_PARTS) // that bring a part of B

// barrier_test tells whether the barrier's phase of this parity has ended.
__device__ __forceinline__ bool barrier_test(u32 barrier, u32 parity) {
    u32 r;
    asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }" : "=r"(r) : "r"(barrier), "r"(parity) : "memory");
    return r;
}
__device__ __forceinline__ void arrive(u32 barrier) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory"); }

// Stream is a stream of pieces, values and mask, and the ring that a warp brings them to. A slot of the ring has the rows of a
// piece, and behind the ring the first rows are repeated, so that a chain's next rows lie behind each other.
struct Stream {
    const unsigned char *values, *mask; // of the next piece
    u32 piece_bytes, mask_bytes;        // of a piece
    u32 count, total;                   // pieces of the mask, and of either
    u32 slots, at, masks, barriers;     // in shared memory
    u32 coming = 0, left, to = 0;       // the next piece; bytes of values left, and where it goes in the ring

    __device__ __forceinline__ Stream(const Index &index, const u32 *mask_, const u16 *values_, const Params &p, u32 group, u32 part, u32 at_, u32 barriers_)
        : at(at_), barriers(barriers_) {
        u64 stream = (u64)group * p.parts + part;
        u32 first = first_piece(p, part), row = index.row(stream);
        left = (index.row(stream + 1) - row) * ROW_BYTES, piece_bytes = index.piece_rows(stream) * ROW_BYTES, count = first_piece(p, part + 1) - first;
        total = max(count, (left + piece_bytes - 1) / piece_bytes);
        mask_bytes = p.steps * MASK_BYTES;
        slots = min((RING - MIRROR * ROW_BYTES) / (piece_bytes + mask_bytes), MOST_SLOTS);
        masks = at + slots * piece_bytes + MIRROR * ROW_BYTES;
        values = (const unsigned char *)values_ + (u64)row * ROW_BYTES;
        mask = (const unsigned char *)mask_ + ((u64)group * p.pieces + first) * mask_bytes;
    }

    // fetch begins to bring the next piece. All lanes call it, when they have done with the piece that was in its slot.
    __device__ __forceinline__ void fetch(u32 slot) {
        u32 n = min(piece_bytes, left), again = to < MIRROR * ROW_BYTES ? min(n, MIRROR * ROW_BYTES - to) : 0; // bytes that are there twice
        u32 bits = coming < count ? mask_bytes : 0, barrier = barriers + 8 * slot;
        if (Ring::elected()) {
            barrier_expect(barrier, n + again + bits);
            if (n > 0) Ring::bulk(at + to, values, n, barrier);
            if (again > 0) Ring::bulk(at + slots * piece_bytes + to, values, again, barrier);
            if (bits > 0) Ring::bulk(masks + slot * mask_bytes, mask, bits, barrier);
        }
        values += n, left -= n, mask += mask_bytes, coming++;
        to = slot + 1 == slots ? 0 : to + piece_bytes;
    }
};

// Panel is a part of B on its way through shared memory.
struct Panel {
    u32 at, full, empty; // its stages, and their barriers
    u32 stages, stage;   // number, bytes

    __device__ __forceinline__ Panel(const Params &p, u32 at_, u32 barriers, u32 number) {
        stage = p.steps * B_ROWS * COLS * 2;
        stages = min(B_BYTES / stage, B_STAGES);
        at = at_ + number * B_BYTES, full = barriers + number * B_STAGES * 16, empty = full + B_STAGES * 8;
    }
};

// swizzled returns where chunk c (of 8 columns) of row k lies in its row.
__device__ __forceinline__ u32 swizzled(u32 k, u32 c) {
    return TILES == 1 ? 0 : TILES == 2 ? (c ^ (k >> 2 & 1)) * 16 : (c ^ (k >> 1 & 3)) * 16;
}

// bring is the work of the warps that bring B's rows, for each part with LANES lanes. (With waits on the barriers in place of looks and
// sleeps all other warps are slower.)
__device__ __forceinline__ void bring(const Panel &panel, const u16 *b, const Params &p, u32 part, u32 col, bool any, bool straight, u32 lane) {
    u32 first = first_piece(p, part), count = any ? first_piece(p, part + 1) - first : 0, rows = p.steps * B_ROWS, slot = 0, parity = 1, j = 0;
    u32 l = lane % LANES, c = l % TILES, row = first * rows + l / TILES, to = l / TILES * COLS * 2;
    bool in = col + 8 * c < p.ldb;
    const u16 *from = b + (in ? col + 8 * c : 0);
    while (__any_sync(~0u, j < count)) {
        bool go = j < count && barrier_test(panel.empty + 8 * slot, parity);
        if (go) {
            u32 at = panel.at + slot * panel.stage, full = panel.full + 8 * slot;
            if (straight) {
                if (l == 0) {
                    barrier_expect(full, panel.stage);
                    Ring::bulk(at, b + (u64)(first + j) * rows * COLS, panel.stage, full);
                }
            } else {
#pragma unroll 4
                for (u32 k = 0; k < rows; k += LANES / TILES, row += LANES / TILES)
                    copy<16>(at + to + k * COLS * 2 + swizzled(k + l / TILES, c), from + (u64)min(row, p.cols - 1) * p.ldb, in && row < p.cols ? 16 : 0);
                asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(full) : "memory");
            }
            j++;
            if (++slot == panel.stages) slot = 0, parity ^= 1;
        }
        if (!__any_sync(~0u, go)) __nanosleep(20);
    }
}

// after_launches waits until what was launched before is done. Before that only A is read.
__device__ __forceinline__ void after_launches() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
