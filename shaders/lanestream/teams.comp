// Computes: C (rows × n) = alpha·A·B + beta·C for few columns, A (rows × cols) as lane streams, f16, sums in f32, on
// cooperative matrices of a known lane layout (../include/lanes.glsl): staged.cu for Vulkan.
// Tile: a workgroup of SUBS subgroups computes (64·p.each × 8·TILES). Each subgroup takes a stream of a group, or every
// n-th stream if the group has more than its subgroups. Partial sums of a group's streams are added in order at the
// end.
// Data movement: shared memory holds, for each subgroup, the segments of values that a step may read from, one behind
// the other, and with STAGE_B a step's rows of B. The next segment, mask and rows of B are prefetched to registers, and
// after a segment all move to the front: this needs little shared memory, which leaves room for many subgroups. Operand
// A is made as in kernel.cu. Lane 4g + q has columns TILES·g to TILES·g + TILES - 1 of B, so that column g of tile i is
// column TILES·g + i of the workgroup's; it has rows q, q + 4, q + 8 and q + 12 of each 16.
// Bound by: instructions that expand the masks, then the bytes of A.

#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shared_memory_block : require

layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
layout(constant_id = 1) const uint SUBS = 8;
layout(constant_id = 2) const uint TILES = 1; // of 8 columns: 1, 2 or 4
layout(constant_id = 3) const uint ROOM = 42; // rows of 128 bytes of shared memory for each subgroup
layout(constant_id = 4) const uint SEGMENT = 17; // rows of values of a segment, at most
layout(constant_id = 5) const uint ROWS = 336; // rows of 128 bytes of shared memory: all subgroups', or their sums
layout(constant_id = 6) const bool STAGE_B = true; // B goes through shared memory

#define ELEM F16
#include "lanestream.glsl"
#include "../include/store_halves.glsl"
#include "../include/lanes.glsl"

shared Words_ { uint v[ROWS * 32]; }
words;
shared Octets_ { uvec4 v[ROWS * 8]; }
octets; // the same memory
shared Twins_ { uvec2 v[ROWS * 16]; }
twins;
shared Halves_ { float16_t v[ROWS * 64]; }
halves;
#include "chains.glsl"

const uint WIDE = 8 * TILES;
const uint PITCH = WIDE + 4; // of a row of sums in shared memory
const uint BANDS = TILES; // of a group's rows: shared memory has room for the sums of one band at a time
const uint BAND = GROUP_ROWS / BANDS;
const uint SUM_WORDS = BAND * PITCH;

SUM sums[4 * TILES]; // sums[i·TILES + t]: the i-th 16 rows, tile t

uint lane() { return gl_SubgroupInvocationID; }
uint room() { return gl_SubgroupID * ROOM; } // the subgroup's first row of 128 bytes

void sync() {
    subgroupMemoryBarrierShared();
    subgroupBarrier();
}

uint segmentRows; // rows of values of a segment
uint octet, last; // the lane's first octet of the stream's values; the last octet of all values
const uint LOADS = (SEGMENT + 3) / 4; // octets of a segment that each lane loads
uvec4 lookahead[LOADS]; // those of the next segment

// fetch starts loading segment j if it is due. All lanes load, needed or not, because the compiler waits for loads at
// the end of a branch.
void fetch(uint j, bool due) {
    uint from = due ? octet + j * segmentRows * 8 : last;
    [[unroll]] for (uint i = 0; i < LOADS; i++)
        lookahead[i] = Octets(uvec2(p.values)).v[min(from + i * 32, last)];
}

// keep writes the segment that was loaded behind `others` segments of the subgroup.
void keep(uint others) {
    uint n = segmentRows * 8, to = room() * 8 + lane() + others * n;
    [[unroll]] for (uint i = 0; i < LOADS; i++)
        if (i * 32 + lane() < n) octets.v[to + i * 32] = lookahead[i];
}

// move drops the first segment: it moves the others to the front, and writes the one that was loaded behind them. Lanes
// also read past the last segment; the table provides enough shared memory for that.
void move() {
    uint n = segmentRows * 8, to = room() * 8 + lane();
    for (uint k = 1; k < p.window; k++) {
        uvec4 x[LOADS];
        [[unroll]] for (uint i = 0; i < LOADS; i++)
            x[i] = octets.v[to + n + i * 32];
        [[unroll]] for (uint i = 0; i < LOADS; i++)
            if (i * 32 + lane() < n) octets.v[to + i * 32] = x[i];
        to += n;
    }
    [[unroll]] for (uint i = 0; i < LOADS; i++)
        if (i * 32 + lane() < n) octets.v[to + i * 32] = lookahead[i];
}

uvec4 aheadOfB[TILES]; // the next step's 32 rows of B, row by row: the lane's octets

// fetchB starts loading B's rows from `row` on, and columns from `col` on. Rows past the last are read as the last one:
// A has zeros there. Columns past the leading dimension are read as its last ones; they are never stored. launch
// refuses a B of 2^31 elements or more.
void fetchB(uint row, uint col) {
    [[unroll]] for (uint i = 0; i < TILES; i++) {
        uint e = i * 32 + lane();
        aheadOfB[i] = Octets(uvec2(p.b))
                          .v[min(row + e / TILES, p.cols - 1) * (p.ldb / 8) + min(col / 8 + e % TILES, p.ldb / 8 - 1)];
    }
}

// tileOfB returns the first octet of the subgroup's rows of B in shared memory.
uint tileOfB() { return (room() + ROOM) * 8 - 32 * TILES; } // octets

void keepB() {
    [[unroll]] for (uint i = 0; i < TILES; i++)
        octets.v[tileOfB() + i * 32 + lane()] = aheadOfB[i];
}

// Columns is the lane's elements of B for one word of the mask (16 columns of A): four rows, its TILES columns.
struct Columns {
    uvec2 row[4];
};
layout(buffer_reference, std430, buffer_reference_align = 2) readonly buffer Singles { float16_t v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Doubles { uint v[]; };

// stagedRows reads rows q, q + 4, q + 8 and q + 12 of word w from shared memory.
Columns stagedRows(uint w) {
    Columns c;
    uint first = tileOfB() * 8 + (lane() & 3u) * WIDE + TILES * (lane() >> 2); // elements
    [[unroll]] for (uint i = 0; i < 4; i++) {
        uint e = first + (16 * w + 4 * i) * WIDE;
        if (TILES == 1) c.row[i] = uvec2(packFloat2x16(f16vec2(halves.v[e], float16_t(0))), 0);
        else if (TILES == 2) c.row[i] = uvec2(words.v[e / 2], 0);
        else c.row[i] = twins.v[e / 4];
    }
    return c;
}

// rowsOfB reads rows row, row + 4, row + 8 and row + 12 from memory, columns from col on.
Columns rowsOfB(uint row, uint col) {
    Columns c;
    [[unroll]] for (uint i = 0; i < 4; i++) {
        uint at_ = min(row + 4 * i, p.cols - 1) * p.ldb + col;
        if (TILES == 1) c.row[i] = uvec2(packFloat2x16(f16vec2(Singles(uvec2(p.b)).v[at_], float16_t(0))), 0);
        else if (TILES == 2) c.row[i] = uvec2(Doubles(uvec2(p.b)).v[at_ / 2], 0);
        else c.row[i] = Pairs(uvec2(p.b)).v[at_ / 4];
    }
    return c;
}

// operandOfB returns operand B for tile i.
OPERAND_B operandOfB(Columns c, uint i) {
    OPERAND_B y;
    [[unroll]] for (uint k = 0; k < 4; k++) {
        f16vec2 x = unpackFloat2x16(i < 2 ? c.row[k].x : c.row[k].y);
        y[k] = i % 2 == 0 ? x.x : x.y;
    }
    return y;
}

// word multiplies 16 columns of A. `from` has the numbers of the next words of the lane's two chains.
void word(uint mask, inout uvec2 from, Columns c) {
    OPERAND_B y[TILES];
    [[unroll]] for (uint t = 0; t < TILES; t++)
        y[t] = operandOfB(c, t);
    [[unroll]] for (uint i = 0; i < 4; i++) {
        OPERAND_A x = tileOfA(mask, i, from);
        [[unroll]] for (uint t = 0; t < TILES; t++)
            sums[i * TILES + t] = coopMatMulAdd(x, y[t], sums[i * TILES + t]);
    }
}

// multiply adds the product of one stream. col is the workgroup's first column.
void multiply(uint group, uint split, uint col) {
    uint stream = group * p.splits + split, first = firstSegment(split) * p.steps,
         steps = firstSegment(split + 1) * p.steps - first;
    if (steps == 0) return;
    octet = rowAt(stream) * 8 + lane(), last = max(rowAt(streams()) * 8, 1) - 1;
    segmentRows = segmentRowsAt(stream);
    Pairs masks = Pairs(maskAt(group, first));
    uint place = first * STEP_COLS, q = lane() & 3u, mine = col + TILES * (lane() >> 2);
    mine = mine < p.ldb ? mine : 0;
    uvec2 bits = masks.v[lane()];
    Columns c0, c1;
    if (STAGE_B) fetchB(place, col);
    else c0 = rowsOfB(place + q, mine), c1 = rowsOfB(place + 16 + q, mine);
    sync();
    if (STAGE_B) keepB();
    for (uint j = 0; j < p.window; j++) {
        fetch(j, true);
        keep(j);
    }
    sync();
    uvec2 from = uvec2(room() * 32 + lane());
    [[dont_unroll]] for (uint s = 1, n = 0, j = p.window; s <= steps; s++) {
        uint next = min(s, steps - 1);
        bool due = n + 1 == p.steps; // this step is the last of its segment
        fetch(j, due);
        uvec2 ahead_ = masks.v[next * 32 + lane()];
        if (STAGE_B) {
            fetchB(place + next * STEP_COLS, col);
            c0 = stagedRows(0), c1 = stagedRows(1);
            word(bits.x, from, c0);
            word(bits.y, from, c1);
        } else {
            word(bits.x, from, c0);
            c0 = rowsOfB(place + next * STEP_COLS + q, mine);
            word(bits.y, from, c1);
            c1 = rowsOfB(place + next * STEP_COLS + 16 + q, mine);
        }
        bits = ahead_;
        sync();
        if (STAGE_B) keepB();
        n++;
        if (due) {
            n = 0;
            j++;
            move();
            from -= segmentRows * 32;
        }
        sync();
    }
}

// writeSums writes the sums of a band of rows to shared memory.
void writeSums(uint band) {
    uint g = lane() >> 2, t = lane() & 3u, to = gl_SubgroupID * SUM_WORDS;
    [[unroll]] for (uint i = 0; i < 4; i++) {
        if (i / (4 / BANDS) != band) continue;
        [[unroll]] for (uint k = 0; k < TILES; k++)
            [[unroll]] for (uint e = 0; e < 4; e++)
                words.v[to + (16 * (i % (4 / BANDS)) + 8 * (e / 2) + g) * PITCH + TILES * (2 * t + e % 2) + k] =
                floatBitsToUint(sums[i * TILES + k][e]);
    }
    sync();
}

// addRemainders adds this subgroup's share of a band's COO remainder to its sums in shared memory. TILES lanes work on
// a row, each with 8 columns.
void addRemainders(uint first, uint share, uint shares, uint base) {
    uint to = lane() % TILES * 8;
    for (uint r = lane() / TILES; r < BAND; r += 32 / TILES) {
        uint row = first + r, at_ = gl_SubgroupID * SUM_WORDS + r * PITCH + to;
        if (row >= p.rows) break;
        float x[8];
        [[unroll]] for (uint e = 0; e < 8; e++)
            x[e] = uintBitsToFloat(words.v[at_ + e]);
        addRemainder(row, share, shares, base + to, x);
        [[unroll]] for (uint e = 0; e < 8; e++)
            words.v[at_ + e] = floatBitsToUint(x[e]);
    }
}

// store adds the partial sums of a band of each group, in the order of K, and stores them in C.
void store(uint first, uint band, uint shares, uint base) {
    for (uint i = gl_LocalInvocationIndex; i < p.each * BAND * (WIDE / 4); i += 32 * SUBS) {
        uint of = i / (BAND * (WIDE / 4)), r = i / (WIDE / 4) % BAND, to = i % (WIDE / 4) * 4, j = base + to;
        uint group = first + of, inGroup = band * BAND + r, row = group * GROUP_ROWS + inGroup;
        if (row >= p.rows || j >= p.n) continue;
        vec4 x = vec4(0);
        for (uint q = 0; q < shares; q++) {
            uint from = (q * p.each + of) * SUM_WORDS + r * PITCH + to;
            x += uintBitsToFloat(uvec4(words.v[from], words.v[from + 1], words.v[from + 2], words.v[from + 3]));
        }
        x = repair(group, inGroup, j, x);
        if (storeType == F16) storeHalves(row, j, x);
        else storeFloats(row, j, x);
    }
}

void main() {
    uint block = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width, base = gl_WorkGroupID.y * WIDE;
    uint first = block * p.each, share = gl_SubgroupID / p.each, shares = min(SUBS / p.each, p.splits);
    if (first >= p.groups) return;
    uint group = first + gl_SubgroupID % p.each;
    bool any = share < shares && group < p.groups;
    [[unroll]] for (uint i = 0; i < 4 * TILES; i++)
        sums[i] = SUM(0.0);
    if (any)
        for (uint split = share; split < p.splits; split += shares) multiply(group, split, base);
    barrier();
    [[unroll]] for (uint band = 0; band < BANDS; band++) {
        if (any) {
            writeSums(band);
            addRemainders(group * GROUP_ROWS + band * BAND, share, shares, base);
        }
        barrier();
        store(first, band, shares, base);
        if (band + 1 < BANDS) barrier();
    }
}
