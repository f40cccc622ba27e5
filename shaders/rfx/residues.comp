// Computes: for each modulus, the sums of products of residues of A (rows × cols) and B (cols × n) as residues, on
// cooperative matrices of 8-bit integers (TM × TN × TK) or, with DOTS, by packed dot products; with DIGITS = 1 the
// sums of products of two digits, for each of the three sums of their places. combine.comp puts them together.
// residues.go explains residues and how operands lie.
// Tile: a workgroup computes (ROWS × COLS) for one modulus, each of SUBS subgroups DOWN × ACROSS operations.
// Data movement: ../include/coop_tile.glsl, or dot_tile.glsl. A line of shared memory has STEP of k of a row of A or a
// column of B. Residues are stored by words.
// Bound by: shared memory and matrix units; with DOTS by the rate of dot products.
// Constants: SUBS_ACROSS (subgroups along a row of the tile), NARROW (TK is 8), DOTS.

#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#ifndef DOTS
#pragma use_vulkan_memory_model
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#endif
#include "params.glsl"
#include "../include/addr.glsl"
#include "../include/residues.glsl"

layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
#ifndef DOTS
layout(constant_id = 1) const uint TM = 16;
layout(constant_id = 2) const uint TN = 8;
layout(constant_id = 3) const uint TK = 32;
layout(constant_id = 4) const uint SUBS = 4;
layout(constant_id = 5) const uint SUBS_ACROSS = 2;
#endif
layout(constant_id = 6) const uint ROWS = 128;
layout(constant_id = 7) const uint COLS = 128;
layout(constant_id = 8) const uint STEP = 32; // a multiple of SLICE, at most DEPTH
layout(constant_id = 9) const uint SHARED = 1536; // uvec4 of shared memory
layout(constant_id = 10) const uint DIGITS = 0;
#ifndef DOTS
layout(constant_id = 11) const uint STAGES = 2;
#endif

#define DEPTH 128 // k of a block; a plane has whole ones
#define SLICE 32 // k whose values of a line lie side by side
#define BIAS 0x40000000u // a sum of fewer than 2^16 products of residues is smaller

layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Words4 { uvec4 v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Out { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Out4 { uvec4 v[]; };

const uint LOCAL = gl_WorkGroupSize.x;
const uint LEFT_ALONG = 1, RIGHT_ALONG = 1, SLICES = 1;
const uint CHUNKS = STEP / 16; // uvec4 of a line of a step
const uint LEFTS = ROWS * CHUNKS / LOCAL, RIGHTS = COLS * CHUNKS / LOCAL; // uvec4 that each invocation loads for a step

uint row, col; // of the tile
uint number; // of the modulus, or of the sum of products of digits
uint steps; // of K

struct Fetched {
    uvec4 l[LEFTS], r[RIGHTS];
};

// leftAt and rightAt are where a chunk of a line of an operand lies in a stage buffer, in uvec4.
#ifdef DOTS
#include "dot_tile.glsl"
#define leftAt(line, chunk) placed(line, chunk)
#define rightAt(line, chunk) placed(line, chunk)
#else
#define INT8
#include "../include/coop_tile.glsl"
#define leftAt(line, chunk) line * LEFT_LINE + chunk
#define rightAt(line, chunk) line * RIGHT_LINE + chunk
#endif

// lineOf and placeOf say which of `lines` lines chunk n of the invocation is of, and which chunk of a step it is there:
// a slice of all lines follows the one before. Eight neighbours have the same chunk of eight lines, which they write to
// other banks.
uint lineOf(uint n, const uint lines) {
    uint t = (n * LOCAL + gl_LocalInvocationIndex) % (2 * lines);
    return t / 16 * 8 + t % 8;
}
uint placeOf(uint n, const uint lines) {
    uint t = n * LOCAL + gl_LocalInvocationIndex;
    return t / (2 * lines) * 2 + t / 8 % 2;
}

// fetch returns chunk n of the invocation, of `lines` lines from `line` on, of a step that begins at `step`. Slices
// have `all` lines; last is the last line that is there.
uvec4 fetch(uvec2 step, uint n, const uint lines, uint all, uint line, uint last) {
    uint i = min(lineOf(n, lines), last - line), place = placeOf(n, lines);
    return Words4(at(step, line, SLICE)).v[(place / 2 * all + i) * 2 + place % 2];
}

// fetchStep loads a step. Those from number `steps` on are of a second pass over K, with other digits.
void fetchStep(out Fetched x, uint s) {
    uint left = number, right = number;
    if (DIGITS != 0) {
        uint pass = s < steps ? 0 : 1;
        left = (number + 1 - pass) / 2, right = (number + pass) / 2, s -= pass * steps;
    }
    uint slice = min(s, steps - 1) * (STEP / SLICE), slices = p.per * (DEPTH / SLICE);
    uvec2 l = at(uvec2(p.ints), (left * slices + slice) * p.longest, SLICE),
          r = at(at(uvec2(p.q), p.first, 4), (right * slices + slice) * p.ldq, SLICE);
    [[unroll]] for (uint n = 0; n < LEFTS; n++)
        x.l[n] = fetch(l, n, ROWS, p.longest, row, p.longest - 1);
    [[unroll]] for (uint n = 0; n < RIGHTS; n++)
        x.r[n] = fetch(r, n, COLS, p.ldq, col, p.ldq - 1);
}

// putStep needs no zeros: there are DEPTH / STEP steps or a multiple of that, which is even or of one stage.
void putStep(Fetched x, uint s, uint to) {
    [[unroll]] for (uint n = 0; n < LEFTS; n++)
        put(to + leftAt(lineOf(n, ROWS), placeOf(n, ROWS)), x.l[n]);
    [[unroll]] for (uint n = 0; n < RIGHTS; n++)
        put(to + LEFT + rightAt(lineOf(n, COLS), placeOf(n, COLS)), x.r[n]);
}

void putQuad(uint i, uint j, uvec4 v) {
    i += row, j += col;
    if (i >= p.items || j >= p.ldq) return;
    uint line = number * p.items + i;
    if (DIGITS != 0) {
        Out4(at(uvec2(p.part), line, 4 * p.ldq)).v[j / 4] = v;
        return;
    }
    uint m = MODULI[number], by = reciprocal(m), bias = multiple(m, BIAS), word = 0;
    [[unroll]] for (uint e = 0; e < 4; e++)
        word |= modulo(v[e] + bias, m, by) << (8 * e);
    Out(at(uvec2(p.part), line, p.ldq)).v[j / 4] = word;
}

void main() {
    uint wide = (p.ldq + COLS - 1) / COLS, tiles = (p.items + ROWS - 1) / ROWS * wide,
         item = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width, tile = item % tiles;
    number = item / tiles;
    if (number >= p.segments) return;
    row = tile / wide * ROWS, col = tile % wide * COLS;
    steps = p.per * (DEPTH / STEP);
    uint passes = 1;
    if (DIGITS != 0) {
        // Place 1, which takes two passes over K, comes first, so that the last items are short.
        passes = number == 0 ? 2 : 1;
        number = number == 0 ? 1 : number == 1 ? 0 : 2;
    }
    multiplySteps(0, passes * steps);
}
