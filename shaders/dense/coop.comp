// Computes: C (rows × n) = alpha·A·B + beta·C, dense, f16, sums in f32, on cooperative matrices (TM × TN × TK).
// Tile: a workgroup computes (ROWS × COLS) of L·R for all of K or for one of p.splits ranges of K (split-K). Another
// launch (ADDS) adds the partial sums.
// Data movement: ../include/coop_tile.glsl. An octet is 8 elements, 16 bytes: of one line of an operand that is K-major
// ("along"), of 8 lines at one k of an operand that is MN-major ("across"). At least one operand is K-major.
// Bound by: shared memory and matrix units for large C, memory bandwidth for few columns.

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
layout(constant_id = 2) const uint TN = 8;
layout(constant_id = 3) const uint TK = 16;
layout(constant_id = 4) const uint SUBS = 4;
layout(constant_id = 5) const uint SUBS_ACROSS = 2;
layout(constant_id = 6) const uint ROWS = 64;
layout(constant_id = 7) const uint COLS = 64;
layout(constant_id = 8) const uint STEP = 32;
layout(constant_id = 9) const uint STAGES = 1;
layout(constant_id = 10) const uint LEFT_ALONG = 1;
layout(constant_id = 11) const uint RIGHT_ALONG = 0;
layout(constant_id = 12) const uint SHARED = 1024; // uvec4 of shared memory
layout(constant_id = 13) const uint ADDS = 0; // 1: the kernel only adds partial sums
layout(constant_id = 14) const uint SLICES = 1;

#define ELEM F16
#include "gemm.glsl"
#include "../include/store_halves.glsl"

const uint LOCAL = gl_WorkGroupSize.x;
const uint OCTETS = STEP / 8; // of a line
const uint LEFTS = ROWS * OCTETS / LOCAL,
           RIGHTS = COLS * OCTETS / LOCAL; // octets of an operand that each invocation loads for a step
const bool LA = LEFT_ALONG != 0, RA = RIGHT_ALONG != 0;

Operand l, r;
uint row, col; // of the tile
uint split; // the range of K
uint limit; // its end

struct Fetched {
    uvec4 l[LEFTS], r[RIGHTS];
};

// lineOf and placeOf say where octet n of an invocation is in a step: for an operand that lies along its line, and
// which octet of that; for one that lies across which eight lines, and k.
uint lineOf(uint n, bool along, uint lines) {
    uint t = n * LOCAL + gl_LocalInvocationIndex;
    return along ? t / OCTETS : t % (lines / 8);
}
uint placeOf(uint n, bool along, uint lines) {
    uint t = n * LOCAL + gl_LocalInvocationIndex;
    return along ? t % OCTETS : t / (lines / 8);
}

// fetch loads octet n of lines from i on at the step from k on. Octets past the operand's end are read as others, of an
// operand that lies across as those of the last k. The table sees to it that an operand has less than 2^31 octets. What
// does not depend on k is added first, so that the compiler moves it out of the loop over k.
uvec4 fetch(Operand x, uint n, bool along, uint lines, uint i, uint k) {
    uint line = lineOf(n, along, lines), place = placeOf(n, along, lines), pitch = x.ld / 8, start, from, last;
    if (along) {
        start = min(i + line, x.lines - 1) * pitch + place;
        from = k / 8;
        last = x.lines * pitch - 1;
    } else {
        start = min(i / 8 + line, pitch - 1);
        from = min(k + place, p.cols - 1) * pitch;
        last = 0xffffffffu;
    }
    return Octets(x.x).v[min(start + from, last)];
}

// cut makes the elements from number `left` on 0.
uvec4 cut(uvec4 v, int left) {
    [[unroll]] for (int e = 0; e < 4; e++)
        v[e] &= left >= 2 * e + 2 ? 0xffffffffu : left > 2 * e ? 0xffffu : 0;
    return v;
}

// slot returns where octet n of an invocation goes, in lines of `pitch` uvec4.
uint slot(uint n, bool along, uint lines, uint pitch) {
    uint line = lineOf(n, along, lines), place = placeOf(n, along, lines);
    return along ? line * pitch + place : place * pitch + line;
}

#include "../include/coop_tile.glsl"

void fetchStep(out Fetched x, uint s) {
    [[unroll]] for (uint n = 0; n < LEFTS; n++) x.l[n] = fetch(l, n, LA, ROWS, row, s * STEP);
    [[unroll]] for (uint n = 0; n < RIGHTS; n++) x.r[n] = fetch(r, n, RA, COLS, col, s * STEP);
}

void putStep(Fetched x, uint s, uint to) {
    uint k = s * STEP;
    if (k + STEP > limit) { // Only an operand that lies along is cut: its zeros meet whatever the other one has.
        [[unroll]] for (uint n = 0; n < LEFTS; n++)
            if (LA) x.l[n] = cut(x.l[n], int(limit) - int(k + 8 * placeOf(n, LA, ROWS)));
        [[unroll]] for (uint n = 0; n < RIGHTS; n++)
            if (RA) x.r[n] = cut(x.r[n], int(limit) - int(k + 8 * placeOf(n, RA, COLS)));
    }
    [[unroll]] for (uint n = 0; n < LEFTS; n++) mem[to + slot(n, LA, ROWS, LEFT_LINE)] = x.l[n];
    [[unroll]] for (uint n = 0; n < RIGHTS; n++) mem[to + LEFT + slot(n, RA, COLS, RIGHT_LINE)] = x.r[n];
}

// store writes four sums to C.
void store(uint i, uint j, vec4 v) {
    Operand x[2] = {l, r};
    v = repair(x, i, j, v);
    if (storeType == F16) storeHalves(i, j, v);
    else storeFloats(i, j, v);
}

// putQuad writes sums to C, or partial sums to the workspace.
void putQuad(uint i, uint j, vec4 v) {
    i += row, j += col;
    if (i >= p.rows || j >= p.n) return;
    if (p.splits > 1) Quads(at(uvec2(p.work), split * p.rows + i, (p.n + 3) / 4 * 16)).v[j / 4] = v;
    else store(i, j, v);
}

// add adds the partial sums of four columns of a row in the order of K, and stores them.
void add() {
    uint quads = (p.n + 3) / 4, i = (gl_WorkGroupID.x + gl_WorkGroupID.z * p.width) * LOCAL + gl_LocalInvocationIndex,
         at_ = i / quads, j = i % quads * 4;
    if (at_ >= p.rows) return;
    vec4 partial[8], v = vec4(0);
    [[unroll]] for (uint q = 0; q < 8; q++)
        if (q < p.splits) partial[q] = Quads(at(uvec2(p.work), q * p.rows + at_, quads * 16)).v[j / 4];
    [[unroll]] for (uint q = 0; q < 8; q++)
        if (q < p.splits) v += partial[q];
    store(at_, j, v);
}

void main() {
    l = left(), r = right();
    if (ADDS != 0) {
        add();
        return;
    }
    uint item = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width, tile = item / p.splits;
    split = item % p.splits;
    row = tile / p.across * ROWS, col = tile % p.across * COLS;
    if (row >= p.rows) return;
    uint steps = (p.cols + STEP - 1) / STEP, first = steps * split / p.splits, last = steps * (split + 1) / p.splits;
    limit = min(p.cols, last * STEP);
    multiplySteps(first, last);
}
