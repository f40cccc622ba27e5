// Computes: C = alpha·A·B + beta·C, A (rows × cols) N:M sparse in units of 16 rows, f16, sums in f32, on cooperative
// matrices of a known lane layout (../include/lanes.glsl).
// Tile: a subgroup computes a panel (16 × 64).
// Data movement: lane (g, t) reads the rows of B of its four columns of a step, 4t to 4t + 3, straight from memory: 16
// rows do not pay for staging B in shared memory as lanes.comp does. Values and columns are packed as for lanes.comp.
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
#define LANES
#include "nm.glsl"
#include "../include/store_halves.glsl"
#include "../include/lanes.glsl"

const uint PITCH = 17; // of 64 columns of C, in vec4
shared vec4 mem[ROWS * PITCH];

SUM sums[8]; // of rows 0 to 7, then 8 to 15
uvec2 b; // address of the lane's columns of B's first row

struct Step {
    uvec4 rows[4], values;
};

uvec4 columns(Panel a, uint s) { return Octets(a.places).v[s * 4 + (gl_SubgroupInvocationID & 3)]; }

Step fetch(Panel a, uint s, uvec4 k) {
    Step x;
    [[unroll]] for (uint i = 0; i < 4; i++)
        x.rows[i] = Octets(at(b, k[i], 2 * p.ldb)).v[0];
    x.values = Octets(a.values).v[s * 32 + gl_SubgroupInvocationID];
    return x;
}

void multiply(Step s) {
    OPERAND_B y = values8(s.values.xy), z = values8(s.values.zw);
    [[unroll]] for (uint j = 0; j < 4; j++) {
        OPERAND_A x = columns16(s.rows[0][j], s.rows[1][j], s.rows[2][j], s.rows[3][j]);
        sums[j] = coopMatMulAdd(x, y, sums[j]);
        sums[4 + j] = coopMatMulAdd(x, z, sums[4 + j]);
    }
}

void main() {
    uint block = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width;
    if (block >= p.blocks) return;
    uint row = block * ROWS, base = gl_WorkGroupID.y * COLS;
    uint lane = gl_SubgroupInvocationID, g = lane >> 2, t = lane & 3;
    Panel a = panelOf(block);
    // Columns past the leading dimension are read from its end instead; they are never stored.
    b = at(uvec2(p.b), min(base / 8 + g, p.ldb / 8 - 1), 16);
    [[unroll]] for (uint i = 0; i < 8; i++)
        sums[i] = SUM(0.0);

    // Two steps are under way, and the columns of the one after them. Panels have an even number of steps.
    uint steps = (a.count + 31) / 32 * 2;
    if (steps > 0) {
        Step x = fetch(a, 0, columns(a, 0)), y;
        uvec4 k = columns(a, 1);
        for (uint s = 0; s < steps; s += 2) {
            uint next = min(s + 2, steps - 2);
            y = fetch(a, s + 1, k);
            k = columns(a, next);
            multiply(x);
            x = fetch(a, next, k);
            k = columns(a, next + 1);
            multiply(y);
        }
    }

    [[unroll]] for (uint h = 0; h < 2; h++)
        [[unroll]] for (uint e = 0; e < 2; e++) [[unroll]] for (uint i = 0; i < 2; i++)
            mem[(8 * h + 2 * t + e) * PITCH + 2 * g + i] = quadOf(sums[4 * h + 2 * i], sums[4 * h + 2 * i + 1], e);
    barrier();
    for (uint i = lane; i < ROWS * 16; i += 32) {
        uint r = i / 16, j = base + 4 * (i % 16);
        if (row + r >= p.rows || j >= p.n) continue;
        vec4 x = repair(a, r, j, mem[r * PITCH + i % 16]);
        if (storeType == F16) storeHalves(row + r, j, x);
        else storeFloats(row + r, j, x);
    }
}
