// Computes: C = alpha·A·B + beta·C, A (rows × cols) in Jigsaw's format on cooperative matrices (TM × TN × TK), f16,
// sums in f32. Vulkan has no sparse operand: tiles (16 × 16) are expanded to dense ones.
// Tile: a workgroup computes a strip (16 × COLS), each of SUBS subgroups (16 × COLS/SUBS) and one tile of a stage.
// Where C has no more than half the columns, half as many subgroups lie across them, and the others take further tiles
// of a stage that is twice as long (and so on); the sums of these slices are added in order at the end.
// Data movement: the rows of B of a stage are gathered into shared memory with 128-bit loads. The next stage is
// prefetched to registers, and the column numbers of the one after it.
// Bound by: gathers of rows of B, then shared memory.
//
// Two mappings fit the strip to the device's matrix operation, and read the same staged data, once by rows and once by
// columns:
//   SWAP = 1  Cᵀ = Bᵀ·Aᵀ: columns of B on TM, the strip's rows on TN (16×8×16, 8×8×8);
//   SWAP = 0  C = A·B: the strip's rows on TM, columns of B on TN (16×16×16, 8×16×16).

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
layout(constant_id = 2) const uint TN = 8;
layout(constant_id = 3) const uint TK = 16;
layout(constant_id = 4) const uint SWAP = 1;
layout(constant_id = 5) const uint COLS = 256; // a power of two, as SUBS
layout(constant_id = 6) const uint SUBS = 4;
layout(constant_id = 7) const uint SHARED = 1152; // uvec4 of shared memory: what the table computes

#define ELEM F16
#include "jigsaw.glsl"
#include "../include/store_halves.glsl"

// Two stages of B's rows and of expanded tiles; at the end the block of C in f32. A row has one uvec4 more than
// it needs, which spreads columns over the banks.
shared uvec4 mem[SHARED];

const uint LOCAL = gl_WorkGroupSize.x;
const uint TILE = 16; // columns of a tile
const uint A_ROW = 3; // uvec4 from a row of a tile to the next
const uint B_LOADS = TILE * (COLS / 8) / LOCAL; // uvec4 of B that each invocation loads for a stage: whole
const uint A_LOADS = (32 * SUBS + LOCAL - 1) / LOCAL; // lanes' shares of tiles, at most

// Tiles of a subgroup: across columns of C, and down the strip's rows.
const uint TILE_COLS = SWAP * TM + (1 - SWAP) * TN;
const uint TILE_ROWS = SWAP * TN + (1 - SWAP) * TM;
const uint ACROSS = COLS / SUBS / TILE_COLS;
const uint DOWN = ROWS / TILE_ROWS;

#define OPERAND_A coopmat<float16_t, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA>
#define OPERAND_B coopmat<float16_t, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB>
#define SUM coopmat<float, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator>
#define BY_ROWS gl_CooperativeMatrixLayoutRowMajor
#define BY_COLUMNS gl_CooperativeMatrixLayoutColumnMajor

const uint NONE = 0xffffffffu;

// dense returns four columns of a row, zero but for the two that the low bits of place name, which have the values in
// x.
uvec2 dense(uint x, uint place) {
    uint at0 = place & 3, at1 = place >> 2 & 3, lo = x & 0xffffu, hi = x >> 16;
    uvec2 w;
    w.x = (at0 == 0 ? lo : 0) | (at0 == 1 ? lo << 16 : at1 == 1 ? hi << 16 : 0);
    w.y = (at0 == 2 ? lo : at1 == 2 ? hi : 0) | (at1 == 3 ? hi << 16 : 0);
    return w;
}

void main() {
    uint slot = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width;
    if (slot >= p.blocks) return;
    Strip a = stripOf(slot);
    uint base = gl_WorkGroupID.y * COLS, tiles = 2 * a.steps;

    // The block of C: cols columns, cut into `slices` slices of the vectors.
    uint slices = 1, cols = COLS;
    while (slices < SUBS && cols / 2 >= p.n - base) slices *= 2, cols /= 2;
    uint slice = gl_SubgroupID * slices / SUBS, part = gl_SubgroupID % (SUBS / slices);
    bool busy = base + part * (COLS / SUBS) < p.n; // else the subgroup's columns do not exist
    uint length = TILE * slices; // columns of a stage
    uint octets = cols / 8, pitch = octets + 1; // uvec4 of a row of B, and from one to the next
    uint size = length * pitch + ROWS * A_ROW * slices; // uvec4 of a stage
    uint log = findLSB(octets);

    uint column[B_LOADS]; // rows of B to fetch next; NONE past the strip's end and C's last column
    uvec4 rows[B_LOADS]; // what was fetched of them
    uvec2 values[A_LOADS];
    uint place[A_LOADS];
    SUM sums[ACROSS * DOWN];
    [[unroll]] for (uint i = 0; i < B_LOADS; i++)
        column[i] = NONE;
    [[unroll]] for (uint i = 0; i < ACROSS * DOWN; i++)
        sums[i] = SUM(0.0);

    // Round s looks up the columns of stage s, fetches stage s-1, and multiplies stage s-2.
    uint rounds = (tiles + slices - 1) / slices + 2;
    for (uint s = 0; s < rounds; s++) {
        uint stage = (s & 1u) * size;
        if (s >= 2) {
            [[unroll]] for (uint i = 0; i < B_LOADS; i++) {
                uint t = i * LOCAL + gl_LocalInvocationIndex;
                mem[stage + (t >> log) * pitch + (t & octets - 1)] = rows[i];
            }
            [[unroll]] for (uint i = 0; i < A_LOADS; i++) {
                uint t = i * LOCAL + gl_LocalInvocationIndex;
                if (t >= 32 * slices) continue;
                uint to = stage + length * pitch + (t / 32 * ROWS + (t >> 2 & 7)) * A_ROW + (t >> 1 & 1),
                     half_ = 2 * (t & 1);
                uvec2 upper = dense(values[i].x, place[i]), lower = dense(values[i].y, place[i] >> 16);
                mem[to][half_] = upper.x;
                mem[to][half_ + 1] = upper.y;
                mem[to + 8 * A_ROW][half_] = lower.x;
                mem[to + 8 * A_ROW][half_ + 1] = lower.y;
            }
            barrier();
        }
        [[unroll]] for (uint i = 0; i < B_LOADS; i++) {
            uint t = i * LOCAL + gl_LocalInvocationIndex;
            rows[i] = uvec4(0);
            if (column[i] != NONE) rows[i] = Octets(rowOfB(column[i])).v[base / 8 + (t & octets - 1)];
            uint q = s * length + (t >> log);
            column[i] = NONE;
            if (q < TILE * tiles && base + (t & octets - 1) * 8 < p.n) column[i] = Words(a.cols).v[q];
        }
        [[unroll]] for (uint i = 0; i < A_LOADS; i++) {
            uint t = i * LOCAL + gl_LocalInvocationIndex, tile = (s - 1) * slices + t / 32, lane = t & 31;
            values[i] = uvec2(0);
            place[i] = 0;
            if (s >= 1 && t < 32 * slices && tile < tiles) {
                values[i] = Pairs(at(a.values, tile / 2, STEP_SLOTS * 2)).v[2 * lane + (tile & 1)];
                place[i] = places(a, tile / 2, tile & 1, lane >> 2, lane & 3);
            }
        }
        if (s < 2 || !busy) continue;
        for (uint k = 0; k < TILE; k += TK) {
            uint b = stage + (slice * TILE + k) * pitch + part * (COLS / SUBS / 8);
            uint v = stage + length * pitch + slice * ROWS * A_ROW + k / 8;
            OPERAND_A x;
            OPERAND_B y;
            [[unroll]] for (uint r = 0; r < DOWN; r++) {
                if (SWAP == 1) coopMatLoad(y, mem, v + r * TN * A_ROW, A_ROW, BY_COLUMNS);
                else coopMatLoad(x, mem, v + r * TM * A_ROW, A_ROW, BY_ROWS);
                [[unroll]] for (uint c = 0; c < ACROSS; c++) {
                    if (SWAP == 1) coopMatLoad(x, mem, b + c * TM / 8, pitch, BY_COLUMNS);
                    else coopMatLoad(y, mem, b + c * TN / 8, pitch, BY_ROWS);
                    sums[c * DOWN + r] = coopMatMulAdd(x, y, sums[c * DOWN + r]);
                }
            }
        }
    }

    // The sums of each slice, row by row of C.
    uint quads = cols / 4;
    barrier();
    [[unroll]] for (uint r = 0; r < DOWN; r++)
        [[unroll]] for (uint c = 0; c < ACROSS; c++) {
            uint to = (slice * ROWS + r * TILE_ROWS) * (quads + 1) + (part * ACROSS + c) * TILE_COLS / 4;
            if (SWAP == 1) coopMatStore(sums[c * DOWN + r], mem, to, quads + 1, BY_COLUMNS);
            else coopMatStore(sums[c * DOWN + r], mem, to, quads + 1, BY_ROWS);
        }
    barrier();
    for (uint t = gl_LocalInvocationIndex; t < ROWS * quads; t += LOCAL) {
        uint r = t >> log + 1, i = t & quads - 1, j = base + 4 * i;
        if (a.row + r >= p.rows || j >= p.n) continue;
        vec4 x = vec4(0);
        for (uint k = 0; k < slices; k++) x += uintBitsToFloat(mem[(k * ROWS + r) * (quads + 1) + i]);
        x = repair(a, r, j, x);
        if (storeType == F16) storeHalves(a.row + r, j, x);
        else storeFloats(a.row + r, j, x);
    }
}
