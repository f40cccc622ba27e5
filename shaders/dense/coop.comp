// Dense × dense on cooperative matrices, f16 with sums in f32.
//
// A workgroup computes a tile of ROWS × COLS, each of its SUBS subgroups a part of DOWN × ACROSS operations of TM×TN×TK. Steps
// of STEP places k are brought to shared memory as the operands lie, and loaded from there by rows or by columns. While
// one step is multiplied the next is on its way to registers.

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
layout(constant_id = 4) const uint SUBS = 4; // 4 or 8

#define ROWS 64
#define COLS 64
#define STEP 32

#define ELEM F16
#include "gemm.glsl"
#include "../include/store_halves.glsl"

const uint LINE = STEP / 8 + 1;  // uvec4 from a line to the next where lines lie along
const uint PLACE = ROWS / 8 + 1; // from a place to the next where they lie across
const uint TILE = ROWS * LINE;   // uvec4 of an operand's step
const uint OUT = COLS / 4 + 1;    // uvec4 from a row of the output to the next

shared uvec4 mem[4 * TILE]; // two steps; at the end the tile of C in f32

const uint LOCAL = gl_WorkGroupSize.x;
const uint LOADS = ROWS * STEP / 8 / LOCAL; // uvec4 of an operand that each invocation brings to a step
const uint WIDE = COLS / 2, HIGH = ROWS / (SUBS / 2); // a subgroup's part
const uint DOWN = HIGH / TM, ACROSS = WIDE / TN;

#define OPERAND_A coopmat<float16_t, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA>
#define OPERAND_B coopmat<float16_t, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB>
#define SUM coopmat<float, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator>
#define BY_ROWS gl_CooperativeMatrixLayoutRowMajor
#define BY_COLUMNS gl_CooperativeMatrixLayoutColumnMajor

// Load n of the invocation is of 8 elements: of which line from which place on, or of which lines at which place.
uint lineOf(Operand x, uint n) {
    uint t = n * LOCAL + gl_LocalInvocationIndex;
    return x.along ? t / (STEP / 8) : t % (ROWS / 8) * 8;
}
uint placeOf(Operand x, uint n) {
    uint t = n * LOCAL + gl_LocalInvocationIndex;
    return x.along ? t % (STEP / 8) * 8 : t / (ROWS / 8);
}

// fetch returns load n of the step at place k of lines from i on. What lies past the operand's end is 0.
uvec4 fetch(Operand x, uint n, uint i, uint k) {
    uint line = i + lineOf(x, n), place = k + placeOf(x, n);
    if (line >= x.lines || place >= p.cols) return uvec4(0);
    Run r = runOf(x, line, place);
    uvec4 v = Octets(r.line).v[r.at / 8];
    if (x.along && place + 8 > p.cols) // what is not the line's any more can be read, but need not be 0
        for (uint e = p.cols - place; e < 8; e++) v[e / 2] &= e % 2 == 0 ? 0u : 0xffffu;
    return v;
}

// slot is where load n goes.
uint slot(Operand x, uint n) {
    return x.along ? lineOf(x, n) * LINE + placeOf(x, n) / 8 : placeOf(x, n) * PLACE + lineOf(x, n) / 8;
}

void main() {
    uint row, col;
    if (!tileAt(row, col)) return;
    Operand x[2] = {left(), right()};
    Operand l = x[0], r = x[1];
    uint down = gl_SubgroupID / 2 * HIGH, across = gl_SubgroupID % 2 * WIDE;
    uvec4 lefts[LOADS], rights[LOADS];
    SUM sums[DOWN * ACROSS];
    [[unroll]] for (uint i = 0; i < DOWN * ACROSS; i++) sums[i] = SUM(0.0);
    [[unroll]] for (uint n = 0; n < LOADS; n++) {
        lefts[n] = fetch(l, n, row, 0);
        rights[n] = fetch(r, n, col, 0);
    }
    for (uint k = 0, stage = 0; k < p.cols; k += STEP, stage = 2 * TILE - stage) {
        [[unroll]] for (uint n = 0; n < LOADS; n++) {
            mem[stage + slot(l, n)] = lefts[n];
            mem[stage + TILE + slot(r, n)] = rights[n];
        }
        barrier();
        [[unroll]] for (uint n = 0; n < LOADS; n++) {
            lefts[n] = fetch(l, n, row, k + STEP);
            rights[n] = fetch(r, n, col, k + STEP);
        }
        [[unroll]] for (uint e = 0; e < STEP; e += TK) {
            OPERAND_B y[ACROSS];
            [[unroll]] for (uint j = 0; j < ACROSS; j++) {
                uint line = across + j * TN;
                if (r.along) coopMatLoad(y[j], mem, stage + TILE + line * LINE + e / 8, LINE, BY_COLUMNS);
                else coopMatLoad(y[j], mem, stage + TILE + e * PLACE + line / 8, PLACE, BY_ROWS);
            }
            [[unroll]] for (uint i = 0; i < DOWN; i++) {
                uint line = down + i * TM;
                OPERAND_A a;
                if (l.along) coopMatLoad(a, mem, stage + line * LINE + e / 8, LINE, BY_ROWS);
                else coopMatLoad(a, mem, stage + e * PLACE + line / 8, PLACE, BY_COLUMNS);
                [[unroll]] for (uint j = 0; j < ACROSS; j++) sums[i * ACROSS + j] = coopMatMulAdd(a, y[j], sums[i * ACROSS + j]);
            }
        }
    }
    barrier();
    [[unroll]] for (uint i = 0; i < DOWN; i++)
        [[unroll]] for (uint j = 0; j < ACROSS; j++)
            coopMatStore(sums[i * ACROSS + j], mem, (down + i * TM) * OUT + (across + j * TN) / 4, OUT, BY_ROWS);
    barrier();
    for (uint t = gl_LocalInvocationIndex; t < ROWS * COLS / 4; t += LOCAL) {
        uint i = row + t / (COLS / 4), j = col + t % (COLS / 4) * 4;
        if (i >= p.rows || j >= p.n) continue;
        vec4 v = repair(x, i, j, uintBitsToFloat(mem[t / (COLS / 4) * OUT + t % (COLS / 4)]));
        if (storeType == F16) storeHalves(i, j, v);
        else storeFloats(i, j, v);
    }
}
