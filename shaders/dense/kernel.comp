// Computes: C (rows × n) = alpha·A·B + beta·C, dense, f32, f16 or bf16, sums in f32, on scalar units.
// Tile: a workgroup of 128 invocations computes (64 × 64), an invocation (8 × 4).
// Data movement: steps of 16 of k are loaded into shared memory in f32, where both operands lie across: for each k, the
// elements of 64 lines are neighbours.
// Bound by: FMA.

#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require

layout(local_size_x = 128) in;

#define ROWS 64
#define COLS 64
#define STEP 16
#define PITCH 17 // vec4 from one k to the next

#include "gemm.glsl"
#ifdef QUANT
#define BRING_LEFT loadCodes
#else
#define BRING_LEFT loadStage
#endif

shared vec4 tiles[2][STEP * PITCH];

#include "../include/pair.glsl"

// four returns the first four elements of a run, which begins at a multiple of four.
vec4 four(Run r) {
#if ELEM == F32
    return Quads(r.line).v[r.at / 4];
#else
    uvec2 w = Pairs(r.line).v[r.at / 4];
    return vec4(pair(w.x), pair(w.y));
#endif
}

// loadStage copies k to k + STEP of lines i to i + 64 to tile t. Elements past the operand's end become 0.
void loadStage(uint t, Operand x, uint i, uint k) {
    [[unroll]] for (uint n = 0; n < 64 * STEP / 4 / 128; n++) {
        uint at = gl_LocalInvocationIndex + 128 * n;
        uint line = x.along ? at % 64 : at % 16 * 4, place = x.along ? at / 64 * 4 : at / 16;
        vec4 v = vec4(0);
        if (i + line < x.lines && k + place < p.cols) v = four(runOf(x, i + line, k + place));
        if (!x.along) {
            tiles[t][place * PITCH + line / 4] = v;
            continue;
        }
        // Elements past a line's end can be read, but need not be 0.
        [[unroll]] for (uint e = 0; e < 4; e++)
            tiles[t][(place + e) * PITCH + line / 4][line % 4] = k + place + e < p.cols ? v[e] : 0;
    }
}

#ifdef QUANT
// loadCodes does so for quantised rows. Codes past the last column become 0.
void loadCodes(uint t, Operand x, uint i, uint k) {
    [[unroll]] for (uint n = 0; n < 64 * STEP / 4 / 128; n++) {
        uint at = gl_LocalInvocationIndex + 128 * n, line = at % 64, place = at / 64 * 4;
        uint codes = 0;
        float s = 0;
        if (i + line < x.lines && k + place < p.cols)
            codes = codesOf(i + line, k + place), s = scaleOf(i + line, k + place);
        [[unroll]] for (uint e = 0; e < 4; e++)
            tiles[t][(place + e) * PITCH + line / 4][line % 4] = s * level(codes, e);
    }
}
#endif

void main() {
    uint row, col;
    if (!tileAt(row, col)) return;
    Operand x[2] = {left(), right()};
    uint down = gl_LocalInvocationIndex / 16 * 8, across = gl_LocalInvocationIndex % 16 * 4;
    vec4 acc[8];
    [[unroll]] for (uint r = 0; r < 8; r++)
        acc[r] = vec4(0);
    for (uint k = 0; k < p.cols; k += STEP) {
        barrier();
        BRING_LEFT(0, x[0], row, k);
        loadStage(1, x[1], col, k);
        barrier();
        for (uint e = 0; e < STEP; e++) {
            vec4 lo = tiles[0][e * PITCH + down / 4], hi = tiles[0][e * PITCH + down / 4 + 1],
                 w = tiles[1][e * PITCH + across / 4];
            [[unroll]] for (uint r = 0; r < 4; r++) {
                acc[r] += lo[r] * w;
                acc[r + 4] += hi[r] * w;
            }
        }
    }
    row += down;
    col += across;
    if (col >= p.n) return;
    [[unroll]] for (uint r = 0; r < 8; r++)
        if (row + r < p.rows) storeFloats(row + r, col, repair(x, row + r, col, acc[r]));
}
