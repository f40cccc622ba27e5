// Computes: C = alpha·A·B + beta·C, A (rows × cols) in HRPB on cooperative matrices (TM × TN × TK), f16 operands, sums
// in f32.
// Tile: a workgroup computes (16 × COLS) for a run of a panel's blocks, a subgroup (16 × COLS/SUBS). Rows on TM,
// columns of B on TN.
// Data movement: a block's rows of B are gathered into shared memory in f16. Its values are unpacked next to them to a
// dense matrix (BLOCK × 16), with zeros where the pattern has no bit. The next block is prefetched to registers.
// Bound by: gathers of rows of B, then shared memory.
//
// ELEM = F16 multiplies f16 data. ELEM = F32 multiplies f32 data with as many significant bits as tf32, 11: each row of
// the work item and each column of the rows of B that it uses is scaled by a power of two that brings its largest
// finite element to 2^14…2^15, rounded to f16, and the sums are scaled back. A first sweep over the same data finds the
// scales. Scaling is exact, so that the error of an output is at most
//
//	(2^-10 + 2^-22)·Σ|a|·|b| + 2^-28·(max|a|·Σ|b| + max|b|·Σ|a|) + that of summing in f32
//
// over the entries a of its row and the elements b that they meet, the maxima over the row of A and the column of B.
// The second term is the cost of f16's small range where units flush its subnormals. It is zero as long as no element
// is less than 2^-28 of the largest in its row or column.

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
layout(constant_id = 1) const uint BLOCK = 16; // a multiple of TK
layout(constant_id = 2) const uint TM = 16;
layout(constant_id = 3) const uint TN = 8;
layout(constant_id = 4) const uint TK = 16;
layout(constant_id = 5) const uint COLS = 64;
layout(constant_id = 6) const uint SUBS = 1;
layout(constant_id = 7) const uint SHARED = 352; // uvec4 of shared memory: what the table computes

void storeAny(uint row, uint j, vec4 x);
#define STORE storeAny
#include "hrpb.glsl"
#include "../include/store_halves.glsl"

// Two stages of B's rows and of values, in uvec4; at the end the tile of C in f32. A row has one more than it
// needs, which spreads columns over the banks.
const uint B_ROW = COLS / 8 + 1;
const uint A_ROW = ROWS / 8;
const uint STAGE = BLOCK * (B_ROW + A_ROW);
const uint C_ROW = COLS / 4 + 1;
shared uvec4 mem[SHARED];

const uint LOCAL = gl_WorkGroupSize.x;
const uint OCTETS = COLS / 8; // of a row of the tile
const uint B_LOADS = BLOCK * OCTETS / LOCAL; // octets of each invocation: whole
const uint A_LOADS = (BLOCK * A_ROW + LOCAL - 1) / LOCAL;

const uint ACROSS = COLS / SUBS / TN;
const uint DOWN = ROWS / TM;

#define OPERAND_A coopmat<float16_t, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA>
#define OPERAND_B coopmat<float16_t, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB>
#define SUM coopmat<float, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator>
#define BY_ROWS gl_CooperativeMatrixLayoutRowMajor
#define BY_COLUMNS gl_CooperativeMatrixLayoutColumnMajor

#define me gl_LocalInvocationIndex

Part a;
uint base; // first column of the tile
uint from; // the octet of B's rows that the invocation loads
uvec4 rows[B_LOADS]; // a block on its way
uvec4 values[A_LOADS];
SUM sum[ACROSS * DOWN];

#if ELEM == F32
shared uint rowMax[ROWS], colMax[COLS]; // bits of the largest finite magnitudes
vec4 colScale[2]; // of the invocation's octet

// scaleOf is the exponent of the power of two that scales a magnitude with these bits to 2^14…2^15, as far as
// it and its inverse are normal numbers.
int scaleOf(uint bits) { return min(141 - int(bits >> 23), 126); }

// power returns 2^e for -126 ≤ e ≤ 127.
float power(int e) { return uintBitsToFloat(uint(e + 127) << 23); }

// finite returns the bits of magnitudes, 0 for those that are not finite.
uvec4 finite(uvec4 x) {
    x &= 0x7fffffffu;
    return mix(x, uvec4(0), greaterThanEqual(x, uvec4(0x7f800000u)));
}

// halves rounds to f16. Once they are rounded to 11 bits it does not matter how packing rounds.
uvec2 halves(vec4 x) {
    uvec4 u = floatBitsToUint(x);
    if (any(greaterThanEqual(u & 0x7fffffffu, uvec4(0x7f800000u))))
        return uvec2(narrow_f16(u.x) | narrow_f16(u.y) << 16, narrow_f16(u.z) | narrow_f16(u.w) << 16);
    vec4 y = uintBitsToFloat((u + 0xfffu + (u >> 13 & 1u)) & ~0x1fffu);
    return uvec2(packHalf2x16(y.xy), packHalf2x16(y.zw));
}
#endif

// octet loads the invocation's 8 columns of row k of B, as 8 halves.
uvec4 octet(uint k) {
    Octets row = Octets(rowOfB(k));
#if ELEM == F32
    vec4 x = uintBitsToFloat(row.v[2 * from]), y = uintBitsToFloat(row.v[2 * from + 1]);
    return uvec4(halves(x * colScale[0]), halves(y * colScale[1]));
#else
    return row.v[from];
#endif
}

// Item i of a block's values: 8 rows (half i%2) of active column i/2. It has the bits `mask` of one word of the
// patterns; `before` values precede the word's.
struct Item {
    uint word, mask, before;
};

Item itemOf(uvec2 block, uint i) {
    uint n = i / 8 * 2 + i % 2;
    Item t = Item(Words(block).v[n], 0x11111111u << (i / 2 % 4), 0);
    for (uint w = 0; w < n; w++) t.before += bitCount(Words(block).v[w]);
    return t;
}

// unpack returns an item as 8 halves.
uvec4 unpack(uvec2 block, uint i) {
    Item t = itemOf(block, i);
    uvec2 at = valuesOf(block);
    uvec4 h = uvec4(0);
    for (uint left = t.word & t.mask; left != 0; left &= left - 1) {
        uint bit = findLSB(left), r = bit / 4, k = t.before + bitCount(t.word & ((1u << bit) - 1u));
#if ELEM == F32
        uint x = halves(vec4(element(at, k) * power(scaleOf(rowMax[i % 2 * 8 + r])), 0, 0, 0)).x;
#else
        uint x = (Words(at).v[k >> 1] >> (16u * (k & 1u))) & 0xffffu;
#endif
        h[r / 2] |= x << (16 * (r % 2));
    }
    return h;
}

// fetch loads block q into registers; past the work item's end, zeros.
void fetch(uint q) {
    [[unroll]] for (uint i = 0; i < B_LOADS; i++) {
        rows[i] = uvec4(0);
        if (q < a.last && base + me % OCTETS * 8 < p.n)
            rows[i] = octet(Words(activeAt(q)).v[(i * LOCAL + me) / OCTETS]);
    }
    [[unroll]] for (uint i = 0; i < A_LOADS; i++) {
        uint t = i * LOCAL + me;
        values[i] = uvec4(0);
        if (q < a.last && t < BLOCK * A_ROW) values[i] = unpack(blockAt(q), t);
    }
}

// put writes what was fetched to half h of shared memory.
void put(uint h) {
    [[unroll]] for (uint i = 0; i < B_LOADS; i++) {
        uint t = i * LOCAL + me;
        mem[h * STAGE + t / OCTETS * B_ROW + t % OCTETS] = rows[i];
    }
    [[unroll]] for (uint i = 0; i < A_LOADS; i++) {
        uint t = i * LOCAL + me;
        if (t < BLOCK * A_ROW) mem[h * STAGE + BLOCK * B_ROW + t] = values[i];
    }
}

void multiply(uint h) {
    for (uint k = 0; k < BLOCK; k += TK) {
        uint b = h * STAGE + k * B_ROW + gl_SubgroupID * (OCTETS / SUBS), v = h * STAGE + BLOCK * B_ROW + k * A_ROW;
        [[unroll]] for (uint r = 0; r < DOWN; r++) {
            OPERAND_A x;
            OPERAND_B y;
            coopMatLoad(x, mem, v + r * TM / 8, A_ROW, BY_COLUMNS);
            [[unroll]] for (uint c = 0; c < ACROSS; c++) {
                coopMatLoad(y, mem, b + c * TN / 8, B_ROW, BY_ROWS);
                sum[c * DOWN + r] = coopMatMulAdd(x, y, sum[c * DOWN + r]);
            }
        }
    }
}

// spill writes the sums to shared memory, row by row of C.
void spill() {
    [[unroll]] for (uint r = 0; r < DOWN; r++)
        [[unroll]] for (uint c = 0; c < ACROSS; c++) coopMatStore(
            sum[c * DOWN + r], mem, r * TM * C_ROW + (gl_SubgroupID * ACROSS + c) * TN / 4, C_ROW, BY_ROWS);
}

#if ELEM == F32
// sweep finds the scales.
void sweep() {
    for (uint i = me; i < COLS; i += LOCAL) colMax[i] = 0;
    for (uint i = me; i < ROWS; i += LOCAL) rowMax[i] = 0;
    barrier();
    uvec4 x = uvec4(0), y = uvec4(0);
    for (uint q = a.first; q < a.last; q++) {
        [[unroll]] for (uint i = 0; i < B_LOADS; i++) {
            Octets row = Octets(rowOfB(Words(activeAt(q)).v[(i * LOCAL + me) / OCTETS]));
            x = max(x, finite(row.v[2 * from]));
            y = max(y, finite(row.v[2 * from + 1]));
        }
        uvec2 block = blockAt(q), at = valuesOf(block);
        for (uint i = me; i < BLOCK * A_ROW; i += LOCAL) {
            Item t = itemOf(block, i);
            for (uint left = t.word & t.mask; left != 0; left &= left - 1) {
                uint bit = findLSB(left);
                uint v = Words(at).v[t.before + bitCount(t.word & ((1u << bit) - 1u))];
                atomicMax(rowMax[i % 2 * 8 + bit / 4], finite(uvec4(v)).x);
            }
        }
    }
    for (uint i = 0; i < 4; i++) {
        atomicMax(colMax[me % OCTETS * 8 + i], x[i]);
        atomicMax(colMax[me % OCTETS * 8 + 4 + i], y[i]);
    }
    barrier();
    for (uint i = 0; i < 8; i++) colScale[i / 4][i % 4] = power(scaleOf(colMax[me % OCTETS * 8 + i]));
}

// unscale takes the scales off the sums of row r and four columns from i of the tile. 2^-e itself may not be
// a number, its root is.
vec4 unscale(uint r, uint i, vec4 x) {
    for (uint j = 0; j < 4; j++) {
        int e = scaleOf(rowMax[r]) + scaleOf(colMax[i + j]);
        x[j] = x[j] * power(-(e / 2)) * power(-(e - e / 2));
    }
    return x;
}
#endif

// storeAny is storeFloats for a C in f32 or f16.
void storeAny(uint row, uint j, vec4 x) {
    if (storeType == F16) storeHalves(row, j, x);
    else storeFloats(row, j, x);
}

void main() {
    uint item = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width;
    if (item >= p.items) return;
    if (p.phase == 1) {
        addSlots(item, LOCAL, COLS);
        return;
    }
    a = partAt(item);
    base = gl_WorkGroupID.y * COLS;
    from = min(base + me % OCTETS * 8, p.ldb - 8) / 8; // past the last column anything may be read
    [[unroll]] for (uint i = 0; i < ACROSS * DOWN; i++)
        sum[i] = SUM(0.0);
    bool busy = base + gl_SubgroupID * (COLS / SUBS) < p.n; // else its columns do not exist
#if ELEM == F32
    sweep();
#endif
    fetch(a.first);
    for (uint q = a.first; q < a.last; q++) {
        uint h = (q - a.first) & 1u;
        put(h);
        barrier();
        fetch(q + 1);
        if (busy) multiply(h);
    }
    barrier();
    spill();
    barrier();
    for (uint t = me; t < ROWS * COLS / 4; t += LOCAL) {
        uint r = t / (COLS / 4), i = t % (COLS / 4);
        vec4 x = uintBitsToFloat(mem[r * C_ROW + i]);
#if ELEM == F32
        x = unscale(r, 4 * i, x);
#endif
        keep(a, r, base + 4 * i, x);
    }
}
