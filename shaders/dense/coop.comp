// Computes: C (rows × n) = alpha·A·B + beta·C, dense, f16, sums in f32, on cooperative matrices (TM × TN × TK).
// Tile: a workgroup computes (ROWS × COLS), each of SUBS subgroups DOWN × ACROSS operations.
// Data movement: steps of STEP of k are loaded into shared memory in the layout of the operands, and read from there by
// rows or by columns. The next step is prefetched to registers. Sums go to C through shared memory too, TM rows of each
// subgroup at a time.
// Bound by: shared memory and matrix units for large C, memory bandwidth for few columns.
// Constants: ROWS and COLS (multiples of 64), SUBS_ACROSS (subgroups along a row of the tile).

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

#define STEP 32

#define ELEM F16
#include "gemm.glsl"
#include "../include/store_halves.glsl"

const uint LINE = STEP / 8 + 1; // uvec4 from a line to the next, if the operand lies along
#define PLACE(LINES) (LINES / 8 + 1) // uvec4 from one k to the next, if it lies across
const uint LEFT = ROWS * LINE, RIGHT = COLS * LINE; // uvec4 of an operand's step

const uint LOCAL = gl_WorkGroupSize.x;
const uint LEFTS = ROWS * STEP / 8 / LOCAL,
           RIGHTS = COLS * STEP / 8 / LOCAL; // uvec4 of an operand that each invocation loads for a step
const uint WIDE = COLS / SUBS_ACROSS, HIGH = ROWS / (SUBS / SUBS_ACROSS); // a subgroup's columns and rows
const uint DOWN = HIGH / TM, ACROSS = WIDE / TN;
const uint OUT = WIDE / 4 + 1; // uvec4 from a row of a subgroup's output to the next

shared uvec4 mem[2 * (ROWS + COLS) * (STEP / 8 + 1)]; // two steps; at the end, outputs of each subgroup

#define OPERAND_A coopmat<float16_t, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA>
#define OPERAND_B coopmat<float16_t, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB>
#define SUM coopmat<float, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator>
#define BY_ROWS gl_CooperativeMatrixLayoutRowMajor
#define BY_COLUMNS gl_CooperativeMatrixLayoutColumnMajor

// lineOf and placeOf return the line and the k, within the tile, of the first element of the invocation's load n: 8
// elements of one line, or of 8 lines at one k. `lines` is the lines of the operand's tile.
uint lineOf(Operand x, uint n, uint lines) {
    uint t = n * LOCAL + gl_LocalInvocationIndex;
    return x.along ? t / (STEP / 8) : t % (lines / 8) * 8;
}
uint placeOf(Operand x, uint n, uint lines) {
    uint t = n * LOCAL + gl_LocalInvocationIndex;
    return x.along ? t % (STEP / 8) * 8 : t / (lines / 8);
}

// fetch returns load n of the step from k on, of the lines from i on. Elements past the operand's end are 0.
uvec4 fetch(Operand x, uint n, uint lines, uint i, uint k) {
    uint line = i + lineOf(x, n, lines), place = k + placeOf(x, n, lines);
    if (line >= x.lines || place >= p.cols) return uvec4(0);
    Run r = runOf(x, line, place);
    uvec4 v = Octets(r.line).v[r.at / 8];
    if (x.along && place + 8 > p.cols) // elements past the line can be read, but need not be 0
        for (uint e = p.cols - place; e < 8; e++) v[e / 2] &= e % 2 == 0 ? 0u : 0xffffu;
    return v;
}

// slot returns where load n goes.
uint slot(Operand x, uint n, uint lines) {
    uint line = lineOf(x, n, lines), place = placeOf(x, n, lines);
    return x.along ? line * LINE + place / 8 : place * PLACE(lines) + line / 8;
}

// put writes sums to C.
void put(Operand x[2], uint i, uint j, vec4 v) {
    if (i >= p.rows || j >= p.n) return;
    v = repair(x, i, j, v);
    if (storeType == F16) storeHalves(i, j, v);
    else storeFloats(i, j, v);
}

void main() {
    uint row, col;
    if (!tileAt(row, col)) return;
    Operand x[2] = {left(), right()};
    Operand l = x[0], r = x[1];
    uint down = gl_SubgroupID / SUBS_ACROSS * HIGH, across = gl_SubgroupID % SUBS_ACROSS * WIDE;
    uvec4 lefts[LEFTS], rights[RIGHTS];
    SUM sums[DOWN * ACROSS];
    [[unroll]] for (uint i = 0; i < DOWN * ACROSS; i++)
        sums[i] = SUM(0.0);
    [[unroll]] for (uint n = 0; n < LEFTS; n++)
        lefts[n] = fetch(l, n, ROWS, row, 0);
    [[unroll]] for (uint n = 0; n < RIGHTS; n++)
        rights[n] = fetch(r, n, COLS, col, 0);
    for (uint k = 0, stage = 0; k < p.cols; k += STEP, stage = LEFT + RIGHT - stage) {
        [[unroll]] for (uint n = 0; n < LEFTS; n++)
            mem[stage + slot(l, n, ROWS)] = lefts[n];
        [[unroll]] for (uint n = 0; n < RIGHTS; n++)
            mem[stage + LEFT + slot(r, n, COLS)] = rights[n];
        barrier();
        [[unroll]] for (uint n = 0; n < LEFTS; n++)
            lefts[n] = fetch(l, n, ROWS, row, k + STEP);
        [[unroll]] for (uint n = 0; n < RIGHTS; n++)
            rights[n] = fetch(r, n, COLS, col, k + STEP);
        for (uint e = 0; e < STEP; e += TK) {
            OPERAND_B y[ACROSS];
            [[unroll]] for (uint j = 0; j < ACROSS; j++) {
                uint line = across + j * TN;
                if (r.along) coopMatLoad(y[j], mem, stage + LEFT + line * LINE + e / 8, LINE, BY_COLUMNS);
                else coopMatLoad(y[j], mem, stage + LEFT + e * PLACE(COLS) + line / 8, PLACE(COLS), BY_ROWS);
            }
            [[unroll]] for (uint i = 0; i < DOWN; i++) {
                uint line = down + i * TM;
                OPERAND_A a;
                if (l.along) coopMatLoad(a, mem, stage + line * LINE + e / 8, LINE, BY_ROWS);
                else coopMatLoad(a, mem, stage + e * PLACE(ROWS) + line / 8, PLACE(ROWS), BY_COLUMNS);
                [[unroll]] for (uint j = 0; j < ACROSS; j++)
                    sums[i * ACROSS + j] = coopMatMulAdd(a, y[j], sums[i * ACROSS + j]);
            }
        }
    }
    uint to = gl_SubgroupID * TM * OUT;
    [[unroll]] for (uint i = 0; i < DOWN; i++) {
        barrier();
        [[unroll]] for (uint j = 0; j < ACROSS; j++)
            coopMatStore(sums[i * ACROSS + j], mem, to + j * TN / 4, OUT, BY_ROWS);
        barrier();
        for (uint t = gl_SubgroupInvocationID; t < TM * WIDE / 4; t += gl_SubgroupSize)
            put(x, row + down + i * TM + t / (WIDE / 4), col + across + t % (WIDE / 4) * 4,
                uintBitsToFloat(mem[to + t / (WIDE / 4) * OUT + t % (WIDE / 4)]));
    }
}
