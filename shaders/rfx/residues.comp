// Computes: for each modulus, the sums of products of residues of A (rows × cols) and B (cols × n) as residues, on
// cooperative matrices of 8-bit integers (TM × TN × TK); with DIGITS = 1 the sums of products of two digits, for each of
// the three sums of their places. combine.comp puts them together. residues.go explains residues and how operands lie.
// Tile: a workgroup computes (ROWS × COLS) for one modulus, each of SUBS subgroups DOWN × ACROSS operations.
// Data movement: steps of STEP of k are loaded into shared memory, a line of each row of A and column of B, and read
// from there by operations. The next step is prefetched to registers. Sums go through shared memory too, TM rows of each
// subgroup at a time, so that residues are stored by words.
// Bound by: shared memory and matrix units.
// Constants: SUBS_ACROSS (subgroups along a row of the tile), NARROW (TK is 8).

#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#include "params.glsl"
#include "../include/addr.glsl"
#include "../include/residues.glsl"

layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
layout(constant_id = 1) const uint TM = 16;
layout(constant_id = 2) const uint TN = 8;
layout(constant_id = 3) const uint TK = 32;
layout(constant_id = 4) const uint SUBS = 4;
layout(constant_id = 5) const uint SUBS_ACROSS = 2;
layout(constant_id = 6) const uint ROWS = 128;
layout(constant_id = 7) const uint COLS = 128;
layout(constant_id = 8) const uint STEP = 32; // at most DEPTH
layout(constant_id = 9) const uint SHARED = 1536; // uvec4 of shared memory: two steps, or outputs of each subgroup
layout(constant_id = 10) const uint DIGITS = 0;

#define DEPTH 128 // values of k that lie side by side
#define BIAS 0x40000000u // a sum of fewer than 2^16 products of residues is smaller

layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Words4 { uvec4 v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Out { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Out4 { uvec4 v[]; };

const uint LOCAL = gl_WorkGroupSize.x;
const uint CHUNKS = STEP / 16; // uvec4 of a line of a step
const uint LINE = CHUNKS + 1; // uvec4 from a line to the next
const uint LEFT = ROWS * LINE, RIGHT = COLS * LINE; // uvec4 of an operand's step
const uint LEFTS = ROWS * CHUNKS / LOCAL, RIGHTS = COLS * CHUNKS / LOCAL; // uvec4 that each invocation loads for a step
const uint WIDE = COLS / SUBS_ACROSS, HIGH = ROWS / (SUBS / SUBS_ACROSS); // a subgroup's columns and rows
const uint DOWN = HIGH / TM, ACROSS = WIDE / TN;
const uint OUT = WIDE / 4 + 1; // uvec4 from a row of a subgroup's output to the next

// Operations of k = 8 (NARROW) begin in the middle of 16 bytes. UNITS elements of shared memory are 16 bytes.
#if NARROW
#define UNITS 2
shared uvec2 mem[2 * SHARED];
void put(uint i, uvec4 v) {
    mem[2 * i] = v.xy;
    mem[2 * i + 1] = v.zw;
}
uvec4 get(uint i) { return uvec4(mem[2 * i], mem[2 * i + 1]); }
#else
#define UNITS 1
shared uvec4 mem[SHARED];
void put(uint i, uvec4 v) { mem[i] = v; }
uvec4 get(uint i) { return mem[i]; }
#endif

#define OPERAND_A coopmat<int8_t, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA>
#define OPERAND_B coopmat<int8_t, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB>
#define SUM coopmat<int, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator>
#define BY_ROWS gl_CooperativeMatrixLayoutRowMajor
#define BY_COLUMNS gl_CooperativeMatrixLayoutColumnMajor

SUM sums[DOWN * ACROSS];

// fetch returns chunk n of the invocation, of a step from k on of lines from `line` on, in a plane; last is the last
// line that is there.
uvec4 fetch(uvec2 plane, uint lines, uint line, uint last, uint k, uint n) {
    uint t = n * LOCAL + gl_LocalInvocationIndex, i = min(t / CHUNKS, last - line), chunk = k % DEPTH / 16 + t % CHUNKS;
    return Words4(at(plane, k / DEPTH * lines + line, DEPTH)).v[i * (DEPTH / 16) + (chunk ^ (i & 7u))];
}

// slot returns where chunk n of the invocation goes.
uint slot(uint n) {
    uint t = n * LOCAL + gl_LocalInvocationIndex;
    return t / CHUNKS * LINE + t % CHUNKS;
}

// add adds the products of a tile of two planes to the sums.
void add(uvec2 l, uvec2 r, uint row, uint col, uint down, uint across) {
    uvec4 lefts[LEFTS], rights[RIGHTS];
    uint all = p.per * DEPTH;
    [[unroll]] for (uint n = 0; n < LEFTS; n++)
        lefts[n] = fetch(l, p.longest, row, p.longest - 1, 0, n);
    [[unroll]] for (uint n = 0; n < RIGHTS; n++)
        rights[n] = fetch(r, p.ldq, col, p.ldq - 1, 0, n);
    for (uint k = 0, stage = 0; k < all; k += STEP, stage = LEFT + RIGHT - stage) {
        [[unroll]] for (uint n = 0; n < LEFTS; n++)
            put(stage + slot(n), lefts[n]);
        [[unroll]] for (uint n = 0; n < RIGHTS; n++)
            put(stage + LEFT + slot(n), rights[n]);
        barrier();
        uint next = min(k + STEP, all - STEP);
        [[unroll]] for (uint n = 0; n < LEFTS; n++)
            lefts[n] = fetch(l, p.longest, row, p.longest - 1, next, n);
        [[unroll]] for (uint n = 0; n < RIGHTS; n++)
            rights[n] = fetch(r, p.ldq, col, p.ldq - 1, next, n);
        [[unroll]] for (uint e = 0; e < STEP; e += TK) {
            OPERAND_B y[ACROSS];
            [[unroll]] for (uint j = 0; j < ACROSS; j++)
                coopMatLoad(y[j], mem, UNITS * (stage + LEFT + (across + j * TN) * LINE) + UNITS * e / 16, UNITS * LINE,
                            BY_COLUMNS);
            [[unroll]] for (uint i = 0; i < DOWN; i++) {
                OPERAND_A x;
                coopMatLoad(x, mem, UNITS * (stage + (down + i * TM) * LINE) + UNITS * e / 16, UNITS * LINE, BY_ROWS);
                [[unroll]] for (uint j = 0; j < ACROSS; j++)
                    sums[i * ACROSS + j] = coopMatMulAdd(x, y[j], sums[i * ACROSS + j]);
            }
        }
    }
    barrier();
}

void main() {
    uint wide = (p.ldq + COLS - 1) / COLS, tiles = (p.items + ROWS - 1) / ROWS * wide,
         item = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width, number = item / tiles, tile = item % tiles;
    if (number >= p.segments) return;
    uint row = tile / wide * ROWS, col = tile % wide * COLS;
    uint down = gl_SubgroupID / SUBS_ACROSS * HIGH, across = gl_SubgroupID % SUBS_ACROSS * WIDE;
    [[unroll]] for (uint i = 0; i < DOWN * ACROSS; i++)
        sums[i] = SUM(0);
    // Place 1, which takes two passes over k, comes first, so that the last items are short.
    uint passes = 1;
    if (DIGITS != 0) {
        passes = number == 0 ? 2 : 1;
        number = number == 0 ? 1 : number == 1 ? 0 : 2;
    }
    for (uint pass = 0; pass < passes && p.per > 0; pass++) {
        uint left = DIGITS != 0 ? (number + 1 - pass) / 2 : number, right = DIGITS != 0 ? (number + pass) / 2 : number;
        add(at(uvec2(p.ints), left * p.per * p.longest, DEPTH),
            at(at(uvec2(p.q), p.first, 4), right * p.per * p.ldq, DEPTH), row, col, down, across);
    }
    uint m = MODULI[number], by = reciprocal(m), bias = multiple(m, BIAS);
    uint to = gl_SubgroupID * TM * OUT;
    [[unroll]] for (uint i = 0; i < DOWN; i++) {
        barrier();
        [[unroll]] for (uint j = 0; j < ACROSS; j++)
            coopMatStore(sums[i * ACROSS + j], mem, UNITS * (to + j * TN / 4), UNITS * OUT, BY_ROWS);
        barrier();
        for (uint t = gl_SubgroupInvocationID; t < TM * WIDE / 4; t += gl_SubgroupSize) {
            uint r = row + down + i * TM + t / (WIDE / 4), j = col + across + t % (WIDE / 4) * 4;
            if (r >= p.items || j >= p.ldq) continue;
            uvec4 v = get(to + t / (WIDE / 4) * OUT + t % (WIDE / 4));
            uint line = number * p.items + r;
            if (DIGITS != 0) {
                Out4(at(uvec2(p.part), line, 4 * p.ldq)).v[j / 4] = v;
                continue;
            }
            uint word = 0;
            [[unroll]] for (uint e = 0; e < 4; e++)
                word |= modulo(v[e] + bias, m, by) << (8 * e);
            Out(at(uvec2(p.part), line, p.ldq)).v[j / 4] = word;
        }
    }
}
