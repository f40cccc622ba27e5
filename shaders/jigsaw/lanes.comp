// Computes: C = alpha·A·B + beta·C, A (rows × cols) in Jigsaw's format on cooperative matrices of a known lane layout
// (../include/lanes.glsl), f16, sums in f32.
// Tile: a subgroup computes a strip (16 × 64). A tile is 16 columns of A, four quads; lane (g, t) has quad t in rows g
// and g + 8.
// Data movement: a lane reads the rows of B that its four columns name straight from memory, and makes rows g and g + 8
// of the quad from their two entries each: the format has a lane's values of a step as 16 bytes.
// Bound by: gathers of rows of B.

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

#define ELEM F16
#include "jigsaw.glsl"
#include "../include/store_halves.glsl"
#include "../include/lanes.glsl"
#include "../include/quads.glsl"

const uint PITCH = 17; // of 64 columns of C, in vec4
shared vec4 mem[ROWS * PITCH];

SUM sums[8]; // of rows 0 to 7, then 8 to 15
uint octet; // where in a row of B the lane's columns are

// multiply adds a tile: the lane's rows of B, entries of rows g and g + 8, and where these are.
void multiply(uvec4 r0, uvec4 r1, uvec4 r2, uvec4 r3, uvec2 entries, uint place) {
    OPERAND_B y = values8(quadOf24(entries.x, place)), z = values8(quadOf24(entries.y, place >> 16));
    [[unroll]] for (uint j = 0; j < 4; j++) {
        OPERAND_A x = columns16(r0[j], r1[j], r2[j], r3[j]);
        sums[j] = coopMatMulAdd(x, y, sums[j]);
        sums[4 + j] = coopMatMulAdd(x, z, sums[4 + j]);
    }
}

uvec4 row(uint k) { return Octets(rowOfB(k)).v[octet]; }

void main() {
    uint slot = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width, base = gl_WorkGroupID.y * 64;
    uint lane = gl_SubgroupInvocationID, g = lane >> 2, t = lane & 3;
    if (slot >= p.blocks) return;
    Strip a = stripOf(slot);
    octet = min(base + 8 * g, p.ldb - 8) >> 3; // past the leading dimension, its end instead: never stored
    [[unroll]] for (uint i = 0; i < 8; i++)
        sums[i] = SUM(0.0);

    // A step's first tile is multiplied while its second is on its way, and so on; columns, values and metadata come a
    // step earlier.
    if (a.steps > 0) {
        Octets columns = Octets(a.cols), values = Octets(a.values);
        Pairs metadata = Pairs(a.metadata); // of both tiles of a step
        uvec4 k0 = columns.v[t], k1 = columns.v[4 + t], v = values.v[lane];
        uvec2 m = metadata.v[2 * g];
        uvec4 x0 = row(k0.x), x1 = row(k0.y), x2 = row(k0.z), x3 = row(k0.w);
        for (uint n = 0; n < a.steps; n++) {
            uvec4 y0 = row(k1.x), y1 = row(k1.y), y2 = row(k1.z), y3 = row(k1.w), now = v;
            uvec2 places = m >> (4 * t);
            uint next = min(n + 1, a.steps - 1);
            k0 = columns.v[8 * next + t];
            k1 = columns.v[8 * next + 4 + t];
            v = values.v[32 * next + lane];
            m = metadata.v[next / 2 * 16 + 2 * g + (next & 1)];
            multiply(x0, x1, x2, x3, now.xy, places.x);
            x0 = row(k0.x), x1 = row(k0.y), x2 = row(k0.z), x3 = row(k0.w);
            multiply(y0, y1, y2, y3, now.zw, places.y);
        }
    }

    // To shared memory, row by row of C.
    [[unroll]] for (uint h = 0; h < 2; h++)
        [[unroll]] for (uint e = 0; e < 2; e++) [[unroll]] for (uint i = 0; i < 2; i++)
            mem[(8 * h + 2 * t + e) * PITCH + 2 * g + i] = quadOf(sums[4 * h + 2 * i], sums[4 * h + 2 * i + 1], e);
    barrier();
    for (uint i = lane; i < ROWS * 16; i += 32) {
        uint r = i / 16, j = base + 4 * (i % 16);
        if (a.row + r >= p.rows || j >= p.n) continue;
        vec4 x = repair(a, r, j, mem[r * PITCH + i % 16]);
        if (storeType == F16) storeHalves(a.row + r, j, x);
        else storeFloats(a.row + r, j, x);
    }
}
