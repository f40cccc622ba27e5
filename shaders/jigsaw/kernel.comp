// Computes: C = alpha·A·B + beta·C, A (rows × cols) in Jigsaw's format, f32, f16 or bf16, sums in f32, on scalar units.
// Tile: a workgroup computes a strip (16 × 4·LOCAL), an invocation (16 × 4). Where C is narrower, invocations share a
// stage's vectors (slices), and their sums are added in order at the end.
// Data movement: STAGE steps at a time are expanded in shared memory to dense vectors (16 × 1). Rows of B come straight
// from memory.
// Bound by: FMA.
// Constants: ELEM.

#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require

layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
layout(constant_id = 1) const uint STAGE = 2; // steps

#include "jigsaw.glsl"

const uint LOCAL = gl_WorkGroupSize.x;

shared float values[STAGE * STEP_COLS * ROWS];
shared uint cols[STAGE * STEP_COLS];
shared vec4 sums[LOCAL];

#include "../include/quad.glsl"

// expand writes steps from number n on to shared memory, m of them. Each place is written once: what a lane of
// the matrix unit would hold, here an invocation spreads over its four columns.
void expand(Strip a, uint n, uint m) {
    for (uint i = gl_LocalInvocationIndex; i < m * 64; i += LOCAL) {
        uint s = n + i / 64, lane = i / 2 & 31, t = i & 1, g = lane >> 2, q = lane & 3;
        vec4 x = quad(at(a.values, s, STEP_SLOTS * ELEM_BYTES), 2 * lane + t);
        uint at_ = places(a, s, t, g, q), to = (i / 64 * STEP_COLS + 16 * t + 4 * q) * ROWS + g;
        for (uint k = 0; k < 4; k++) {
            values[to + k * ROWS] = k == (at_ & 3) ? x.x : k == (at_ >> 2 & 3) ? x.y : 0;
            values[to + k * ROWS + 8] = k == (at_ >> 16 & 3) ? x.z : k == (at_ >> 18 & 3) ? x.w : 0;
        }
    }
    for (uint i = gl_LocalInvocationIndex; i < m * STEP_COLS; i += LOCAL)
        cols[i] = Words(at(a.cols, n, STEP_COLS * 4)).v[i];
}

void main() {
    uint slot = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width;
    if (slot >= p.blocks) return;
    Strip a = stripOf(slot);
    uint base = gl_WorkGroupID.y * 4 * LOCAL, width = 1;
    while (width < LOCAL && 4 * width < p.n - base) width *= 2;
    uint slices = LOCAL / width;
    uint slice = gl_LocalInvocationIndex / width, lane = gl_LocalInvocationIndex % width;
    uint j = base + 4 * lane;
    uint from = min(j, p.ldb - 4) / 4; // past the last column anything may be read

    vec4 acc[ROWS];
    [[unroll]] for (uint r = 0; r < ROWS; r++)
        acc[r] = vec4(0);
    for (uint n = 0; n < a.steps; n += STAGE) {
        uint m = min(STAGE, a.steps - n);
        barrier();
        expand(a, n, m);
        barrier();
        for (uint k = slice; k < m * STEP_COLS; k += slices) {
            vec4 x = quad(rowOfB(cols[k]), from);
            [[unroll]] for (uint r = 0; r < ROWS; r++)
                acc[r] += values[k * ROWS + r] * x;
        }
    }
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        if (slices > 1) {
            barrier();
            sums[gl_LocalInvocationIndex] = acc[r];
            barrier();
            if (slice == 0)
                for (uint i = 1; i < slices; i++) acc[r] += sums[i * width + lane];
        }
        if (slice == 0 && j < p.n && a.row + r < p.rows) storeFloats(a.row + r, j, repair(a, r, j, acc[r]));
    }
}
