// Computes: C = alpha·A·B + beta·C, A (rows × cols) 2:4 sparse, packed as for sparse24.cu, f16, sums in f32, on
// cooperative matrices (TM × TN × TK).
// Tile: a workgroup computes (ROWS × COLS).
// Data movement: ../include/coop_tile.glsl. A is expanded to dense lines when it is written to shared memory. An
// invocation loads 8 values at a time: of rows g and g + 8 of 16 rows, each the entries of columns 4t to 4t + 3 and of
// those 16 on, of 32 columns.
// Bound by: shared memory and matrix units.

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
layout(constant_id = 2) const uint TN = 16;
layout(constant_id = 3) const uint TK = 16;
layout(constant_id = 4) const uint SUBS = 8;
layout(constant_id = 5) const uint SUBS_ACROSS = 2;
layout(constant_id = 6) const uint ROWS = 128;
layout(constant_id = 7) const uint COLS = 128;
layout(constant_id = 8) const uint STEP = 64; // columns of A, a multiple of 32
layout(constant_id = 9) const uint SHARED = 2240; // uvec4 of shared memory
layout(constant_id = 10) const uint SLICES = 1;

#define ELEM F16
#define SPARSE24
#include "nm.glsl"
#include "../include/store_halves.glsl"
#include "../include/quads.glsl"

const uint STAGES = 1, LEFT_ALONG = 1, RIGHT_ALONG = 0;
const uint LOCAL = gl_WorkGroupSize.x;
const uint LEFTS = ROWS * STEP / 16 / LOCAL, RIGHTS = STEP * COLS / 8 / LOCAL; // uvec4 that an invocation loads
const uint PARTS = STEP / 32; // of 32 columns

uint row, col; // of the tile
uint steps; // of the whole sum

struct Fetched {
    uvec4 l[LEFTS], r[RIGHTS];
    uvec2 places[LEFTS];
};

#include "../include/coop_tile.glsl"

// Load n of an invocation is of lane `laneOf` of 32 columns `partOf` of 16 rows `pairOf`.
uint laneOf(uint n) { return (n * LOCAL + gl_LocalInvocationIndex) % 32; }
uint partOf(uint n) { return (n * LOCAL + gl_LocalInvocationIndex) / 32 % PARTS; }
uint pairOf(uint n) { return (n * LOCAL + gl_LocalInvocationIndex) / 32 / PARTS; }

void fetchStep(out Fetched x, uint s) {
    s = min(s, steps - 1);
    uint stages = (p.cols + 63) / 64; // of the packing
    // The table sees to it that no array has 2^31 octets or more.
    [[unroll]] for (uint n = 0; n < LEFTS; n++) {
        uint part = partOf(n), lane = laneOf(n), pair = row / 16 + pairOf(n);
        x.l[n] = Octets(uvec2(p.values)).v[pair * stages * 64 + part * 32 + lane + s * (PARTS * 32)];
        part += s * PARTS;
        x.places[n] = Pairs(uvec2(p.places)).v[pair * stages * 16 + lane / 4 * 2 + part / 2 * 16 + part % 2];
    }
    [[unroll]] for (uint n = 0; n < RIGHTS; n++) {
        uint t = n * LOCAL + gl_LocalInvocationIndex, k = min(s * STEP + t / (COLS / 8), p.cols - 1);
        // Columns past the leading dimension are read from its end instead; they are never stored.
        x.r[n] = Octets(uvec2(p.b)).v[min(col / 8 + t % (COLS / 8), p.ldb / 8 - 1) + k * (p.ldb / 8)];
    }
}

void putStep(Fetched x, uint s, uint to) {
    [[unroll]] for (uint n = 0; n < LEFTS; n++) {
        uint lane = laneOf(n), g = lane / 4, t = lane % 4;
        [[unroll]] for (uint e = 0; e < 4; e++) { // of row g + 8·(e % 2), columns 16·(e / 2) + 4·t on
            uvec2 q = quadOf24(x.l[n][e], x.places[n][e / 2] >> 16 * (e % 2) + 4 * t);
            uint line = to + (pairOf(n) * 16 + g + e % 2 * 8) * LEFT_LINE + partOf(n) * 4 + e / 2 * 2 + t / 2;
            mem[line][t % 2 * 2] = q.x; // Each half of an octet is another invocation's.
            mem[line][t % 2 * 2 + 1] = q.y;
        }
    }
    [[unroll]] for (uint n = 0; n < RIGHTS; n++) {
        uint t = n * LOCAL + gl_LocalInvocationIndex;
        mem[to + LEFT + t / (COLS / 8) * RIGHT_LINE + t % (COLS / 8)] = x.r[n];
    }
}

// putQuad writes sums to C.
void putQuad(uint i, uint j, vec4 v) {
    i += row, j += col;
    if (i >= p.rows || j >= p.n) return;
    v = repair(panelOf(i), 0, j, v);
    if (storeType == F16) storeHalves(i, j, v);
    else storeFloats(i, j, v);
}

void main() {
    uint block = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width;
    if (block >= p.blocks) return;
    row = block * ROWS, col = gl_WorkGroupID.y * COLS;
    steps = (p.cols + 63) / 64 * (64 / STEP);
    multiplySteps(0, steps);
}
