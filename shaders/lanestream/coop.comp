// Computes: C (rows × n) = alpha·A·B + beta·C, A (rows × cols) as lane streams, f16, sums in f32, on cooperative
// matrices (TM × TN × TK) of an unknown lane layout.
// Tile: a workgroup computes (64 × WIDE), one group of rows. It has teams of 64 invocations. Each team expands a stream
// of the group, or every n-th stream if the group has more than its teams. A subgroup multiplies 64/DOWN rows.
// Data movement: an invocation expands a chain's values of a step of 32 columns to a dense tile in shared memory, which
// also has the step's rows of B. The next values, mask and rows of B are prefetched to registers.
// Bound by: expansion, then shared memory.

#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require

layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
layout(constant_id = 1) const uint TM = 16;
layout(constant_id = 2) const uint TN = 16;
layout(constant_id = 3) const uint TK = 16;
layout(constant_id = 4) const uint WIDE = 32;
layout(constant_id = 5) const uint SUBGROUPS = 4;
layout(constant_id = 6) const uint DOWN = 4; // subgroups along the rows
layout(constant_id = 7) const uint TEAMS = 2; // at most; each of 64 invocations
layout(constant_id = 8) const uint SHARED = 576; // uvec4 of tileB, for B's rows or 32 rows of C; the table computes it

#define ELEM F16
#include "lanestream.glsl"
#include "../include/store_halves.glsl"

const uint LOCAL = gl_WorkGroupSize.x;
const uint A_PITCH = STEP_COLS + 8; // halves from a row of a tile of A to the next
const uint A_TILE = GROUP_ROWS * A_PITCH;
const uint B_ROW = WIDE / 8, B_PITCH = B_ROW + 1; // uvec4
const uint B_TILE = STEP_COLS * B_PITCH;
const uint LOADS = TEAMS * STEP_COLS * B_ROW / LOCAL; // uvec4 of B that each invocation loads for a step
const uint QUADS = WIDE / 4, PITCH = QUADS + 1; // uvec4 of a row of C: columns, and with padding
const uint PART = 32; // rows of C that shared memory has room for at a time

shared float16_t tileA[TEAMS * A_TILE];
shared uvec4 tileB[SHARED];

const uint HIGH = GROUP_ROWS / DOWN, ACROSS = WIDE / (SUBGROUPS / DOWN); // a subgroup's rows and columns
const uint TALL = HIGH / TM, BROAD = ACROSS / TN; // the same, in matrix operations

#define OPERAND_A coopmat<float16_t, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA>
#define OPERAND_B coopmat<float16_t, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB>
#define SUM coopmat<float, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator>
#define BY_ROWS gl_CooperativeMatrixLayoutRowMajor

// stepsOf returns the steps of a split, 0 past the last split.
uint stepsOf(uint split) { return split < p.splits ? (firstSegment(split + 1) - firstSegment(split)) * p.steps : 0; }

// expand writes the values that a chain has for one word of the mask to columns from `to` on.
void expand(uint to, uint chain, uint word, uvec2 values, inout uint next) {
    uint g = chain >> 3, col = 4 * (chain & 1u) + (chain >> 1 & 3u);
    for (uint i = 0; i < 16; i++) {
        float16_t x = float16_t(0);
        if ((word >> 2 * i & 1u) != 0) {
            x = unpackFloat2x16(Words(values).v[next >> 1] >> 16 * (next & 1u)).x;
            next += CHAINS;
        }
        tileA[to + (16 * (i >> 2) + 8 * (i & 1u) + g) * A_PITCH + 8 * (i >> 1 & 1u) + col] = x;
    }
}

// remainderOf returns the sum of a row's COO remainder, for columns j to j+3.
vec4 remainderOf(uint row, uint j) {
    vec4 sum = vec4(0);
    uvec2 cols = remainderCols(), vals = remainderValues();
    uint end = remainderAt(row + 1);
    for (uint i = remainderAt(row); i < end; i++) {
        uvec2 w = Pairs(rowOfB(Words(cols).v[i])).v[j / 4];
        sum += element(vals, i) * vec4(unpackHalf2x16(w.x), unpackHalf2x16(w.y));
    }
    return sum;
}

// fetch loads B's rows of step s of the teams' splits, from split `round` on, into registers.
void fetch(out uvec4 rows[LOADS], uint round, uint s, uint base) {
    [[unroll]] for (uint i = 0; i < LOADS; i++) {
        uint n = i * LOCAL + gl_LocalInvocationIndex, r = n / B_ROW, split = round + r / STEP_COLS;
        rows[i] = uvec4(0);
        // Rows past B's last are read as the last one: A has zeros there. Columns past the leading dimension are never
        // stored.
        if (s < stepsOf(split))
            rows[i] = Octets(rowOfB(min((firstSegment(split) * p.steps + s) * STEP_COLS + r % STEP_COLS, p.cols - 1)))
                          .v[min(base / 8 + n % B_ROW, p.ldb / 8 - 1)];
    }
}

// keep puts them into shared memory.
void keep(uvec4 rows[LOADS]) {
    [[unroll]] for (uint i = 0; i < LOADS; i++) {
        uint n = i * LOCAL + gl_LocalInvocationIndex;
        tileB[n / B_ROW * B_PITCH + n % B_ROW] = rows[i];
    }
}

void main() {
    uint group = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width, base = gl_WorkGroupID.y * WIDE,
         t = gl_LocalInvocationIndex;
    if (group >= p.groups) return;
    uint teams = min(TEAMS, p.splits), team = t / 64, chain = t % 64;
    uint down = gl_SubgroupID % DOWN * HIGH, across = gl_SubgroupID / DOWN * ACROSS;
    bool busy = base + across < p.n; // the subgroup has columns of C

    SUM sums[TALL * BROAD];
    [[unroll]] for (uint i = 0; i < TALL * BROAD; i++)
        sums[i] = SUM(0.0);
    uint most = (p.segments + p.splits - 1) / p.splits * p.steps; // steps of the longest split
    for (uint round = 0; round < p.splits; round += teams) {
        uint split = round + team, next = chain, steps = team < teams ? stepsOf(split) : 0;
        uvec2 values, masks, lookahead = uvec2(0); // the next step's words of the mask
        if (steps > 0) {
            values = at(uvec2(p.values), rowAt(group * p.splits + split), CHAINS * 2);
            masks = maskAt(group, firstSegment(split) * p.steps);
            lookahead = Pairs(masks).v[chain / 2];
        }
        uvec4 rows[LOADS];
        fetch(rows, round, 0, base);
        for (uint s = 0; s < most; s++) {
            uvec2 word = lookahead >> (chain & 1u);
            if (s + 1 < steps) lookahead = Pairs(masks).v[(s + 1) * 32 + chain / 2];
            barrier();
            if (s < steps) {
                expand(team * A_TILE, chain, word.x, values, next);
                expand(team * A_TILE + 16, chain, word.y, values, next);
            }
            keep(rows);
            barrier();
            fetch(rows, round, s + 1, base);
            if (!busy) continue;
            for (uint k = 0; k < teams; k++) {
                if (s >= stepsOf(round + k)) continue;
                [[dont_unroll]] for (uint e = 0; e < STEP_COLS; e += TK) {
                    OPERAND_B y[BROAD];
                    [[unroll]] for (uint j = 0; j < BROAD; j++)
                        coopMatLoad(y[j], tileB, k * B_TILE + e * B_PITCH + (across + j * TN) / 8, B_PITCH, BY_ROWS);
                    [[unroll]] for (uint i = 0; i < TALL; i++) {
                        OPERAND_A x;
                        coopMatLoad(x, tileA, k * A_TILE + (down + i * TM) * A_PITCH + e, A_PITCH, BY_ROWS);
                        [[unroll]] for (uint j = 0; j < BROAD; j++)
                            sums[i * BROAD + j] = coopMatMulAdd(x, y[j], sums[i * BROAD + j]);
                    }
                }
            }
        }
    }

    // The sums are stored, PART rows of C at a time.
    for (uint h = 0; h < GROUP_ROWS; h += PART) {
        barrier();
        if (down / PART == h / PART) {
            [[unroll]] for (uint i = 0; i < TALL; i++)
                [[unroll]] for (uint j = 0; j < BROAD; j++) coopMatStore(
                    sums[i * BROAD + j], tileB, (down - h + i * TM) * PITCH + (across + j * TN) / 4, PITCH, BY_ROWS);
        }
        barrier();
        for (uint i = t; i < PART * QUADS; i += LOCAL) {
            uint r = h + i / QUADS, row = group * GROUP_ROWS + r, j = base + i % QUADS * 4;
            if (row >= p.rows || j >= p.n) continue;
            vec4 x = repair(group, r, j, uintBitsToFloat(tileB[i / QUADS * PITCH + i % QUADS]) + remainderOf(row, j));
            if (storeType == F16) storeHalves(row, j, x);
            else storeFloats(row, j, x);
        }
    }
}
