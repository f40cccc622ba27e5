// Computes: C = alpha·A·B + beta·C, A (rows × cols) in HRPB, f32, f16 or bf16, sums in f32, on scalar units.
// Tile: a workgroup computes (16 × 4·LOCAL) for a run of a panel's blocks, an invocation (16 × 4). Where C is narrower,
// invocations share a block's active columns (slices), and their sums are added in order at the end.
// Data movement: a block's values are unpacked into shared memory (16 × BLOCK), zeros where the pattern has no bit.
// Rows of B come straight from memory.
// Bound by: FMA.
// Constants: ELEM.

#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require

layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
layout(constant_id = 1) const uint BLOCK = 16; // active columns of a block

#include "hrpb.glsl"

const uint LOCAL = gl_WorkGroupSize.x;

shared vec4 values[BLOCK * 4]; // 16 rows of each active column
shared uint cols[BLOCK];
shared vec4 partial[LOCAL];

#include "../include/quad.glsl"

// loadStage unpacks block q.
void loadStage(uint q) {
    uvec2 block = blockAt(q), from = valuesOf(block);
    for (uint i = gl_LocalInvocationIndex; i < BLOCK * ROWS; i += LOCAL) {
        uint col = i / ROWS, bit = i % ROWS * 4 + col % 4, word = col / 4 * 2 + bit / 32, k = 0;
        for (uint w = 0; w < word; w++) k += bitCount(Words(block).v[w]);
        uint pattern = Words(block).v[word], mine = 1u << bit % 32;
        float x = 0;
        if ((pattern & mine) != 0) x = element(from, k + bitCount(pattern & (mine - 1u)));
        values[i / 4][i % 4] = x;
    }
    for (uint i = gl_LocalInvocationIndex; i < BLOCK; i += LOCAL) cols[i] = Words(activeAt(q)).v[i];
}

void main() {
    uint item = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width;
    if (item >= p.items) return;
    if (p.phase == 1) {
        addSlots(item, LOCAL, 4 * LOCAL);
        return;
    }
    Part a = partAt(item);
    uint base = gl_WorkGroupID.y * 4 * LOCAL, width = 1;
    while (width < LOCAL && 4 * width < p.n - base) width *= 2;
    uint slices = LOCAL / width;
    uint slice = gl_LocalInvocationIndex / width, lane = gl_LocalInvocationIndex % width;
    uint j = base + 4 * lane;
    uint from = min(j, p.ldb - 4) / 4; // past the last column anything may be read

    vec4 acc[ROWS];
    [[unroll]] for (uint r = 0; r < ROWS; r++)
        acc[r] = vec4(0);
    for (uint q = a.first; q < a.last; q++) {
        barrier();
        loadStage(q);
        barrier();
        for (uint i = slice; i < BLOCK; i += slices) {
            if (i > 0 && cols[i] == cols[i - 1]) break; // padding
            vec4 x = quad(rowOfB(cols[i]), from);
            [[unroll]] for (uint r = 0; r < ROWS; r += 4) {
                vec4 w = values[i * 4 + r / 4];
                acc[r] += w.x * x;
                acc[r + 1] += w.y * x;
                acc[r + 2] += w.z * x;
                acc[r + 3] += w.w * x;
            }
        }
    }
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        if (slices > 1) {
            barrier();
            partial[gl_LocalInvocationIndex] = acc[r];
            barrier();
            if (slice == 0)
                for (uint i = 1; i < slices; i++) acc[r] += partial[i * width + lane];
        }
        if (slice == 0) keep(a, r, j, acc[r]);
    }
}
