// CVSE × dense on cooperative matrices, f16 with sums in f32.
//
// A workgroup multiplies one panel of V rows by COLS columns. STAGE vectors at a time, their rows of
// B are gathered into shared memory with 128-bit loads, and their values, beside them, are already a
// dense STAGE×V matrix. While one stage is multiplied the next is on its way to registers. Each of
// SUBS subgroups has its own columns.
//
// The device's matrix operation is TM×TN×TK. Two mappings make the panel fit it (SSpMM §III-B):
//   SWAP = 1  Cᵀ = Bᵀ·Aᵀ: columns of B on TM, the panel's rows on TN (16×8×16, 8×8×8);
//   SWAP = 0  C = A·B: the panel's rows on TM, columns of B on TN (16×16×16, 8×16×16).
// Both read the same staged data, once by rows and once by columns.

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
layout(constant_id = 1) const uint V = 8;
layout(constant_id = 2) const uint TM = 16;
layout(constant_id = 3) const uint TN = 8;
layout(constant_id = 4) const uint TK = 16;
layout(constant_id = 5) const uint SWAP = 1;
layout(constant_id = 6) const uint COLS = 256;
layout(constant_id = 7) const uint SUBS = 4;
layout(constant_id = 8) const uint STAGE = 16;    // vectors, a multiple of TK
layout(constant_id = 9) const uint SHARED = 1120; // uvec4 of shared memory: what the table computes

#define ELEM F16
#include "cvse.glsl"

layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Octets { uvec4 v[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) buffer HalfQuads { uvec2 v[]; };
layout(buffer_reference, std430, buffer_reference_align = 2) buffer Halves { uint16_t v[]; };

// Shared memory, in uvec4: two stages of B's rows and of values; at the end the block of C in f32. A row
// has one more than it needs, which spreads columns over the banks.
const uint B_ROW = COLS / 8 + 1;
const uint A_ROW = V / 8;
const uint STAGE_WORDS = STAGE * (B_ROW + A_ROW);
const uint C_ROW = COLS / 4 + 1;
shared uvec4 mem[SHARED];

const uint LOCAL = gl_WorkGroupSize.x;
const uint B_LOADS = STAGE * (COLS / 8) / LOCAL; // of each invocation: the table sees to it that it is whole
const uint A_LOADS = (STAGE * A_ROW + LOCAL - 1) / LOCAL;

// Tiles of a subgroup: across columns of C, and across rows of the panel.
const uint TILE_COLS = SWAP * TM + (1 - SWAP) * TN;
const uint TILE_ROWS = SWAP * TN + (1 - SWAP) * TM;
const uint ACROSS = COLS / SUBS / TILE_COLS;
const uint DOWN = V / TILE_ROWS;

#define OPERAND_A coopmat<float16_t, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA>
#define OPERAND_B coopmat<float16_t, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB>
#define SUM coopmat<float, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator>
#define BY_ROWS gl_CooperativeMatrixLayoutRowMajor
#define BY_COLUMNS gl_CooperativeMatrixLayoutColumnMajor

const uint NONE = 0xffffffffu;

Panel a;
uint base;             // first column of the block
uint column[B_LOADS];  // the rows of B to fetch next; NONE past the panel's end
uvec4 rows[B_LOADS];   // a stage on its way
uvec4 values[A_LOADS];
SUM sums[ACROSS * DOWN];

// look reads the column numbers of stage s.
void look(uint s) {
    [[unroll]] for (uint i = 0; i < B_LOADS; i++) {
        uint t = i * LOCAL + gl_LocalInvocationIndex;
        uint q = s * STAGE + t / (COLS / 8);
        column[i] = NONE;
        if (q < a.count && base + t % (COLS / 8) * 8 < p.n) column[i] = Words(a.cols).v[q];
    }
}

// fetch starts the loads of stage s, whose column numbers have been looked up. What is past the
// panel's end or past C's last column is 0.
void fetch(uint s) {
    [[unroll]] for (uint i = 0; i < B_LOADS; i++) {
        uint t = i * LOCAL + gl_LocalInvocationIndex;
        rows[i] = uvec4(0);
        if (column[i] != NONE) rows[i] = Octets(rowOfB(column[i])).v[base / 8 + t % (COLS / 8)];
    }
    [[unroll]] for (uint i = 0; i < A_LOADS; i++) {
        uint t = i * LOCAL + gl_LocalInvocationIndex;
        uint at = s * STAGE * A_ROW + t;
        values[i] = uvec4(0);
        if (t < STAGE * A_ROW && at < a.count * A_ROW) values[i] = Octets(a.values).v[at];
    }
}

// put writes what was fetched to half h of shared memory.
void put(uint h) {
    [[unroll]] for (uint i = 0; i < B_LOADS; i++) {
        uint t = i * LOCAL + gl_LocalInvocationIndex;
        mem[h * STAGE_WORDS + t / (COLS / 8) * B_ROW + t % (COLS / 8)] = rows[i];
    }
    [[unroll]] for (uint i = 0; i < A_LOADS; i++) {
        uint t = i * LOCAL + gl_LocalInvocationIndex;
        if (t < STAGE * A_ROW) mem[h * STAGE_WORDS + STAGE * B_ROW + t] = values[i];
    }
}

void multiply(uint h) {
    uint firstTile = gl_SubgroupID * ACROSS;
    [[unroll]] for (uint k = 0; k < STAGE; k += TK) {
        uint b = h * STAGE_WORDS + k * B_ROW, v = h * STAGE_WORDS + STAGE * B_ROW + k * A_ROW;
        OPERAND_A x;
        OPERAND_B y;
        if (SWAP == 1) {
            [[unroll]] for (uint r = 0; r < DOWN; r++) {
                coopMatLoad(y, mem, v + r * TN / 8, A_ROW, BY_ROWS);
                [[unroll]] for (uint c = 0; c < ACROSS; c++) {
                    coopMatLoad(x, mem, b + (firstTile + c) * TM / 8, B_ROW, BY_COLUMNS);
                    sums[c * DOWN + r] = coopMatMulAdd(x, y, sums[c * DOWN + r]);
                }
            }
        } else {
            [[unroll]] for (uint r = 0; r < DOWN; r++) {
                coopMatLoad(x, mem, v + r * TM / 8, A_ROW, BY_COLUMNS);
                [[unroll]] for (uint c = 0; c < ACROSS; c++) {
                    coopMatLoad(y, mem, b + (firstTile + c) * TN / 8, B_ROW, BY_ROWS);
                    sums[c * DOWN + r] = coopMatMulAdd(x, y, sums[c * DOWN + r]);
                }
            }
        }
    }
}

// spill writes the sums to shared memory, row by row of C.
void spill() {
    [[unroll]] for (uint r = 0; r < DOWN; r++)
        [[unroll]] for (uint c = 0; c < ACROSS; c++) {
            uint to = r * TILE_ROWS * C_ROW + (gl_SubgroupID * ACROSS + c) * TILE_COLS / 4;
            if (SWAP == 1) coopMatStore(sums[c * DOWN + r], mem, to, C_ROW, BY_COLUMNS);
            else coopMatStore(sums[c * DOWN + r], mem, to, C_ROW, BY_ROWS);
        }
}

// storeHalves is storeFloats for a C in f16.
void storeHalves(uint row, uint j, vec4 x) {
    uvec2 c = at(uvec2(p.c), row, p.ldc * 2);
    x *= p.alpha;
    if (j + 4 <= p.n && (p.ldc & 3u) == 0) {
        if (p.beta != 0) {
            uvec2 w = HalfQuads(c).v[j >> 2];
            uvec4 old = uvec4(w.x & 0xffffu, w.x >> 16, w.y & 0xffffu, w.y >> 16);
            for (uint i = 0; i < 4; i++) x[i] += p.beta * uintBitsToFloat(widen_f16(old[i]));
        }
        uvec4 h;
        for (uint i = 0; i < 4; i++) h[i] = narrow_f16(floatBitsToUint(x[i]));
        HalfQuads(c).v[j >> 2] = uvec2(h.x | h.y << 16, h.z | h.w << 16);
        return;
    }
    for (uint i = 0; i < min(4, p.n - j); i++) {
        if (p.beta != 0) x[i] += p.beta * uintBitsToFloat(widen_f16(uint(Halves(c).v[j + i])));
        Halves(c).v[j + i] = uint16_t(narrow_f16(floatBitsToUint(x[i])));
    }
}

void main() {
    uint slot = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width;
    if (slot >= p.panels) return;
    a = panelOf(slot);
    base = gl_WorkGroupID.y * COLS;
    [[unroll]] for (uint i = 0; i < ACROSS * DOWN; i++) sums[i] = SUM(0.0);
    bool busy = base + gl_SubgroupID * (COLS / SUBS) < p.n; // else its columns do not exist

    uint stages = (a.count + STAGE - 1) / STAGE;
    look(0);
    fetch(0);
    look(1);
    for (uint s = 0; s < stages; s++) {
        put(s & 1u);
        barrier();
        fetch(s + 1);
        look(s + 2);
        if (busy) multiply(s & 1u);
    }
    barrier();
    spill();
    barrier();
    for (uint t = gl_LocalInvocationIndex; t < V * COLS / 4; t += LOCAL) {
        uint r = t / (COLS / 4), i = t % (COLS / 4), j = base + 4 * i;
        if (a.row + r >= p.rows || j >= p.n) continue;
        vec4 x = repair(a, r, j, uintBitsToFloat(mem[r * C_ROW + i]));
        if (p.ctype == F16) storeHalves(a.row + r, j, x);
        else storeFloats(a.row + r, j, x);
    }
}
