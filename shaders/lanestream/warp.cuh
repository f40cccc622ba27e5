// A consumer warp of staged.cu and few.cu: it expands its stream to operand A and multiplies.
// Layout Places on mma.m16n8k16, layout Pairs (PAIRS) on mma.sp.m16n8k32.

#pragma once
#include "tiles.cuh"

#define LATE (PAIRS || TILES == 4) // see Stream
// Bytes of the buffer that are repeated behind its end: beginning with the last row, a word of Places reads 15 more
// rows, a step of Pairs 16.
#define REPEATED ((MIRROR - 1 + PAIRS) * ROW_BYTES)
#define MASK_BYTES (PAIRS ? 384 : 256) // of a step's mask
#include "stream.cuh"
// A B of one column (B_VECTOR) lies in shared memory as chunks of 8 rows, CHUNK_ROW bytes apart. What lies between them
// are columns of the MMA shape that are not stored.
#define CHUNK_ROW (COLS * 16)

// With one tile of columns the lower and the upper halves of A's registers are multiplied separately, which takes fewer
// instructions than joining them.
#define APART (TILES == 1 && !PAIRS)
#define HALVES (APART ? 2 : 1)

// take_slots reads the 4 registers of A for 16 rows and 32 columns, two slots each. Bit 16X + 7 - i of the presence
// word says that register i takes the next word of the chain. shifted[i] is the presence word shifted left by i: the
// top bits of its bytes 2X and 2X + 1 say whether register i has the word's lower half and upper half.
// clang-format off
#define TAKE_SLOT(LABEL, BIT, X, SHIFTED) \
    "and.b32 t, %6, " BIT "; setp.eq.u32 none, t, 0; @none bra " LABEL "; add.u32 %4, %4, 128; " \
    LABEL ": add.u32 a, %4, %5; ld.shared.u32 w, [a]; prmt.b32 m, " SHIFTED ", 0, %15; and.b32 " X ", w, m;\n"
template <int X, int T>
__device__ __forceinline__ void take_slots(u32 presence, const u32 (&shifted)[8], u32 base, u32 &next, u32 (&x)[4]) {
    asm volatile("{.reg .pred none; .reg .b32 t, a, m, w;\n"
                 TAKE_SLOT("L0", "%11", "%0", "%7") TAKE_SLOT("L1", "%12", "%1", "%8")
                 TAKE_SLOT("L2", "%13", "%2", "%9") TAKE_SLOT("L3", "%14", "%3", "%10")
                 "}\n"
                 : "=&r"(x[0]), "=&r"(x[1]), "=&r"(x[2]), "=&r"(x[3]), "+&r"(next)
                 : "r"(base), "r"(presence), "r"(shifted[4 * T]), "r"(shifted[4 * T + 1]), "r"(shifted[4 * T + 2]),
                   "r"(shifted[4 * T + 3]),
                   "n"(1u << (16 * X + 7 - 4 * T)), "n"(1u << (16 * X + 6 - 4 * T)), "n"(1u << (16 * X + 5 - 4 * T)),
                   "n"(1u << (16 * X + 4 - 4 * T)),
                   "n"(X ? 0xbbaa : 0x9988));
}
// clang-format on
#undef TAKE_SLOT

// Warp multiplies one stream.
struct Warp {
    float acc[4][HALVES][TILES][4]; // sums of 16 rows each
    u32 next[2]; // offsets in the buffer: the next value of each of the lane's two chains; see multiply for Pairs

    // word multiplies 16 columns of A, layout Places.
    __device__ __forceinline__ void word(u32 mask, u32 base, u32 wrap, const u32 *b) {
        take_word<0>(*this, mask, base, wrap, b);
    }
    // add multiplies the i-th 16 rows of A by b, which has two registers for each tile of columns. x[r] is the lower
    // half of A's register r, x[4 + r] the upper one.
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

    // step multiplies 32 columns of A, layout Pairs. `places` has the columns of the slots as mma.sp takes them, b four
    // registers for each tile of columns.
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

    // steps multiplies a segment. `bits` is the address of the lane's mask, `from` that of its row of B.
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
#ifdef B_VECTOR
            if constexpr (PAIRS) {
#pragma unroll
                for (int t = 0; t < TILES; t++) ldmatrix(b[t], from + t * 128);
                step(words[s], presence[s], base, wrap, b);
            } else {
#pragma unroll
                for (int w = 0; w < 2; w++) {
#pragma unroll
                    for (int r = 0; r < 2 * TILES; r++)
                        b[r / 4][r % 4] = apart(from + (2 * w + r % 2) * CHUNK_ROW + r / 2 * 128);
                    word(w ? words[s].y : words[s].x, base, wrap, b[0]);
                }
            }
#else
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
#endif
        }
    }

    // apart reads two elements of a column that lie four apart, as Places needs them.
    static __device__ __forceinline__ u32 apart(u32 at) {
        u16 lo, hi;
        asm volatile("ld.shared.u16 %0, [%2]; ld.shared.u16 %1, [%2+8];" : "=h"(lo), "=h"(hi) : "r"(at) : "memory");
        return (u32)hi << 16 | lo;
    }

    // lane_row returns where a stage of B has the row whose address the lane gives to ldmatrix. For Pairs rows are in
    // their order. For Places half h of register k needs row 8·k + 4·h + q of 16. Of a column-major B it is where the
    // lane's first element lies, or for Pairs the chunk whose address it gives to ldmatrix.
    static __device__ __forceinline__ u32 lane_row(u32 lane) {
#ifdef B_VECTOR
        return PAIRS ? lane / 8 * CHUNK_ROW + lane % 8 * 16 : lane / 4 * 16 + lane % 4 * 2;
#else
        u32 i = lane % 8, matrix = lane / 8, r = 4 * (i & 1) + (i >> 1);
        if (PAIRS) return (8 * matrix + i) * COLS * 2 + swizzled(8 * matrix + i, 0);
        if (TILES == 1) return (8 * matrix + r) * 16;
        r += 8 * (matrix & 1);
        return r * COLS * 2 + swizzled(r, matrix >> 1);
#endif
    }

    // multiply does the whole stream, with segments of STEPS steps. The source S provides the rows of B: begin(lane) is
    // called once after the first loads were issued; wait() waits for the rows of the current segment; at(slot) returns
    // their address, where slot is that of the segment's mask; done(…) releases them, and the segment's slots, to the
    // next loads.
    template <int STEPS, class S> __device__ __forceinline__ void multiply(Stream &stream, S &source, u32 lane) {
#pragma unroll
        for (int i = 0; i < 4 * HALVES * TILES * 4; i++) (&acc[0][0][0][0])[i] = 0;
        if (stream.count == 0) return;
        source.begin(lane);
        u32 wrap = stream.slots * stream.segment_bytes, slot = 0, mask_slot = 0;
        next[0] = next[1] = 4 * lane + (PAIRS ? wrap - ROW_BYTES : 0); // for Pairs: the last word that was taken
        u32 arriving = 0, parity = 0; // the slot of the next segment to wait for, and its barrier's parity
        auto wait = [&] {
            barrier_wait(stream.barriers + 8 * arriving, parity);
            if (++arriving == stream.slots) arriving = 0, parity ^= 1;
        };
        for (u32 j = 0; j < stream.lookahead; j++) wait();
#pragma unroll 1
        for (u32 j = 0; j < stream.count; j++) {
            u32 in = LATE ? mask_slot : slot;
            wait();
            source.wait();
            steps<STEPS>(stream.masks + in * stream.mask_bytes + 8 * lane, source.template at<STEPS>(in), stream.at,
                         wrap);
            __syncwarp();
            source.template done<STEPS>(stream, slot, in);
            if (++slot == stream.slots) slot = 0;
            if (++mask_slot == stream.mask_slots) mask_slot = 0;
        }
        __syncwarp();
    }

    // write_sums writes the sums to shared memory.
    __device__ __forceinline__ void write_sums(float *sums, u32 lane) const {
        write_sum_pairs(sums, lane, [&](int i, int t, int h) {
            float x = acc[i][0][t][2 * h], y = acc[i][0][t][2 * h + 1];
            if (HALVES == 2) x += acc[i][HALVES - 1][t][2 * h], y += acc[i][HALVES - 1][t][2 * h + 1];
            return make_float2(x, y);
        });
    }
};
