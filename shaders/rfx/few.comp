// Computes: C (rows × n) = alpha·A·B + beta·C reproducibly in fixed point (RFX-p, p = BITS) for few columns, A dense, in
// digits of 8 bits (few.go), on cooperative matrices of 8-bit integers (TM × TN × TK).
// Tile: a workgroup computes (TM × TN·ACROSS). Its SUBS subgroups take slices of 32 of k by turns, and add their sums in
// shared memory.
// Data movement: a slice goes through the subgroup's own shared memory, from which operands are loaded, while the next one
// is loaded to registers. In memory the bytes of a slice's rows, and of its columns of B, follow each other.
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
layout(constant_id = 6) const uint SHARED = 1280; // uvec4 of shared memory: what the table computes

#define S ((BITS + 1) / 8) // digits
#define DIAGS (2 * S - 1) // sums of places
#define DEPTH 128 // k of a block; a plane has whole ones
#define SLICE 32

const uint LOCAL = gl_WorkGroupSize.x;
const uint LANES = LOCAL / SUBS; // of a subgroup
const uint COLS = TN * ACROSS;
const uint TILE = TM * COLS; // outputs
// Of a slice, uvec4 of a digit of either operand, and those that a lane loads of all digits.
const uint LEFT = TM * 2, RIGHT = COLS * 2;
const uint LEFTS = (S * LEFT + LANES - 1) / LANES, RIGHTS = (S * RIGHT + LANES - 1) / LANES;

#define OPERAND_A coopmat<int8_t, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA>
#define OPERAND_B coopmat<int8_t, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB>
#define SUM coopmat<int, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator>

// Shared memory: slices; at the end all subgroups' sums, by sum of places. Operations of k = 8 begin in the middle of 16
// bytes.
#if NARROW
#define UNITS 2
shared uvec2 mem[UNITS * SHARED];
void put(uint i, uvec4 v) {
    mem[2 * i] = v.xy;
    mem[2 * i + 1] = v.zw;
}
#else
#define UNITS 1
shared uvec4 mem[SHARED];
void put(uint i, uvec4 v) { mem[i] = v; }
#endif
#define EACH (4 / UNITS) // words of an element
int get(uint i) { return int(mem[i / EACH][i % EACH]); }

SUM sums[DIAGS * ACROSS];
uint row, col; // of the tile
uint slices; // of K

struct Fetched {
    uvec4 l[LEFTS], r[RIGHTS];
};

// fetch loads slice s, or the last one for one past that.
void fetch(out Fetched x, uint s) {
    s = min(s, slices - 1);
    uvec2 l = at(uvec2(p.ints), s * p.longest + row, SLICE), r = at(at(uvec2(p.q), p.first, 4), s * p.ldq + col, SLICE);
    [[unroll]] for (uint n = 0; n < LEFTS; n++) {
        uint t = min(n * LANES + gl_SubgroupInvocationID, S * LEFT - 1);
        x.l[n] = Words4(at(l, t / LEFT * slices * p.longest, SLICE)).v[t % LEFT];
    }
    [[unroll]] for (uint n = 0; n < RIGHTS; n++) {
        // Columns past the last are read from the last one's place; they are never stored.
        uint t = min(n * LANES + gl_SubgroupInvocationID, S * RIGHT - 1), last = (p.ldq - col) * 2 - 1;
        x.r[n] = Words4(at(r, t / RIGHT * slices * p.ldq, SLICE)).v[min(t % RIGHT, last)];
    }
}

void putSlice(Fetched x, uint to) {
    [[unroll]] for (uint n = 0; n < LEFTS; n++)
        put(to + min(n * LANES + gl_SubgroupInvocationID, S * LEFT - 1), x.l[n]);
    [[unroll]] for (uint n = 0; n < RIGHTS; n++)
        put(to + S * LEFT + min(n * LANES + gl_SubgroupInvocationID, S * RIGHT - 1), x.r[n]);
}

// multiply adds the products of the slice that lies from `from` on.
void multiply(uint from) {
    [[unroll]] for (uint e = 0; e < SLICE; e += TK) {
        uint begin = UNITS * from + UNITS * e / 16;
        OPERAND_B y[S * ACROSS];
        [[unroll]] for (uint j = 0; j < S; j++)
            [[unroll]] for (uint c = 0; c < ACROSS; c++)
                coopMatLoad(y[j * ACROSS + c], mem, begin + UNITS * (S * LEFT + j * RIGHT + c * TN * 2), UNITS * 2,
                            gl_CooperativeMatrixLayoutColumnMajor);
        [[unroll]] for (uint i = 0; i < S; i++) {
            OPERAND_A x;
            coopMatLoad(x, mem, begin + UNITS * i * LEFT, UNITS * 2, gl_CooperativeMatrixLayoutRowMajor);
            [[unroll]] for (uint j = 0; j < S; j++)
                [[unroll]] for (uint c = 0; c < ACROSS; c++)
                    sums[(i + j) * ACROSS + c] = coopMatMulAdd(x, y[j * ACROSS + c], sums[(i + j) * ACROSS + c]);
        }
    }
}

// meet has the lanes of a subgroup wait for each other.
void meet() {
    subgroupMemoryBarrierShared();
    subgroupBarrier();
}

uvec4 extended(int x) { return uvec4(uint(x), uvec3(uint(x >> 31))); }

void main() {
    uint wide = (p.ldq + COLS - 1) / COLS, item = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width;
    row = item / wide * TM, col = item % wide * COLS;
    if (row >= p.items) return;
    slices = p.per * (DEPTH / SLICE);
    [[unroll]] for (uint i = 0; i < DIAGS * ACROSS; i++) sums[i] = SUM(0);
    if (gl_SubgroupID < slices) {
        const uint mine = gl_SubgroupID * (S * (LEFT + RIGHT));
        Fetched x;
        fetch(x, gl_SubgroupID);
        for (uint s = gl_SubgroupID; s < slices; s += SUBS) {
            meet();
            putSlice(x, mine);
            meet();
            fetch(x, s + SUBS);
            multiply(mine);
        }
    }

    barrier();
    [[unroll]] for (uint d = 0; d < DIAGS; d++)
        [[unroll]] for (uint c = 0; c < ACROSS; c++)
            coopMatStore(sums[d * ACROSS + c], mem, ((d * SUBS + gl_SubgroupID) * TILE + c * TN) / EACH, COLS / EACH,
                         gl_CooperativeMatrixLayoutRowMajor);
    barrier();
    for (uint t = gl_LocalInvocationIndex; t < TILE; t += LOCAL) {
        uint i = row + t / COLS, j = col + t % COLS;
        if (i >= p.items || j >= p.n) continue;
        uvec4 total = uvec4(0);
        for (int d = DIAGS - 1; d >= 0; d--) {
            int sum = 0;
            [[unroll]] for (uint s = 0; s < SUBS; s++)
                sum += get((d * SUBS + s) * TILE + t);
            total = add128(total << 8 | uvec4(0, total.xyz) >> 24, extended(sum));
        }
        store(i, j, total);
    }
}
