// Lane streams × few columns with operands made lane by lane (../include/lanes.glsl), f16 with sums in f32: kernel.cu for
// Vulkan.
//
// A workgroup of SUBS subgroups does p.each groups of 64 rows, by 8·TILES columns: a subgroup has a stream, or every SUBS'th
// where a group has more parts. It keeps a ring of the pieces of values that a step may read from in shared memory; the next
// piece is on its way to registers while one is multiplied. A's registers are made as kernel.cu makes them. B's come from
// memory: lane (g, q) reads columns TILES·g and on of rows q, q + 4, q + 8 and q + 12 of each 16, so that column g of tile i is
// column TILES·g + i of the block's. Then the parts of a group are added up in their order.

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
layout(constant_id = 1) const uint SUBS = 4;
layout(constant_id = 2) const uint TILES = 1;   // of 8 columns: 1, 2 or 4
layout(constant_id = 3) const uint ROOM = 50;   // rows of values that a subgroup has room for in shared memory, or 64 rows of sums
layout(constant_id = 4) const uint PIECE = 17;  // rows of a piece, at most

#define ELEM F16
#include "lanestream.glsl"
#include "../include/store_halves.glsl"
#include "../include/lanes.glsl"

shared Words_ { uint v[SUBS * ROOM * 32]; } words;
shared Octets_ { uvec4 v[SUBS * ROOM * 8]; } octets; // the same
shared Halves_ { float16_t v[SUBS * ROOM * 64]; } halves;
#define HALF(i) halves.v[i]
#include "chains.glsl"

const uint WIDE = 8 * TILES;
const uint PITCH = WIDE + 4;  // of a row of sums in shared memory

SUM sums[4 * TILES]; // of 16 rows each

// The values of a stream, and where they are in shared memory, in words.
uint rows, pieceRows; // of values
uvec2 values;
uint ring, wrap;      // its first word and number of words, without the mirror

const uint LOADS = (PIECE + 3) / 4; // octets of a piece for each lane
uvec4 ahead[LOADS]; // the next piece's

// fetch begins to bring piece j. All lanes load, some what is not needed: the compiler waits for what is loaded in a branch.
void fetch(uint j) {
    uint row = min(j * pieceRows, rows), n = min(pieceRows, rows - row) * 8, lane = gl_SubgroupInvocationID;
    uvec2 from = n > 0 ? at(values, row, 128) : uvec2(p.values);
    uint last = max(n, 1) - 1;
    [[unroll]] for (uint i = 0; i < LOADS; i++) ahead[i] = Octets(from).v[min(i * 32 + lane, last)];
}

// keep puts the piece that was fetched into a slot of the ring.
void keep(uint slot) {
    uint lane = gl_SubgroupInvocationID;
    [[unroll]] for (uint i = 0; i < LOADS; i++)
        if (i * 32 + lane < pieceRows * 8) {
            uint to = slot * pieceRows * 8 + i * 32 + lane;
            octets.v[ring / 4 + to] = ahead[i];
            if (to < MIRROR * 8) octets.v[ring / 4 + wrap / 4 + to] = ahead[i];
        }
}

// B's rows for a word of the mask, 16 columns of A: the lane's columns of four of them.
struct Columns { uvec2 row[4]; };
layout(buffer_reference, std430, buffer_reference_align = 2) readonly buffer Singles { uint16_t v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Doubles { uint v[]; };

// rowsOfB reads rows `row` to row + 12 by fours, from column col on. Rows past the last are the last: A has zeros there. The
// table sees to it that B has less than 2^31 elements.
Columns rowsOfB(uint row, uint col) {
    Columns c;
    [[unroll]] for (uint i = 0; i < 4; i++) {
        uint at_ = min(row + 4 * i, p.cols - 1) * p.ldb + col;
        if (TILES == 1) c.row[i] = uvec2(uint(Singles(uvec2(p.b)).v[at_]), 0);
        else if (TILES == 2) c.row[i] = uvec2(Doubles(uvec2(p.b)).v[at_ / 2], 0);
        else c.row[i] = Pairs(uvec2(p.b)).v[at_ / 4];
    }
    return c;
}

// operandOfB returns tile i of 8 columns.
OPERAND_B operandOfB(Columns c, uint i) {
    OPERAND_B y;
    [[unroll]] for (uint k = 0; k < 4; k++) {
        f16vec2 x = unpackFloat2x16(i < 2 ? c.row[k].x : c.row[k].y);
        y[k] = i % 2 == 0 ? x.x : x.y;
    }
    return y;
}

// word multiplies 16 columns of A.
void word(uint mask, inout uvec2 from, Columns c) {
    OPERAND_B y[TILES];
    [[unroll]] for (uint t = 0; t < TILES; t++) y[t] = operandOfB(c, t);
    [[unroll]] for (uint i = 0; i < 4; i++) {
        OPERAND_A x = tileOfA(mask, i, from);
        [[unroll]] for (uint t = 0; t < TILES; t++) sums[i * TILES + t] = coopMatMulAdd(x, y[t], sums[i * TILES + t]);
    }
    if (from.x >= 2 * (ring + wrap)) from.x -= 2 * wrap;
    if (from.y >= 2 * (ring + wrap)) from.y -= 2 * wrap;
}

void sync() {
    subgroupMemoryBarrierShared();
    subgroupBarrier();
}

// multiply adds a stream's product. col is the lane's first column of B.
void multiply(uint group, uint part, uint col) {
    uint stream = group * p.parts + part, first = firstPiece(part), count = firstPiece(part + 1) - first, lane = gl_SubgroupInvocationID;
    if (count == 0) return;
    uint row = rowAt(stream);
    rows = rowAt(stream + 1) - row;
    pieceRows = pieceRowsAt(stream);
    values = at(uvec2(p.values), row, 128);
    wrap = p.window * pieceRows * 32;
    sync();
    for (uint j = 0; j < p.window; j++) {
        fetch(j);
        keep(j);
    }
    sync();
    // The next word of the mask and its rows of B are on their way while one is multiplied.
    Words masks = Words(maskAt(group, first * p.steps));
    uint place = first * p.steps * STEP_COLS + (lane & 3u), words_ = p.steps * 2, last = count * words_ - 1;
    uint bits = masks.v[2 * lane], next = masks.v[2 * lane + 1];
    Columns c = rowsOfB(place, col);
    uvec2 from = uvec2(2 * (ring + lane)) + uvec2(0, 1);
    for (uint j = 0, w = 0, slot = 0; j < count; j++) {
        fetch(j + p.window);
        [[dont_unroll]] for (uint n = 0; n < words_; n++) {
            uint mask = bits;
            Columns b = c;
            w++;
            bits = next;
            uint k = min(w + 1, last);
            next = masks.v[(k >> 1) * 64 + 2 * lane + (k & 1u)];
            c = rowsOfB(place + 16 * w, col);
            word(mask, from, b);
        }
        sync();
        keep(slot);
        if (++slot == p.window) slot = 0;
        sync();
    }
}

// leave writes the sums to shared memory, from the ring's first word on.
void leave() {
    uint lane = gl_SubgroupInvocationID, g = lane >> 2, t = lane & 3u;
    sync();
    [[unroll]] for (uint i = 0; i < 4; i++)
        [[unroll]] for (uint k = 0; k < TILES; k++)
            [[unroll]] for (uint e = 0; e < 4; e++)
                words.v[ring + (16 * i + 8 * (e / 2) + g) * PITCH + TILES * (2 * t + e % 2) + k] = floatBitsToUint(sums[i * TILES + k][e]);
    sync();
}

// addRests adds the share in the rest of a group: TILES lanes a row, each with 8 columns.
void addRests(uint group, uint share, uint shares, uint base) {
    uint to = gl_SubgroupInvocationID % TILES * 8;
    for (uint r = gl_SubgroupInvocationID / TILES; r < GROUP_ROWS; r += 32 / TILES) {
        uint row = group * GROUP_ROWS + r;
        if (row >= p.rows) break;
        float x[8];
        [[unroll]] for (uint e = 0; e < 8; e++) x[e] = uintBitsToFloat(words.v[ring + r * PITCH + to + e]);
        addRest(row, share, shares, base + to, x);
        [[unroll]] for (uint e = 0; e < 8; e++) words.v[ring + r * PITCH + to + e] = floatBitsToUint(x[e]);
    }
}

void main() {
    uint block = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width, base = gl_WorkGroupID.y * WIDE;
    uint lane = gl_SubgroupInvocationID, first = block * p.each, share = gl_SubgroupID / p.each, shares = min(SUBS / p.each, p.parts);
    if (first >= p.groups) return;
    uint group = first + gl_SubgroupID % p.each, col = base + TILES * (lane >> 2);
    ring = gl_SubgroupID * ROOM * 32;
    [[unroll]] for (uint i = 0; i < 4 * TILES; i++) sums[i] = SUM(0.0);
    if (share < shares && group < p.groups) {
        for (uint part = share; part < p.parts; part += shares) multiply(group, part, col < p.ldb ? col : 0);
        leave();
        addRests(group, share, shares, base);
    }
    barrier();
    for (uint i = gl_LocalInvocationIndex; i < p.each * GROUP_ROWS * (WIDE / 4); i += 32 * SUBS) {
        uint of = i / (GROUP_ROWS * (WIDE / 4)), r = i / (WIDE / 4) % GROUP_ROWS, to = i % (WIDE / 4) * 4, row = (first + of) * GROUP_ROWS + r, j = base + to;
        if (row >= p.rows || j >= p.n) continue;
        vec4 x = vec4(0);
        for (uint q = 0; q < shares; q++) {
            uint from = (q * p.each + of) * ROOM * 32 + r * PITCH + to;
            x += uintBitsToFloat(uvec4(words.v[from], words.v[from + 1], words.v[from + 2], words.v[from + 3]));
        }
        x = repair(first + of, r, j, x);
        if (storeType == F16) storeHalves(row, j, x);
        else storeFloats(row, j, x);
    }
}
