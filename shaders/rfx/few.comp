// Computes: C (rows × n) = alpha·A·B + beta·C reproducibly in fixed point (RFX-p, p = BITS) for few columns, A dense, in
// digits of 8 bits (few.go), on cooperative matrices of 8-bit integers (TM × TN × TK).
// Tile: a workgroup computes (TM × TN·ACROSS). Its SUBS subgroups take steps of TK of k by turns, and add their sums in
// shared memory.
// Data movement: operands straight from memory to registers. In a slice the bytes of a tile's rows, and of columns of B,
// follow each other. Operands of FLIGHT steps are loaded at once, and with SETS = 2 while those before are multiplied.
// Bound by: the bytes of A.
// Constants: BITS (p), NARROW (TK is 8).

#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#include "store.glsl"

layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
layout(constant_id = 1) const uint TM = 16;
layout(constant_id = 2) const uint TN = 8;
layout(constant_id = 3) const uint TK = 32;
layout(constant_id = 4) const uint SUBS = 8;
layout(constant_id = 5) const uint ACROSS = 1;
layout(constant_id = 6) const uint FLIGHT = 2;
layout(constant_id = 7) const uint SETS = 2;
layout(constant_id = 8) const uint SHARED = 1024; // sums of all subgroups for one sum of places

#define S ((BITS + 1) / 8) // digits
#define DIAGS (2 * S - 1) // sums of places
#define DEPTH 128 // k of a block; a plane has whole ones
#define SLICE 32 // of k, whose bytes of a line lie side by side

// Operations of k = 8 begin in the middle of 16 bytes.
#if NARROW
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Bytes { uvec2 v[]; };
#define UNIT 8 // bytes of an element
#else
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Bytes { uvec4 v[]; };
#define UNIT 16
#endif

const uint LOCAL = gl_WorkGroupSize.x;
const uint TILE = TM * TN * ACROSS; // outputs
const uint OUTS = (TILE + LOCAL - 1) / LOCAL; // of an invocation
const uint PER = SLICE / TK; // operations of a slice along k

#define OPERAND_A coopmat<int8_t, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA>
#define OPERAND_B coopmat<int8_t, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB>
#define SUM coopmat<int, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator>

shared int mem[SHARED];
OPERAND_A lefts[SETS * FLIGHT * S];
OPERAND_B rights[SETS * FLIGHT * S * ACROSS];
SUM sums[DIAGS * ACROSS];
uint row, col; // of the tile
uint steps; // of TK along K

// load reads the operands of FLIGHT steps of the subgroup, from s on. Past the last one it is read again.
void load(const uint set, uint s) {
    [[unroll]] for (uint f = 0; f < FLIGHT; f++) {
        uint step = min(s + f * SUBS, steps - 1), slice = step / PER, part = step % PER * TK / UNIT;
        [[unroll]] for (uint d = 0; d < S; d++) {
            const uint n = (set * FLIGHT + f) * S + d;
            Bytes l = Bytes(at(uvec2(p.ints), (d * (steps / PER) + slice) * p.longest + row, SLICE));
            coopMatLoad(lefts[n], l.v, part, SLICE / UNIT, gl_CooperativeMatrixLayoutRowMajor);
            uvec2 plane = at(at(uvec2(p.q), p.first, 4), (d * (steps / PER) + slice) * p.ldq, SLICE);
            [[unroll]] for (uint c = 0; c < ACROSS; c++) {
                // Columns past the last are read from the last ones' place; they are never stored.
                Bytes r = Bytes(at(plane, min(col + c * TN, p.ldq - TN), SLICE));
                coopMatLoad(rights[n * ACROSS + c], r.v, part, SLICE / UNIT, gl_CooperativeMatrixLayoutColumnMajor);
            }
        }
    }
}

void multiply(const uint set, uint s) {
    [[unroll]] for (uint f = 0; f < FLIGHT; f++) {
        if (s + f * SUBS >= steps) continue;
        const uint n = (set * FLIGHT + f) * S;
        [[unroll]] for (uint i = 0; i < S; i++)
            [[unroll]] for (uint j = 0; j < S; j++)
                [[unroll]] for (uint c = 0; c < ACROSS; c++)
                    sums[(i + j) * ACROSS + c] =
                        coopMatMulAdd(lefts[n + i], rights[(n + j) * ACROSS + c], sums[(i + j) * ACROSS + c]);
    }
}

uvec4 extended(int x) { return uvec4(uint(x), uvec3(uint(x >> 31))); }

void main() {
    uint wide = (p.ldq + TN * ACROSS - 1) / (TN * ACROSS), item = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width;
    row = item / wide * TM, col = item % wide * TN * ACROSS;
    if (row >= p.items) return;
    steps = p.per * (DEPTH / TK);
    [[unroll]] for (uint i = 0; i < DIAGS * ACROSS; i++) sums[i] = SUM(0);
    const uint step = FLIGHT * SUBS;
    if (SETS == 1) {
        for (uint s = gl_SubgroupID; s < steps; s += step) {
            load(0, s);
            multiply(0, s);
        }
    } else if (gl_SubgroupID < steps) {
        load(0, gl_SubgroupID);
        for (uint s = gl_SubgroupID; s < steps; s += 2 * step) {
            load(1, s + step);
            multiply(0, s);
            load(0, s + 2 * step);
            multiply(1, s + step);
        }
    }

    uvec4 total[OUTS];
    [[unroll]] for (uint o = 0; o < OUTS; o++) total[o] = uvec4(0);
    [[unroll]] for (int d = DIAGS - 1; d >= 0; d--) {
        [[unroll]] for (uint c = 0; c < ACROSS; c++)
            coopMatStore(sums[d * ACROSS + c], mem, gl_SubgroupID * TILE + c * TN, TN * ACROSS,
                         gl_CooperativeMatrixLayoutRowMajor);
        barrier();
        [[unroll]] for (uint o = 0; o < OUTS; o++) {
            uint t = o * LOCAL + gl_LocalInvocationIndex;
            if (t >= TILE) break;
            int sum = 0;
            [[unroll]] for (uint s = 0; s < SUBS; s++) sum += mem[s * TILE + t];
            total[o] = add128(total[o] << 8 | uvec4(0, total[o].xyz) >> 24, extended(sum));
        }
        barrier();
    }
    [[unroll]] for (uint o = 0; o < OUTS; o++) {
        uint t = o * LOCAL + gl_LocalInvocationIndex, i = row + t / (TN * ACROSS), j = col + t % (TN * ACROSS);
        if (t < TILE && i < p.items && j < p.n) store(i, j, total[o]);
    }
}
