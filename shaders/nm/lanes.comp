// Computes: C = alpha·A·B + beta·C, A (rows × cols) N:M sparse in units of ROWS rows, f16, sums in f32, on cooperative
// matrices of a known lane layout (../include/lanes.glsl).
// Tile: a workgroup of DOWN·ACROSS subgroups computes (ROWS × 64·ACROSS), a subgroup (ROWS/DOWN × 64). A step is 16
// columns of A. Lane 4g + t has four of them, 4t to 4t + 3.
// Data movement: a stage is 32 condensed columns of A: their rows of B are copied to shared memory for all subgroups.
// The next stage is prefetched to registers, and the column numbers of the one after it. Row 4t + i of a step is staged
// as its row 4i + t, and staged rows are 32 bytes more than a multiple of 128 apart, so that the rows that the lanes of
// a quad read together are in different banks.
// Bound by: gathers of rows of B, then shared memory.
//
// A's values come in the order in which lanes hold them: lane l has 8 halves of each 16 rows and step, those of row g,
// then those of row g + 8; places are the columns' numbers, for whole stages (lanes.go).

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
layout(constant_id = 1) const uint ROWS = 64;
layout(constant_id = 2) const uint DOWN = 2;
layout(constant_id = 3) const uint ACROSS = 2;
layout(constant_id = 4) const uint SHARED =
    1152; // uvec4 of shared memory: two stages, or 16 rows of C for each subgroup

#define ELEM F16
#define LANES
#include "nm.glsl"
#include "../include/store_halves.glsl"
#include "../include/lanes.glsl"

shared uvec4 mem[SHARED];

const uint LOCAL = 32 * DOWN * ACROSS;
const uint STAGE = 32;
const uint ROW = 8 * ACROSS; // uvec4 of a row of B
const uint PITCH = ROW + 2; // from one to the next: ROW is a multiple of 8
const uint LOADS = STAGE * ROW / LOCAL; // uvec4 of B that each invocation loads for a stage: whole
const uint PAIRS = ROWS / DOWN / 16; // of 8 rows

// The lane's part of a stage of A, and of the next.
const uint OCTETS = 2 * PAIRS;
uvec4 values[OCTETS], valuesNext[OCTETS];

SUM sums[PAIRS * 8]; // of a pair, the rows of each half by 4 operations

// rowAt returns the row of a stage that the invocation's octet i is of.
uint rowAt(uint i) { return (i * LOCAL + gl_LocalInvocationIndex) / ROW; }

// loadA loads stage s of the subgroup's 16-row pairs from first on.
void loadA(Panel a, uint s, uint stages, uint first) {
    uint lane = gl_SubgroupInvocationID;
    [[unroll]] for (uint i = 0; i < PAIRS; i++) {
        [[unroll]] for (uint k = 0; k < 2; k++)
            valuesNext[2 * i + k] = Octets(a.values).v[((2 * s + k) * (ROWS / 16) + first + i) * 32 + lane];
    }
}

// useA takes what was loaded.
void useA() {
    [[unroll]] for (uint i = 0; i < OCTETS; i++)
        values[i] = valuesNext[i];
}

// operand returns the second operand of step k for half h of pair i.
OPERAND_B operand(uint i, uint k, uint h) {
    uvec4 v = values[2 * i + k];
    return values8(h == 0 ? v.xy : v.zw);
}

void main() {
    uint block = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width;
    if (block >= p.blocks) return;
    uint row = block * ROWS, base = gl_WorkGroupID.y * (64 * ACROSS), me = gl_LocalInvocationIndex;
    uint lane = gl_SubgroupInvocationID, g = lane >> 2, t = lane & 3;
    uint down = gl_SubgroupID / ACROSS, across = gl_SubgroupID % ACROSS;
    bool busy = base + 64 * across < p.n; // else the subgroup's columns do not exist
    [[unroll]] for (uint i = 0; i < PAIRS * 8; i++)
        sums[i] = SUM(0.0);

    Panel a = panelOf(block);
    uint first = down * PAIRS, stages = (a.count + 31) / 32;

    // Columns past the leading dimension are read from its end instead; they are never stored.
    uvec2 b = at(uvec2(p.b), min(base / 8 + me % ROW, p.ldb / 8 - 1), 16);
    uint column[LOADS];
    uvec4 rows[LOADS];
    if (stages > 0) {
        [[unroll]] for (uint i = 0; i < LOADS; i++) {
            uint k = rowAt(i);
            rows[i] = Octets(at(b, Words(a.places).v[k], 2 * p.ldb)).v[0];
            column[i] = Words(a.places).v[k + (stages > 1 ? STAGE : 0)];
        }
        loadA(a, 0, stages, first);
    }

    for (uint s = 0; s < stages; s++) {
        uint stage = (s & 1u) * STAGE * PITCH;
        [[unroll]] for (uint i = 0; i < LOADS; i++) {
            uint k = rowAt(i);
            mem[stage + ((k & 16) + (k & 3) * 4 + (k >> 2 & 3)) * PITCH + me % ROW] = rows[i];
        }
        useA();
        barrier();
        if (s + 1 < stages) {
            uint next = min(s + 2, stages - 1) * STAGE;
            [[unroll]] for (uint i = 0; i < LOADS; i++) {
                rows[i] = Octets(at(b, column[i], 2 * p.ldb)).v[0];
                column[i] = Words(a.places).v[next + rowAt(i)];
            }
            loadA(a, s + 1, stages, first);
        }
        if (!busy) continue;
        [[unroll]] for (uint k = 0; k < 2; k++) {
            uint from = stage + (16 * k + t) * PITCH + 8 * across + g;
            uvec4 r0 = mem[from], r1 = mem[from + 4 * PITCH], r2 = mem[from + 8 * PITCH], r3 = mem[from + 12 * PITCH];
            OPERAND_B y[2 * PAIRS];
            [[unroll]] for (uint i = 0; i < 2 * PAIRS; i++)
                y[i] = operand(i / 2, k, i % 2);
            [[unroll]] for (uint j = 0; j < 4; j++) {
                OPERAND_A x = columns16(r0[j], r1[j], r2[j], r3[j]);
                [[unroll]] for (uint i = 0; i < 2 * PAIRS; i++)
                    sums[4 * i + j] = coopMatMulAdd(x, y[i], sums[4 * i + j]);
            }
        }
    }

    // The sums, 16 rows of C at a time.
    const uint pitch = 17;
    uint mine = gl_SubgroupID * 16 * pitch;
    barrier();
    [[unroll]] for (uint i = 0; i < PAIRS; i++) {
        [[unroll]] for (uint h = 0; h < 2; h++)
            [[unroll]] for (uint e = 0; e < 2; e++) [[unroll]] for (uint q = 0; q < 2; q++) {
                uint n = (2 * i + h) * 4 + 2 * q;
                mem[mine + (8 * h + 2 * t + e) * pitch + 2 * g + q] = floatBitsToUint(quadOf(sums[n], sums[n + 1], e));
            }
        subgroupMemoryBarrierShared();
        subgroupBarrier();
        for (uint q = lane; q < 256; q += 32) {
            uint r = (down * PAIRS + i) * 16 + q / 16, j = base + 64 * across + 4 * (q % 16);
            if (row + r >= p.rows || j >= p.n) continue;
            vec4 x = repair(a, r, j, uintBitsToFloat(mem[mine + q / 16 * pitch + q % 16]));
            if (storeType == F16) storeHalves(row + r, j, x);
            else storeFloats(row + r, j, x);
        }
        subgroupMemoryBarrierShared();
        subgroupBarrier();
    }
}
