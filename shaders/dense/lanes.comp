// Computes: C (rows × n) = alpha·A·B + beta·C, dense, f16, sums in f32, on cooperative matrices of a known lane layout
// (../include/lanes.glsl).
// Tile: a workgroup computes (ROWS × COLS), a subgroup (16·DOWN × 64), for all of K or for one of p.splits ranges of K
// (split-K). Another launch (ADDS) adds the partial sums.
// Data movement: steps of 32 of k are loaded into shared memory in the layout of the operands; the next two are
// prefetched to registers. Lane 4g + t multiplies k = 8t to 8t + 7 of a step, the first four in one matrix operation
// and the others in the next. An octet is 8 elements, 16 bytes. If an operand is K-major ("along"), an octet is these 8
// k of one line. If it is MN-major ("across"), an octet is 8 lines at one k, and a fragment is made from four octets.
// The lane's lines are the subgroup's rows from 2·DOWN·g on and its columns from 8g on: row h of operation i is row
// 2·DOWN·g + 2i + h, column g of operation j is column 8g + j. Octets are placed so that the eight lanes that read at a
// time find different banks.
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
layout(constant_id = 1) const uint ROWS = 128;
layout(constant_id = 2) const uint COLS = 128;
layout(constant_id = 3) const uint DOWN = 4; // 2 or 4
layout(constant_id = 4) const uint LEFT_ALONG = 1; // whether operands are K-major; at least one of them is
layout(constant_id = 5) const uint RIGHT_ALONG = 0;
// SHARED is the uvec4 of shared memory: two steps, or 16 rows of each subgroup's output.
layout(constant_id = 6) const uint SHARED = 2048;
layout(constant_id = 7) const uint ADDS = 0; // 1: the kernel only adds partial sums

#define ELEM F16
#include "gemm.glsl"
#include "../include/store_halves.glsl"
#include "../include/lanes.glsl"

const uint STEP = 32;
const uint OCTETS = STEP / 8; // of a line
const uint LOCAL = gl_WorkGroupSize.x;
const uint LINES = 2 * DOWN; // the lane's rows
const uint LEFTS = ROWS * OCTETS / LOCAL,
           RIGHTS = COLS * OCTETS / LOCAL; // octets of an operand that each invocation loads for a step
const uint PITCH = 17; // vec4 from a row of output to the next

shared uvec4 mem[SHARED];

SUM sums[8 * DOWN]; // sums[8·i + j]: operation (i, j)

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

// fetch loads octet n of lines from i on at the step from k on. Octets past the operand's end are read as the last one.
// The table sees to it that an operand has less than 2^31 octets.
uvec4 fetch(Operand x, uint n, bool along, uint lines, uint i, uint k) {
    uint line = lineOf(n, along, lines), place = placeOf(n, along, lines), pitch = x.ld / 8;
    if (along) return Octets(x.x).v[min(i + line, x.lines - 1) * pitch + min(k / 8 + place, pitch - 1)];
    return Octets(x.x).v[min(k + place, p.cols - 1) * pitch + min(i / 8 + line, pitch - 1)];
}

// cut makes the elements from number `left` on 0.
uvec4 cut(uvec4 v, int left) {
    [[unroll]] for (int e = 0; e < 4; e++)
        v[e] &= left >= 2 * e + 2 ? 0xffffffffu : left > 2 * e ? 0xffffu : 0;
    return v;
}

// alongAt returns where an octet of a line is in shared memory, acrossAt an octet of eight lines at a k. `each` is the
// lines of a lane.
uint alongAt(uint line, uint octet, uint each) { return (line ^ (line / each & 1)) * OCTETS + octet; }
uint acrossAt(uint place, uint octet, uint lines) { return place * (lines / 8) + (octet ^ (place / 8 & 3) * 2); }

// slot returns where the invocation's octet n goes.
uint slot(uint n, bool along, uint lines, uint each) {
    uint line = lineOf(n, along, lines), place = placeOf(n, along, lines);
    return along ? alongAt(line, place, each) : acrossAt(place, line, lines);
}

// operandOf returns operand B from four neighbouring elements of a line.
OPERAND_B operandOf(uint w0, uint w1) { return values8(uvec2(w0, w1)); }

// rowsOf returns operand A from four elements of row g, in w0 and w1, and four of row g + 8.
OPERAND_A rowsOf(uint w0, uint w1, uint w2, uint w3) {
    f16vec2 r0 = unpackFloat2x16(w0), r1 = unpackFloat2x16(w1), r2 = unpackFloat2x16(w2), r3 = unpackFloat2x16(w3);
    OPERAND_A x;
    x[0] = r0.x;
    x[1] = r0.y;
    x[2] = r1.x;
    x[3] = r1.y;
    x[4] = r2.x;
    x[5] = r2.y;
    x[6] = r3.x;
    x[7] = r3.y;
    return x;
}

// columnOf returns operand B from the lower or upper halves of four words.
OPERAND_B columnOf(uint w0, uint w1, uint w2, uint w3, bool upper) {
    f16vec2 r0 = unpackFloat2x16(w0), r1 = unpackFloat2x16(w1), r2 = unpackFloat2x16(w2), r3 = unpackFloat2x16(w3);
    OPERAND_B y;
    y[0] = upper ? r0.y : r0.x;
    y[1] = upper ? r1.y : r1.x;
    y[2] = upper ? r2.y : r2.x;
    y[3] = upper ? r3.y : r3.x;
    return y;
}

// multiply multiplies a step whose octets are at `left` and `right`.
void multiply(uint left, uint right, uint down, uint across) {
    uint g = gl_SubgroupInvocationID >> 2, t = gl_SubgroupInvocationID & 3;
    uvec4 a[8], b[8];
    if (LEFT_ALONG != 0) [[unroll]]
        for (uint n = 0; n < LINES; n++) a[n] = mem[left + alongAt(down + LINES * g + n, t, LINES)];
    if (RIGHT_ALONG != 0) [[unroll]]
        for (uint j = 0; j < 8; j++) b[j] = mem[right + alongAt(across + 8 * g + j, t, 8)];
    [[unroll]] for (uint e = 0; e < 2; e++) {
        if (LEFT_ALONG == 0) [[unroll]]
            for (uint i = 0; i < 4; i++) {
                if (DOWN == 4) a[i] = mem[left + acrossAt(8 * t + 4 * e + i, down / 8 + g, ROWS)];
                else {
                    uvec4 v = mem[left + acrossAt(8 * t + 4 * e + i, down / 8 + g / 2, ROWS)];
                    a[i].xy = g % 2 == 0 ? v.xy : v.zw;
                }
            }
        if (RIGHT_ALONG == 0) [[unroll]]
            for (uint i = 0; i < 4; i++) b[i] = mem[right + acrossAt(8 * t + 4 * e + i, across / 8 + g, COLS)];
        OPERAND_B y[8];
        [[unroll]] for (uint j = 0; j < 8; j++) {
            if (RIGHT_ALONG != 0) y[j] = operandOf(b[j][2 * e], b[j][2 * e + 1]);
            else y[j] = columnOf(b[0][j / 2], b[1][j / 2], b[2][j / 2], b[3][j / 2], j % 2 != 0);
        }
        [[unroll]] for (uint i = 0; i < DOWN; i++) {
            OPERAND_A x;
            if (LEFT_ALONG != 0)
                x = rowsOf(a[2 * i][2 * e], a[2 * i][2 * e + 1], a[2 * i + 1][2 * e], a[2 * i + 1][2 * e + 1]);
            else x = columns16(a[0][i], a[1][i], a[2][i], a[3][i]);
            [[unroll]] for (uint j = 0; j < 8; j++)
                sums[8 * i + j] = coopMatMulAdd(x, y[j], sums[8 * i + j]);
        }
    }
}

// Fetched is the octets that an invocation loads for a step.
struct Fetched {
    uvec4 l[LEFTS], r[RIGHTS];
};

const bool LA = LEFT_ALONG != 0, RA = RIGHT_ALONG != 0;

void fetchStep(out Fetched x, Operand l, Operand r, uint row, uint col, uint k) {
    [[unroll]] for (uint n = 0; n < LEFTS; n++)
        x.l[n] = fetch(l, n, LA, ROWS, row, k);
    [[unroll]] for (uint n = 0; n < RIGHTS; n++)
        x.r[n] = fetch(r, n, RA, COLS, col, k);
}

// step multiplies step s. It writes it to shared memory from `stage` on, and starts loading the step after the next.
void step(inout Fetched x, Operand l, Operand r, uint row, uint col, uint down, uint across, uint s, uint stage) {
    const uint left = ROWS * OCTETS;
    uint k = s * STEP;
    if (k + STEP > p.cols) { // Only the operand that lies along is cut: its zeros meet whatever the other one has.
        [[unroll]] for (uint n = 0; n < LEFTS; n++)
            if (LA) x.l[n] = cut(x.l[n], int(p.cols) - int(k + 8 * placeOf(n, LA, ROWS)));
        [[unroll]] for (uint n = 0; n < RIGHTS; n++)
            if (RA) x.r[n] = cut(x.r[n], int(p.cols) - int(k + 8 * placeOf(n, RA, COLS)));
    }
    [[unroll]] for (uint n = 0; n < LEFTS; n++)
        mem[stage + slot(n, LA, ROWS, LINES)] = x.l[n];
    [[unroll]] for (uint n = 0; n < RIGHTS; n++)
        mem[stage + left + slot(n, RA, COLS, 8)] = x.r[n];
    barrier();
    fetchStep(x, l, r, row, col, k + 2 * STEP);
    multiply(stage, stage + left, down, across);
}

// sum multiplies steps first to last - 1 of a tile.
void sum(Operand l, Operand r, uint row, uint col, uint down, uint across, uint first, uint last) {
    const uint stages = (ROWS + COLS) * OCTETS;
    Fetched x, y;
    fetchStep(x, l, r, row, col, first * STEP);
    fetchStep(y, l, r, row, col, (first + 1) * STEP);
    for (uint s = first; s < last; s += 2) {
        step(x, l, r, row, col, down, across, s, 0);
        if (s + 1 == last) break;
        step(y, l, r, row, col, down, across, s + 1, stages);
    }
}

// put writes sums to C, or the partial sums of split `split` to the workspace.
void put(Operand x[2], uint split, uint i, uint j, vec4 v) {
    if (i >= p.rows || j >= p.n) return;
    if (p.splits > 1) {
        Quads(at(uvec2(p.work), split * p.rows + i, (p.n + 3) / 4 * 16)).v[j / 4] = v;
        return;
    }
    v = repair(x, i, j, v);
    if (storeType == F16) storeHalves(i, j, v);
    else storeFloats(i, j, v);
}

// add adds the partial sums of four columns of a row in the order of K, and stores them.
void add() {
    uint quads = (p.n + 3) / 4, i = (gl_WorkGroupID.x + gl_WorkGroupID.z * p.width) * LOCAL + gl_LocalInvocationIndex,
         row = i / quads, j = i % quads * 4;
    if (row >= p.rows) return;
    vec4 partial[8], v = vec4(0);
    [[unroll]] for (uint q = 0; q < 8; q++)
        if (q < p.splits) partial[q] = Quads(at(uvec2(p.work), q * p.rows + row, quads * 16)).v[j / 4];
    [[unroll]] for (uint q = 0; q < 8; q++)
        if (q < p.splits) v += partial[q];
    Operand x[2] = {left(), right()};
    v = repair(x, row, j, v);
    if (storeType == F16) storeHalves(row, j, v);
    else storeFloats(row, j, v);
}

void main() {
    if (ADDS != 0) {
        add();
        return;
    }
    uint item = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width, split = item % p.splits, tile = item / p.splits;
    uint row = tile / p.across * ROWS, col = tile % p.across * COLS, lane = gl_SubgroupInvocationID, g = lane >> 2,
         t = lane & 3;
    if (row >= p.rows) return;
    Operand x[2] = {left(), right()};
    uint down = gl_SubgroupID / (COLS / 64) * 16 * DOWN, across = gl_SubgroupID % (COLS / 64) * 64;
    [[unroll]] for (uint i = 0; i < 8 * DOWN; i++)
        sums[i] = SUM(0.0);
    uint steps = (p.cols + STEP - 1) / STEP, first = steps * split / p.splits, last = steps * (split + 1) / p.splits;
    if (first < last) sum(x[0], x[1], row, col, down, across, first, last);
    barrier();

    // To C by way of shared memory, 16 rows after the other, so that the code is small.
    uint mine = gl_SubgroupID * 16 * PITCH;
    [[dont_unroll]] for (uint i = 0; i < DOWN; i++) {
        [[unroll]] for (uint h = 0; h < 2; h++)
            [[unroll]] for (uint e = 0; e < 2; e++) [[unroll]] for (uint j = 0; j < 2; j++)
                mem[mine + (8 * h + g) * PITCH + 4 * t + 2 * e + j] =
                    floatBitsToUint(vec4(sums[4 * j][2 * h + e], sums[4 * j + 1][2 * h + e], sums[4 * j + 2][2 * h + e],
                                         sums[4 * j + 3][2 * h + e]));
        [[unroll]] for (uint j = 0; j < 8 * (DOWN - 1); j++)
            sums[j] = sums[j + 8];
        subgroupMemoryBarrierShared();
        subgroupBarrier();
        [[dont_unroll]] for (uint q = lane; q < 16 * 16; q += 32) {
            uint r = q / 16, at_ = down + LINES * (r % 8) + 2 * i + r / 8;
            put(x, split, row + at_, col + across + q % 16 * 4, uintBitsToFloat(mem[mine + r * PITCH + q % 16]));
        }
        subgroupMemoryBarrierShared();
        subgroupBarrier();
    }
}
