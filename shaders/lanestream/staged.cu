// Lane streams × COLS columns of B (8, 16 or 32) on compute capability 9.0, for many rows. As kernel.cu, but B is brought to shared
// memory by a warp of its own, in stages of as many rows as a piece has columns, for all warps of a part; and the rest is
// done by REST_WARPS warps beside those of the streams. For layout Places on mma.m16n8k16, for layout Pairs (PAIRS) on
// mma.sp.m16n8k32.

#define B_ROWS STEP_COLS
#define FIRST_PIECE(p, part) ((p).pieces * (part) / (p).parts) // as first_piece, without 64 bits: there are fewer than 2^26 pieces, and at most 32 parts
#include "stages.cuh"

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

    __device__ __forceinline__ Stream(const Index &index, const u32 *mask_, const u16 *values_, const Params &p, u32 group, u32 part, u32 at_, u32 barriers_)
        : at(at_), barriers(barriers_) {
        u64 stream = (u64)group * p.parts + part;
        u32 first = FIRST_PIECE(p, part), row = index.row(stream);
        left = (index.row(stream + 1) - row) * ROW_BYTES, piece_bytes = index.piece_rows(stream) * ROW_BYTES;
        ahead = p.window - 1, late = LATE ? ahead : 0, count = FIRST_PIECE(p, part + 1) - first, total = count + ahead;
        mask_bytes = p.steps * MASK_BYTES;
        slots = min((RING - REPEATED + late * mask_bytes) / (piece_bytes + mask_bytes), MOST_SLOTS), mask_slots = slots - late;
        masks = at + slots * piece_bytes + REPEATED;
        values = (const unsigned char *)values_ + (u64)row * ROW_BYTES;
        mask = (const unsigned char *)mask_ + ((u64)group * p.pieces + first) * mask_bytes;
    }

    // begin begins to bring the first pieces.
    __device__ __forceinline__ void begin() {
        if (count > 0)
            for (u32 j = 0; j < min(slots, total); j++) fetch(j, j - late);
    }
    // fetch begins to bring the next piece. All lanes call it, when they have done with what was in its slots.
    __device__ __forceinline__ void fetch(u32 slot, u32 mask_slot) {
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

    // multiply does the whole stream, with pieces of STEPS steps.
    template <int STEPS> __device__ __forceinline__ void multiply(Stream &stream, const Panel &panel, const Params &p, u32 lane) {
#pragma unroll
        for (int i = 0; i < 4 * HALVES * TILES * 4; i++) (&acc[0][0][0][0])[i] = 0;
        if (stream.count == 0) return;
        u32 wrap = stream.slots * stream.piece_bytes, slot = 0, mask_slot = 0, from = panel.at + lane_row(lane), stage = 0, full = 0;
        next[0] = next[1] = 4 * lane + (PAIRS ? wrap - ROW_BYTES : 0); // for Pairs the last word that was taken
        u32 arriving = 0, parity = 0;                                  // the slot of the next piece to wait for
        auto wait = [&] {
            barrier_wait(stream.barriers + 8 * arriving, parity);
            if (++arriving == stream.slots) arriving = 0, parity ^= 1;
        };
        for (u32 j = 0; j < stream.ahead; j++) wait();
#pragma unroll 1
        for (u32 j = 0; j < stream.count; j++) {
            wait();
            barrier_wait(panel.full + 8 * stage, full);
            steps<STEPS>(stream.masks + (LATE ? mask_slot : slot) * stream.mask_bytes + 8 * lane, from + stage * panel.stage, stream.at, wrap);
            __syncwarp();
            if (Ring::elected()) arrive(panel.empty + 8 * stage);
            if (++stage == panel.stages) stage = 0, full ^= 1;
            if (stream.coming < stream.total) stream.fetch(slot, LATE ? mask_slot : slot);
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

// Rest is a warp's work on rows of the rest. Of a row TILES lanes have 8 columns each, and a lane has ROWS rows at once: all go through
// B's rows from the first to the last, so that those which rows of A share are found in the first-level cache. While rows of B are on
// their way, the next entries are, too.
template <int ROWS, int AT_ONCE> struct Rest {
    static const int TOGETHER = 32 / TILES; // rows of a warp that are neighbours
    float x[ROWS][8];

    // add does rows first to first + TOGETHER - 1, then those `apart` further, and so on, all before `last`.
    __device__ __forceinline__ void add(const Index &index, const u16 *values, const u16 *b, const Params &p, u32 first, u32 apart, u32 last, u32 col, u32 lane) {
        col += lane % TILES * 8;
        const u16 *from = b + (col < p.ldb ? col : 0), *rest = index.rest_values(values);
        const u32 *cols = index.rest_cols(p);
        u32 at[ROWS], end[ROWS], k[ROWS][AT_ONCE], v[ROWS][AT_ONCE];
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            u32 row = first + lane / TILES + i * apart;
            at[i] = end[i] = 0;
            if (row < last) at[i] = index.rest_at(row), end[i] = index.rest_at(row + 1);
#pragma unroll
            for (int n = 0; n < AT_ONCE; n++) k[i][n] = 0;
#pragma unroll
            for (int j = 0; j < 8; j++) x[i][j] = 0;
        }
        auto load = [&] {
            bool some = false;
#pragma unroll
            for (int i = 0; i < ROWS; i++) {
                some |= at[i] < end[i];
#pragma unroll
                for (int n = 0; n < AT_ONCE; n++) {
                    v[i][n] = 0; // past the end the column stays: a row of B that was read
                    if (at[i] + n < end[i]) k[i][n] = __ldg(cols + at[i] + n), v[i][n] = __ldg(rest + at[i] + n);
                }
                at[i] += AT_ONCE;
            }
            return __any_sync(~0u, some);
        };
        bool some = load();
#pragma unroll 1
        while (some) {
            uint4 y[ROWS][AT_ONCE];
            float f[ROWS][AT_ONCE];
#pragma unroll
            for (int i = 0; i < ROWS; i++)
#pragma unroll
                for (int n = 0; n < AT_ONCE; n++) y[i][n] = __ldg((const uint4 *)(from + (u64)k[i][n] * p.ldb)), f[i][n] = widen_lo<ELEM>(v[i][n]);
            some = load();
#pragma unroll
            for (int i = 0; i < ROWS; i++)
#pragma unroll
                for (int n = 0; n < AT_ONCE; n++) {
                    u32 words[4] = {y[i][n].x, y[i][n].y, y[i][n].z, y[i][n].w};
#pragma unroll
                    for (int j = 0; j < 4; j++) {
                        x[i][2 * j] = fmaf(f[i][n], widen_lo<ELEM>(words[j]), x[i][2 * j]);
                        x[i][2 * j + 1] = fmaf(f[i][n], widen_hi<ELEM>(words[j]), x[i][2 * j + 1]);
                    }
                }
        }
    }
    // leave writes the sums of rows as add says to rows of sums of which the first is at `sums`, or adds them to what is there.
    template <bool ADD> __device__ __forceinline__ void leave(float *sums, u32 apart, u32 last, u32 lane) const {
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            u32 row = lane / TILES + i * apart;
            float *to = sums + row * PITCH + lane % TILES * 8;
            if (row < last)
#pragma unroll
                for (int j = 0; j < 8; j++) to[j] = ADD ? to[j] + x[i][j] : x[i][j];
        }
    }
};
// What is done beside the streams, and what after them.
typedef Rest<TILES == 1 ? 2 : 3, TILES == 1 ? 4 : 3> Aside;
typedef Rest<2, 4> After;
#define ASIDE_ROWS (TILES == 1 ? 2 : 3)

// PairEntries gives an output from its row's entries alone, layout Pairs.
struct PairEntries : Entries {
    __device__ __forceinline__ void take(Special &s, u64 value, u64 k, u32 col) const {
        if (index.stored(*p, value)) add(s, values[value], k, col);
    }
    __device__ __forceinline__ float operator()(u32 row, u32 col) const {
        Special s;
        u32 r = row % GROUP_ROWS, group = row / GROUP_ROWS;
        for (u32 part = 0; part < p->parts; part++)
            for (u32 lane = 4 * (r % 8); lane < 4 * (r % 8) + 4; lane++) {
                u64 last = (u64)index.row((u64)group * p->parts + part) * 64 + 2 * lane - 64;
                for (u32 step = FIRST_PIECE(*p, part) * p->steps; step < FIRST_PIECE(*p, part + 1) * p->steps; step++) {
                    const u32 *words = mask + ((u64)group * p->pieces * p->steps + step) * 96;
                    for (u32 i = 0; i < 16; i++) {
                        u32 bits = words[64 + lane] >> (16 * (i >> 3) + 7 - (i & 7)), half = i >> 1 & 1;
                        u32 code = words[((lane & ~3u) + (i >> 2 & 1) * 2 + half) * 2 + (i >> 3)] >> (4 * (lane % 4) + 16 * (i & 1));
                        u64 k = (u64)step * STEP_COLS + 16 * half + 4 * (lane % 4);
                        bool mine = (i >> 2 << 1 | (i & 1)) == r >> 3;
                        if (bits & 1) last += 64;
                        if (mine && bits & 1) take(s, last, k + (code & 3), col);
                        if (mine && bits & 256) take(s, last + 1, k + (code >> 2 & 3), col);
                    }
                }
            }
        rest(s, row, col);
        return s.result();
    }
};
#if PAIRS
typedef PairEntries RowEntries;
#else
typedef Entries RowEntries;
#endif

// cluster_leave waits for the cluster's blocks, without an order of writes.
__device__ __forceinline__ void cluster_leave() { asm volatile("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;" ::: "memory"); }

// rest_sums is where the sums of a warp of the rest are, from the start of shared memory.
__device__ __forceinline__ u32 rest_sums(u32 number) {
    return RING >= 2 * SUMS ? number * RING + SUMS : (WARPS * (RING + MOST_SLOTS * 8) + B_PARTS * (B_BYTES + B_STAGES * 16) + 127) / 128 * 128 + number * SUMS;
}

extern "C" __global__ void __launch_bounds__(32 * (WARPS + PRODUCERS + REST_WARPS), 1) __cluster_dims__(CLUSTER, 1, 1)
    ENTRY(const u32 *__restrict__ index_, const u32 *__restrict__ mask, const u16 *__restrict__ values, const u16 *__restrict__ b,
          const float *__restrict__ bias, void *__restrict__ c, const __grid_constant__ Params p) {
    extern __shared__ __align__(128) unsigned char smem[];
    u32 warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0), lane = threadIdx.x % 32, rank = blockIdx.x % CLUSTER, number = rank * WARPS + warp;
    u32 first = blockIdx.x / CLUSTER * p.each, part = number / p.each, group = first + number % p.each, col = blockIdx.y * COLS;
    u32 ring = shared_address(smem) + warp * RING, panels = shared_address(smem) + WARPS * RING, barriers = panels + B_PARTS * B_BYTES;
    u32 mine = barriers + B_PARTS * B_STAGES * 16 + warp * MOST_SLOTS * 8;
    u32 first_part = rank * WARPS / p.each;
    auto part_groups = [&](u32 q) { // of part q those that are this block's
        u32 lo = max(q * p.each, rank * WARPS), hi = min(q * p.each + min(p.each, p.groups - first), rank * WARPS + WARPS);
        return q < p.parts && lo < hi ? hi - lo : 0;
    };
    bool straight = COLS == 8 && p.ldb == 8 && p.cols % (p.steps * STEP_COLS) == 0;
    if (lane == 0) { // a barrier's address is the same in a warp: one lane and few barriers each are fastest
        if (warp < WARPS)
            for (int i = 0; i < MOST_SLOTS; i++) barrier_init(mine + 8 * i, 1);
        for (u32 i = warp; i < B_PARTS * 2 * B_STAGES; i += WARPS + PRODUCERS + REST_WARPS) {
            u32 full = straight ? 1 : LANES, empty = max(part_groups(first_part + i / (2 * B_STAGES)), 1);
            barrier_init(barriers + 8 * i, i / B_STAGES % 2 ? empty : full);
        }
        barrier_fence();
    }
    __syncwarp();
    Index index(index_, p);
    // The rest is done beside the streams where that takes no more rows than its warps have.
    bool beside = CLUSTER * REST_WARPS * ASIDE_ROWS * Aside::TOGETHER >= p.each * GROUP_ROWS;
    bool streams = warp < WARPS && part < p.parts && group < p.groups;
    if (streams) {
        Warp w;
        Stream stream(index, mask, values, p, group, part, ring, mine);
        Panel panel(p, panels, barriers, part - first_part);
        __syncthreads();
        stream.begin();
        if (p.steps == 4) w.multiply<4>(stream, panel, p, lane);
        else if (p.steps == 2) w.multiply<2>(stream, panel, p, lane);
        else w.multiply<1>(stream, panel, p, lane);
        float *sums = (float *)(smem + warp * RING);
        w.leave(sums, lane);
        if (!beside) { // each part some rows
            u32 share = (GROUP_ROWS + p.parts - 1) / p.parts, end = min(share * part + share, GROUP_ROWS);
            launches_before();
            for (u32 r = share * part; r < end; r += 2 * After::TOGETHER) {
                After rest;
                rest.add(index, values, b, p, group * GROUP_ROWS + r, After::TOGETHER, min(group * GROUP_ROWS + end, p.rows), col, lane);
                rest.leave<true>(sums + r * PITCH, After::TOGETHER, end - r, lane);
            }
        }
    } else {
        __syncthreads();
        if (warp >= WARPS && warp < WARPS + PRODUCERS) {
            launches_before();
            launches_after(); // the next launch may fetch its A now
            u32 which = (warp - WARPS) * 32 / LANES + lane / LANES;
            bring(Panel(p, panels, barriers, which), b, p, first_part + which, col, part_groups(first_part + which) > 0, straight, lane);
        }
    }
    __syncwarp();
#if REST_WARPS > 0
    if (warp < WARPS + PRODUCERS) __syncthreads();
    else {
        Aside rest;
        u32 unit = rank * REST_WARPS + warp - WARPS - PRODUCERS, apart = CLUSTER * REST_WARPS * Aside::TOGETHER;
        if (beside) {
            launches_before();
            rest.add(index, values, b, p, first * GROUP_ROWS + unit * Aside::TOGETHER, apart, min((first + p.each) * GROUP_ROWS, p.rows), col, lane);
        }
        __syncthreads(); // the rings are done with
        if (beside) rest.leave<false>((float *)(smem + rest_sums(warp - WARPS - PRODUCERS)), Aside::TOGETHER, ~0u, lane);
        __syncwarp();
    }
#endif
    cluster_sync();
    RowEntries entries{index, mask, values, b, &p};
    Out<Params> out({c, bias}, p);
    launches_before();
    for (u32 i = warp < WARPS ? rank * 32 * WARPS + threadIdx.x : ~0u; i < p.each * GROUP_ROWS * (COLS / 4); i += CLUSTER * 32 * WARPS) {
        u32 of = i / (GROUP_ROWS * (COLS / 4)), r = i / (COLS / 4) % GROUP_ROWS, at = i % (COLS / 4) * 4, row = (first + of) * GROUP_ROWS + r;
        if (row >= p.rows) break;
        if (col + at >= p.n) continue;
        float4 x = make_float4(0, 0, 0, 0);
        for (u32 q = of, end = p.parts * p.each; q < end; q += 4 * p.each) {
            float4 y[4];
#pragma unroll
            for (int k = 0; k < 4; k++) {
                u32 s = q + k * p.each;
                y[k] = make_float4(0, 0, 0, 0);
                if (s < end) y[k] = cluster_load4(shared_address(smem) + s % WARPS * RING + (r * PITCH + at) * 4, s / WARPS);
            }
#pragma unroll
            for (int k = 0; k < 4; k++) x.x += y[k].x, x.y += y[k].y, x.z += y[k].z, x.w += y[k].w;
        }
        if (beside) {
            u32 of_rest = of * GROUP_ROWS + r, unit = of_rest / Aside::TOGETHER % (CLUSTER * max(REST_WARPS, 1)), i = of_rest / Aside::TOGETHER / (CLUSTER * max(REST_WARPS, 1));
            u32 from = rest_sums(unit % max(REST_WARPS, 1)) + ((i * Aside::TOGETHER + r % Aside::TOGETHER) * PITCH + at) * 4;
            float4 y = cluster_load4(shared_address(smem) + from, unit / max(REST_WARPS, 1));
            x.x += y.x, x.y += y.y, x.z += y.z, x.w += y.w;
        }
        out.store(row, col + at, x, entries);
    }
    __syncwarp();
    cluster_leave(); // no block leaves while the other reads its sums
}
