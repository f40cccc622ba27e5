// Computes: C = alpha·A·B + beta·C, A (rows × cols) N:M sparse in units of a multiple of ROWS rows (nmSPARSE §3.3),
// f16, sums in f32, on cooperative matrices (TM × TN × TK).
// Tile: a workgroup computes (ROWS × COLS) of a panel, each of SUBS subgroups (ROWS × COLS/SUBS). SWAP = 1 computes Cᵀ
// = Bᵀ·Aᵀ, so that rows of A lie on TN.
// Data movement: a stage is STAGE condensed columns: their rows of B are gathered into shared memory with 128-bit
// loads, each once for all rows. Their values are stored next to them as a dense matrix. The next stage is prefetched
// to registers, and the column numbers of the one after it.
// Bound by: gathers of rows of B, then shared memory.

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
layout(constant_id = 1) const uint ROWS = 32;
layout(constant_id = 2) const uint TM = 16;
layout(constant_id = 3) const uint TN = 16;
layout(constant_id = 4) const uint TK = 16;
layout(constant_id = 5) const uint SWAP = 0;
layout(constant_id = 6) const uint COLS = 128;
layout(constant_id = 7) const uint SUBS = 4;
layout(constant_id = 8) const uint STAGE = 32; // a multiple of TK
layout(constant_id = 9) const uint SHARED = 1408; // uvec4 of shared memory: what the table computes

#define ELEM F16
#include "nm.glsl"
#include "../include/store_halves.glsl"

// Two stages of B's rows and of values; at the end PART rows of C in f32. A row has one uvec4 more than it needs, which
// spreads columns over the banks.
shared uvec4 mem[SHARED];

const uint LOCAL = gl_WorkGroupSize.x;
const uint A_ROW = ROWS / 8; // uvec4 of a condensed column's values
const uint A_PITCH = A_ROW + 1;
const uint B_ROW = COLS / 8;
const uint B_PITCH = B_ROW + 1;
const uint B_LOADS = STAGE * B_ROW / LOCAL; // uvec4 of B that each invocation loads for a stage: whole
const uint A_LOADS = (STAGE * A_ROW + LOCAL - 1) / LOCAL;
const uint SIZE = STAGE * (A_PITCH + B_PITCH); // of a stage

const uint TILE_COLS = SWAP * TM + (1 - SWAP) * TN;
const uint TILE_ROWS = SWAP * TN + (1 - SWAP) * TM;
const uint ACROSS = COLS / SUBS / TILE_COLS;
const uint DOWN = ROWS / TILE_ROWS;
const uint PART = ROWS < 32 ? ROWS : 32; // rows of C that shared memory has room for

#define OPERAND_A coopmat<float16_t, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA>
#define OPERAND_B coopmat<float16_t, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB>
#define SUM coopmat<float, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator>
#define BY_ROWS gl_CooperativeMatrixLayoutRowMajor
#define BY_COLUMNS gl_CooperativeMatrixLayoutColumnMajor

const uint NONE = 0xffffffffu;

void main() {
    uint block = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width;
    if (block >= p.blocks) return;
    uint row = block * ROWS, r0 = row % p.tall, base = gl_WorkGroupID.y * COLS;
    Panel a = panelOf(row / p.tall);
    uint sub = gl_SubgroupID, t = gl_LocalInvocationIndex;
    bool busy = base + sub * (COLS / SUBS) < p.n; // else the subgroup's columns do not exist

    SUM sums[ACROSS * DOWN];
    [[unroll]] for (uint i = 0; i < ACROSS * DOWN; i++)
        sums[i] = SUM(0.0);

    // Step s loads the columns of stage s and the values and rows of stage s-1, stores stage s-2 and multiplies it.
    uint column[B_LOADS];
    uvec4 rows[B_LOADS], values[A_LOADS];
    [[unroll]] for (uint i = 0; i < B_LOADS; i++)
        column[i] = NONE;
    uint stages = (a.count + STAGE - 1) / STAGE;
    for (uint s = 0; s < stages + 2 && stages > 0; s++) {
        uint stage = (s & 1u) * SIZE;
        if (s >= 2) {
            [[unroll]] for (uint i = 0; i < B_LOADS; i++) {
                uint at = i * LOCAL + t;
                mem[stage + at / B_ROW * B_PITCH + at % B_ROW] = rows[i];
            }
            [[unroll]] for (uint i = 0; i < A_LOADS; i++) {
                uint at = i * LOCAL + t;
                if (at < STAGE * A_ROW) mem[stage + STAGE * B_PITCH + at / A_ROW * A_PITCH + at % A_ROW] = values[i];
            }
            barrier();
        }
        [[unroll]] for (uint i = 0; i < B_LOADS; i++) {
            uint to = i * LOCAL + t, k = s * STAGE + to / B_ROW;
            rows[i] = uvec4(0);
            if (column[i] != NONE) rows[i] = Octets(rowOfB(column[i])).v[base / 8 + to % B_ROW];
            column[i] = NONE;
            if (k < a.count && base + to % B_ROW * 8 < p.n) column[i] = min(columnOf(a, k), p.cols - 1);
        }
        [[unroll]] for (uint i = 0; i < A_LOADS; i++) {
            uint to = i * LOCAL + t, k = (s - 1) * STAGE + to / A_ROW;
            values[i] = uvec4(0);
            if (s >= 1 && to < STAGE * A_ROW && k < a.count)
                values[i] = Octets(at(a.values, k, p.tall * 2)).v[r0 / 8 + to % A_ROW];
        }
        if (s < 2 || !busy) continue;
        for (uint k = 0; k < STAGE; k += TK) {
            uint b = stage + k * B_PITCH + sub * (B_ROW / SUBS), v = stage + STAGE * B_PITCH + k * A_PITCH;
            OPERAND_A x;
            OPERAND_B y;
            [[unroll]] for (uint c = 0; c < ACROSS; c++) {
                if (SWAP == 1) coopMatLoad(x, mem, b + c * TM / 8, B_PITCH, BY_COLUMNS);
                else coopMatLoad(y, mem, b + c * TN / 8, B_PITCH, BY_ROWS);
                [[unroll]] for (uint r = 0; r < DOWN; r++) {
                    if (SWAP == 1) coopMatLoad(y, mem, v + r * TN / 8, A_PITCH, BY_ROWS);
                    else coopMatLoad(x, mem, v + r * TM / 8, A_PITCH, BY_COLUMNS);
                    sums[c * DOWN + r] = coopMatMulAdd(x, y, sums[c * DOWN + r]);
                }
            }
        }
    }

    // The sums, PART rows of C at a time.
    const uint quads = COLS / 4, pitch = quads + 1;
    [[unroll]] for (uint h = 0; h < ROWS; h += PART) {
        barrier();
        [[unroll]] for (uint r = 0; r < PART / TILE_ROWS; r++)
            [[unroll]] for (uint c = 0; c < ACROSS; c++) {
                uint to = r * TILE_ROWS * pitch + (sub * ACROSS + c) * TILE_COLS / 4;
                if (SWAP == 1) coopMatStore(sums[c * DOWN + h / TILE_ROWS + r], mem, to, pitch, BY_COLUMNS);
                else coopMatStore(sums[c * DOWN + h / TILE_ROWS + r], mem, to, pitch, BY_ROWS);
            }
        barrier();
        for (uint i = t; i < PART * quads; i += LOCAL) {
            uint r = h + i / quads, j = base + i % quads * 4;
            if (row + r >= p.rows || j >= p.n) continue;
            vec4 x = repair(a, r0 + r, j, uintBitsToFloat(mem[i / quads * pitch + i % quads]));
            if (storeType == F16) storeHalves(row + r, j, x);
            else storeFloats(row + r, j, x);
        }
    }
}
