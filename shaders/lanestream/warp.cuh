// A warp of staged.cu and few.cu: it brings its stream to a ring in shared memory by bulk copies, makes A's registers of it, and multiplies. For
// layout Places on mma.m16n8k16, for layout Pairs (PAIRS) on mma.sp.m16n8k32.

#pragma once
#include "tiles.cuh"

#define LATE (PAIRS || TILES == 4) // see Stream
#define REPEATED ((MIRROR - 1 + PAIRS) * ROW_BYTES) // of a ring: from its last row a word of Places reads 15 rows on, a step of Pairs 16
#define MASK_BYTES (PAIRS ? 384 : 256)   // of a step
// Where there is one tile only, A's lower and upper halves are multiplied apart: that is fewer instructions than joining them.
#define APART (TILES == 1 && !PAIRS)
#define HALVES (APART ? 2 : 1)

// take_at: as take, next being offsets from base; chain 1's values are 2 bytes behind chain 0's.
#define TAKE(LABEL, BIT, CHAIN, OFF, TO) \
    "and.b32 t, %10, " BIT "; setp.eq.u32 none, t, 0; @none bra " LABEL "; add.u32 a, " CHAIN ", %19; ld.shared.u16 " TO ", [a" OFF "]; add.u32 " CHAIN ", " CHAIN ", 128; " LABEL ":\n"
template <int BYTE> __device__ __forceinline__ void take_at(u32 mask, u32 base, u32 (&next)[2], u32 (&x)[8]) {
    asm volatile("{.reg .pred none; .reg .b32 t, a;\n"
                 "mov.b32 %0, 0; mov.b32 %1, 0; mov.b32 %2, 0; mov.b32 %3, 0; mov.b32 %4, 0; mov.b32 %5, 0; mov.b32 %6, 0; mov.b32 %7, 0;\n"
                 TAKE("L0", "%11", "%8", "+0", "%0") TAKE("L1", "%12", "%9", "+2", "%4") TAKE("L2", "%13", "%8", "+0", "%1") TAKE("L3", "%14", "%9", "+2", "%5")
                 TAKE("L4", "%15", "%8", "+0", "%2") TAKE("L5", "%16", "%9", "+2", "%6") TAKE("L6", "%17", "%8", "+0", "%3") TAKE("L7", "%18", "%9", "+2", "%7")
                 "}\n"
                 : "=&r"(x[0]), "=&r"(x[1]), "=&r"(x[2]), "=&r"(x[3]), "=&r"(x[4]), "=&r"(x[5]), "=&r"(x[6]), "=&r"(x[7]), "+&r"(next[0]), "+&r"(next[1])
                 : "r"(mask), "n"(1u << (8 * BYTE)), "n"(2u << (8 * BYTE)), "n"(4u << (8 * BYTE)), "n"(8u << (8 * BYTE)), "n"(16u << (8 * BYTE)),
                   "n"(32u << (8 * BYTE)), "n"(64u << (8 * BYTE)), "n"(128u << (8 * BYTE)), "r"(base));
}
#undef TAKE

// take_slots reads 4 registers of two slots each. Bit 7 - i of byte 2X of the presence word moves on to the next word of the chain,
// shifted[i] has at the top of its bytes 2X and 2X + 1 whether the lower and the upper half belong to the slots of group i.
#define TAKE(LABEL, BIT, X, SHIFTED) \
    "and.b32 t, %6, " BIT "; setp.eq.u32 none, t, 0; @none bra " LABEL "; add.u32 %4, %4, 128; " LABEL ": add.u32 a, %4, %5; ld.shared.u32 w, [a]; prmt.b32 m, " SHIFTED ", 0, %15; and.b32 " X ", w, m;\n"
template <int X, int T> __device__ __forceinline__ void take_slots(u32 presence, const u32 (&shifted)[8], u32 base, u32 &next, u32 (&x)[4]) {
    asm volatile("{.reg .pred none; .reg .b32 t, a, m, w;\n"
                 TAKE("L0", "%11", "%0", "%7") TAKE("L1", "%12", "%1", "%8") TAKE("L2", "%13", "%2", "%9") TAKE("L3", "%14", "%3", "%10")
                 "}\n"
                 : "=&r"(x[0]), "=&r"(x[1]), "=&r"(x[2]), "=&r"(x[3]), "+&r"(next)
                 : "r"(base), "r"(presence), "r"(shifted[4 * T]), "r"(shifted[4 * T + 1]), "r"(shifted[4 * T + 2]), "r"(shifted[4 * T + 3]),
                   "n"(1u << (16 * X + 7 - 4 * T)), "n"(1u << (16 * X + 6 - 4 * T)), "n"(1u << (16 * X + 5 - 4 * T)), "n"(1u << (16 * X + 4 - 4 * T)),
                   "n"(X ? 0xbbaa : 0x9988));
}
#undef TAKE

// shared_word reads a word of shared memory.
__device__ __forceinline__ u32 shared_word(u32 at) {
    u32 x;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(at) : "memory");
    return x;
}

// Stream is a stream of pieces, values and mask, and the ring that a warp brings them to. A slot of the ring has the rows of a
// piece, and behind the ring the first rows are repeated, so that a chain's next rows lie behind each other. Where room
// is scarce (LATE) a piece's mask comes with the last rows that are read with it, those of piece + window - 1: there are fewer slots for masks.
// (Elsewhere that takes registers which word has no longer.)
struct Stream {
    const unsigned char *values, *mask; // of the next piece
    u32 piece_bytes, mask_bytes;        // of a piece
    u32 count, total, ahead, late;      // pieces of the mask; of values, of which a step reads ahead; by how many the mask comes later
    u32 slots, mask_slots, at, masks, barriers; // in shared memory
    u32 coming = 0, left, to = 0;       // the next piece; bytes of values left, and where it goes in the ring

    // With a piece's mask come `beside` bytes, a multiple of 128, which lie behind the masks.
    __device__ __forceinline__ Stream(const Index &index, const u32 *mask_, const u16 *values_, const Params &p, u32 group, u32 part, u32 at_, u32 barriers_, u32 beside = 0)
        : at(at_), barriers(barriers_) {
        u64 stream = (u64)group * p.parts + part;
        u32 first = FIRST_PIECE(p, part), row = index.row(stream);
        left = (index.row(stream + 1) - row) * ROW_BYTES, piece_bytes = index.piece_rows(stream) * ROW_BYTES;
        ahead = p.window - 1, late = LATE ? ahead : 0, count = FIRST_PIECE(p, part + 1) - first, total = count + ahead;
        mask_bytes = p.steps * MASK_BYTES;
        slots = min((RING - REPEATED + late * (mask_bytes + beside)) / (piece_bytes + mask_bytes + beside), MOST_SLOTS), mask_slots = slots - late;
        masks = at + slots * piece_bytes + REPEATED;
        values = (const unsigned char *)values_ + (u64)row * ROW_BYTES;
        mask = (const unsigned char *)mask_ + ((u64)group * p.pieces + first) * mask_bytes;
    }

    // begin begins to bring the first pieces.
    __device__ __forceinline__ void begin() {
        if (count > 0)
            for (u32 j = 0; j < min(slots, total); j++) fetch(j, j - late);
    }
    // masked tells whether piece j of values comes with a mask.
    __device__ __forceinline__ bool masked(u32 j) const { return j >= late && j < count + late; }
    // fetch begins to bring the next piece, and tells whether a mask comes with it. All lanes call it, when they have done with what was in its slots.
    __device__ __forceinline__ bool fetch(u32 slot, u32 mask_slot) {
        u32 n = min(piece_bytes, left), again = to < REPEATED ? min(n, REPEATED - to) : 0; // bytes that are there twice
        u32 bits = coming >= late && coming < count + late ? mask_bytes : 0, barrier = barriers + 8 * slot;
        if (Ring::elected()) {
            barrier_expect(barrier, n + again + bits);
            if (n > 0) Ring::bulk(at + to, values, n, barrier);
            if (again > 0) Ring::bulk(at + slots * piece_bytes + to, values, again, barrier);
            if (bits > 0) Ring::bulk(masks + mask_slot * mask_bytes, mask, bits, barrier);
        }
        values += n, left -= n, mask += bits, coming++;
        to = slot + 1 == slots ? 0 : to + piece_bytes;
        return bits > 0;
    }
};

// Warp is a warp's work on its stream.
struct Warp {
    float acc[4][HALVES][TILES][4]; // of 16 rows each
    u32 next[2];                    // where the ring has the next values of the lane's chains, in shared memory

    // word multiplies 16 columns of A, layout Places.
    __device__ __forceinline__ void word(u32 mask, u32 base, u32 wrap, const u32 *b) {
        u32 x[2][8];
        take_at<0>(mask, base, next, x[0]);
        take_at<1>(mask, base, next, x[1]);
        add(0, x[0], b);
        take_at<2>(mask, base, next, x[0]);
        add(1, x[1], b);
        take_at<3>(mask, base, next, x[1]);
        add(2, x[0], b);
        add(3, x[1], b);
#pragma unroll
        for (int h = 0; h < 2; h++) next[h] = __viaddmin_u32(next[h], 0u - wrap, next[h]);
    }
    // add multiplies tile i. b has two registers for each tile of columns.
    __device__ __forceinline__ void add(int i, const u32 (&x)[8], const u32 *b) {
        if constexpr (APART) {
            u32 lo[4] = {x[0], x[1], x[2], x[3]}, hi[4] = {x[4], x[5], x[6], x[7]};
#pragma unroll
            for (int t = 0; t < TILES; t++) {
                mma<ELEM>(acc[i][0][t], lo, b[2 * t], b[2 * t + 1]);
                mma<ELEM>(acc[i][HALVES - 1][t], hi, b[2 * t] >> 16, b[2 * t + 1] >> 16);
            }
        } else {
            u32 a[4];
#pragma unroll
            for (int r = 0; r < 4; r++) a[r] = x[4 + r] * 65536 + x[r];
#pragma unroll
            for (int t = 0; t < TILES; t++) mma<ELEM>(acc[i][0][t], a, b[2 * t], b[2 * t + 1]);
        }
    }

    // step multiplies 32 columns of A, layout Pairs. b has four registers for each tile of columns.
    __device__ __forceinline__ void step(uint2 places, u32 presence, u32 base, u32 wrap, const u32 (&b)[TILES][4]) {
        u32 shifted[8], x[2][4];
#pragma unroll
        for (int i = 0; i < 8; i++) shifted[i] = presence << i;
        take_slots<0, 0>(presence, shifted, base, next[0], x[0]);
        take_slots<0, 1>(presence, shifted, base, next[0], x[1]);
#pragma unroll
        for (int t = 0; t < TILES; t++) mma_sparse<ELEM>(acc[0][0][t], x[0], b[t], places.x, false);
        take_slots<1, 0>(presence, shifted, base, next[0], x[0]);
#pragma unroll
        for (int t = 0; t < TILES; t++) mma_sparse<ELEM>(acc[1][0][t], x[1], b[t], places.x, true);
        take_slots<1, 1>(presence, shifted, base, next[0], x[1]);
#pragma unroll
        for (int t = 0; t < TILES; t++) mma_sparse<ELEM>(acc[2][0][t], x[0], b[t], places.y, false);
#pragma unroll
        for (int t = 0; t < TILES; t++) mma_sparse<ELEM>(acc[3][0][t], x[1], b[t], places.y, true);
        next[0] = __viaddmin_u32(next[0], 0u - wrap, next[0]);
    }

    // steps multiplies a piece, of which the lane has the mask at `bits` and its row of B at `from`.
    template <int STEPS> __device__ __forceinline__ void steps(u32 bits, u32 from, u32 base, u32 wrap) {
        uint2 words[STEPS];
        u32 presence[STEPS];
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
            words[s] = shared_words(bits + s * MASK_BYTES);
            if (PAIRS) presence[s] = shared_word(bits + s * MASK_BYTES + 256 - 4 * (threadIdx.x % 32));
        }
#pragma unroll
        for (int s = 0; s < STEPS; s++, from += STEP_COLS * COLS * 2) {
            u32 b[TILES][4];
            if constexpr (PAIRS) {
#pragma unroll
                for (int t = 0; t < TILES; t++) ldmatrix_trans(b[t], from ^ (t * 16));
                step(words[s], presence[s], base, wrap, b);
            } else if constexpr (TILES == 1) {
                ldmatrix_trans(b[0], from);
                word(words[s].x, base, wrap, b[0]);
                word(words[s].y, base, wrap, b[0] + 2);
            } else {
#pragma unroll
                for (int w = 0; w < 2; w++) {
#pragma unroll
                    for (int t = 0; t < TILES / 2; t++) ldmatrix_trans(b[t], (from ^ (t * 32)) + w * 16 * COLS * 2);
                    word(w ? words[s].y : words[s].x, base, wrap, b[0]);
                }
            }
        }
    }

    // lane_row is where a stage of B has the row that the lane names for ldmatrix. For Places half h of register k has row 8·k +
    // 4·h + q of 16, for Pairs rows are in their order.
    static __device__ __forceinline__ u32 lane_row(u32 lane) {
        u32 i = lane % 8, matrix = lane / 8, r = 4 * (i & 1) + (i >> 1);
        if (PAIRS) return (8 * matrix + i) * COLS * 2 + swizzled(8 * matrix + i, 0);
        if (TILES == 1) return (8 * matrix + r) * 16;
        r += 8 * (matrix & 1);
        return r * COLS * 2 + swizzled(r, matrix >> 1);
    }

    // multiply does the whole stream, with pieces of STEPS steps. The rows of B come from a source: it begins when all that is needed is on its way; its at(slot) is where those of the
    // next piece are, of which the mask is in that slot, wait waits for them, done says that they are done with; and fetch begins to bring some, with the barrier
    // of a piece.
    template <int STEPS, class S> __device__ __forceinline__ void multiply(Stream &stream, S &source, u32 lane) {
#pragma unroll
        for (int i = 0; i < 4 * HALVES * TILES * 4; i++) (&acc[0][0][0][0])[i] = 0;
        if (stream.count == 0) return;
        source.begin(lane);
        u32 wrap = stream.slots * stream.piece_bytes, slot = 0, mask_slot = 0;
        next[0] = next[1] = 4 * lane + (PAIRS ? wrap - ROW_BYTES : 0); // for Pairs the last word that was taken
        u32 arriving = 0, parity = 0;                                  // the slot of the next piece to wait for
        auto wait = [&] {
            barrier_wait(stream.barriers + 8 * arriving, parity);
            if (++arriving == stream.slots) arriving = 0, parity ^= 1;
        };
        for (u32 j = 0; j < stream.ahead; j++) wait();
#pragma unroll 1
        for (u32 j = 0; j < stream.count; j++) {
            u32 in = LATE ? mask_slot : slot;
            wait();
            source.wait();
            steps<STEPS>(stream.masks + in * stream.mask_bytes + 8 * lane, source.template at<STEPS>(in), stream.at, wrap);
            __syncwarp();
            source.done();
            if (stream.coming < stream.total) {
                bool masked = stream.fetch(slot, in);
                source.template fetch<STEPS>(masked, stream.barriers + 8 * slot, in);
            }
            if (++slot == stream.slots) slot = 0;
            if (++mask_slot == stream.mask_slots) mask_slot = 0;
        }
        __syncwarp();
    }

    // leave writes the sums to shared memory.
    __device__ __forceinline__ void leave(float *sums, u32 lane) const {
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int t = 0; t < TILES; t++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    float x = acc[i][0][t][2 * h], y = acc[i][0][t][2 * h + 1];
                    if (HALVES == 2) x += acc[i][HALVES - 1][t][2 * h], y += acc[i][HALVES - 1][t][2 * h + 1];
                    *(float2 *)(sums + (16 * i + 8 * h + lane / 4) * PITCH + 8 * t + 2 * (lane % 4)) = make_float2(x, y);
                }
        __syncwarp();
    }
};
