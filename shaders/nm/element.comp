// Computes: C = alpha·A·B + beta·C, A (rows × cols) N:M sparse in single entries (nmSPARSE §3.2), f32, f16 or bf16 on
// scalar units.
// Tile: an invocation computes (1 × 4·QUADS).
// Data movement: every row has the same slots in every group, so all invocations of a workgroup read rows of B out of
// the same p.every at one slot: the rows of B of as many groups as DEPTH holds are loaded into shared memory, columns
// by fours, the rows of each four next to each other, so that neighbours read different banks or the same place.
// Bound by: FMA and the shared-memory reads that feed it.
// Constants: ELEM.

#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require

layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
layout(constant_id = 1) const uint QUADS = 8;
layout(constant_id = 2) const uint DEPTH = 64; // p.every at least

#include "nm.glsl"

const uint LOCAL = gl_WorkGroupSize.x;
const uint PITCH = DEPTH + 1;

shared vec4 rows[QUADS * PITCH];

void main() {
    uint block = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width;
    if (block >= p.blocks) return;
    uint row = block * LOCAL + gl_LocalInvocationIndex, base = gl_WorkGroupID.y * 4 * QUADS;
    uint quads = min(QUADS, (p.n - base + 3) / 4);
    Panel a = panelOf(min(row, p.rows - 1));
    uint per = DEPTH / p.every, depth = per * p.every; // of a stage: groups, rows of B

    vec4 acc[QUADS];
    [[unroll]] for (uint i = 0; i < QUADS; i++)
        acc[i] = vec4(0);
    for (uint g = 0; g < p.groups; g += per) {
        barrier();
        for (uint i = gl_LocalInvocationIndex; i < quads * depth; i += LOCAL) {
            uint k = g * p.every + i / quads;
            rows[i % quads * PITCH + i / quads] =
                k < p.cols ? quad(rowOfB(k), min(base / 4 + i % quads, p.ldb / 4 - 1)) : vec4(0);
        }
        barrier();
        uint last = min(g + per, p.groups) * p.keep;
        for (uint s = g * p.keep; s < last; s++) {
            uint k = columnOf(a, s) - g * p.every;
            float w = element(a.values, a.skip + s);
            [[unroll]] for (uint i = 0; i < QUADS; i++)
                if (i < quads) acc[i] += w * rows[i * PITCH + k];
        }
    }
    if (row >= p.rows) return;
    [[unroll]] for (uint i = 0; i < QUADS; i++)
        if (i < quads) storeFloats(row, base + 4 * i, repair(a, 0, base + 4 * i, acc[i]));
}
