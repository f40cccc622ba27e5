// Computes: C = alpha·A·B + beta·C, A (rows × cols) N:M sparse in units of a multiple of 8 rows, f32, f16 or bf16 on
// scalar units.
// Tile: a workgroup computes (8 × 4·LOCAL) of a panel, an invocation (8 × 4). Where C is narrower, invocations share a
// column's terms (slices), and their sums are added in order at the end.
// Data movement: values and column numbers of STAGE condensed columns go through shared memory. Rows of B come straight
// from memory.
// Bound by: FMA.
// Constants: ELEM.

#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require

layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
layout(constant_id = 1) const uint STAGE = 64;

#include "nm.glsl"

const uint LOCAL = gl_WorkGroupSize.x;
const uint R = 8;

shared vec4 values[STAGE * R / 4];
shared uint cols[STAGE];
shared vec4 sums[LOCAL];

// loadStage copies m condensed columns from number s on to shared memory.
void loadStage(Panel a, uint r, uint s, uint m) {
    for (uint i = gl_LocalInvocationIndex; i < m * R / 4; i += LOCAL)
        values[i] = quad(at(a.values, s + i / (R / 4), p.tall * ELEM_BYTES), r / 4 + i % (R / 4));
    for (uint i = gl_LocalInvocationIndex; i < m; i += LOCAL) cols[i] = min(columnOf(a, s + i), p.cols - 1);
}

void main() {
    uint block = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width;
    if (block >= p.blocks) return;
    uint row = block * R, r0 = row % p.tall;
    Panel a = panelOf(row / p.tall);
    uint base = gl_WorkGroupID.y * 4 * LOCAL, width = 1;
    while (width < LOCAL && 4 * width < p.n - base) width *= 2;
    uint slices = LOCAL / width;
    uint slice = gl_LocalInvocationIndex / width, lane = gl_LocalInvocationIndex % width;
    uint j = base + 4 * lane;
    uint from = min(j, p.ldb - 4) / 4; // past the last column anything may be read

    vec4 acc[R];
    [[unroll]] for (uint r = 0; r < R; r++)
        acc[r] = vec4(0);
    for (uint s = 0; s < a.count; s += STAGE) {
        uint m = min(STAGE, a.count - s);
        barrier();
        loadStage(a, r0, s, m);
        barrier();
        for (uint q = slice; q < m; q += slices) {
            vec4 x = quad(rowOfB(cols[q]), from);
            [[unroll]] for (uint r = 0; r < R; r += 4) {
                vec4 w = values[(q * R + r) / 4];
                acc[r] += w.x * x;
                acc[r + 1] += w.y * x;
                acc[r + 2] += w.z * x;
                acc[r + 3] += w.w * x;
            }
        }
    }
    [[unroll]] for (uint r = 0; r < R; r++) {
        if (slices > 1) {
            barrier();
            sums[gl_LocalInvocationIndex] = acc[r];
            barrier();
            if (slice == 0)
                for (uint i = 1; i < slices; i++) acc[r] += sums[i * width + lane];
        }
        if (slice == 0 && j < p.n && row + r < p.rows) storeFloats(row + r, j, repair(a, r0 + r, j, acc[r]));
    }
}
