// Computes: C = alpha·A·B + beta·C, A (rows × cols) in HRPB on cooperative matrices of a known lane layout
// (../include/lanes.glsl), f16 operands, sums in f32.
// Tile: a workgroup computes (16 × 64·SUBS) for a run of a panel's blocks, a subgroup (16 × 64), SUBS blocks of 16
// active columns at a time (a round). Lane (g, t) has brick t's four columns, in rows g and g + 8.
// Data movement: rows of B straight from memory to operand registers. Four bits of the patterns say which values a lane
// has, and with the bits before them where its values begin: each subgroup looks this up in one block of a round for
// all, and they exchange it through shared memory.
// Bound by: gathers of rows of B.
//
// ELEM = F16 multiplies f16 data. ELEM = F32 multiplies f32 data with as many significant bits as tf32, 11: each row of
// the work item and each column of the rows of B that it uses is scaled by a power of two, rounded to f16, and the sums
// are scaled back. Rows are scaled by their largest finite element, which a first sweep over A's values finds: it comes
// to 2^14…2^15. Columns of B are scaled by the first block alone, whose largest comes to 2^11…2^12. A value above f16's
// range in a later block makes a sum that is not finite: then all is done again, and this time the columns' largest
// elements are found first and brought to 2^14…2^15. Scaling is exact, so that the error of an output is at most
//
//	(2^-10 + 2^-22)·Σ|a|·|b| + 2^-28·max|a|·Σ|b| + 2^-25·max|b|·Σ|a| + that of summing in f32
//
// over the entries a of its row and the elements b that they meet, the maxima over the row of A and the column of B.
// All terms but the first are the cost of f16's small range where units flush its subnormals.

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

void storeAny(uint row, uint j, vec4 x);
layout(constant_id = 1) const uint SUBS = 4;
layout(constant_id = 2) const uint SHARED =
    272; // uvec4 of shared memory: two rounds of A's values, or four rows of C for each subgroup

#define STORE storeAny
#include "hrpb.glsl"
#include "../include/store_halves.glsl"
#include "../include/lanes.glsl"

// Two rounds of A's values as lanes hold them; at the end four rows of each subgroup's tile of C in f32. A row has a
// uvec4 more than it needs.
const uint C_ROW = 17;
shared uvec4 mem[SHARED];

#define me gl_SubgroupInvocationID

Part a;
uint base; // first column of the subgroup
uint from; // the lane's octet of B's rows
bool busy; // else the subgroup's columns do not exist
SUM acc[8]; // of rows 0 to 7, then 8 to 15

#if ELEM == F32
shared uint rowMax[ROWS], colMax[64 * SUBS], wild; // bits of the largest finite magnitudes; whether a sum is not finite
int rowScale[2]; // exponents, of rows g and g + 8
vec4 colScale[2]; // of the lane's octet

// scaleOf is the exponent of the power of two that scales a magnitude with these bits to 2^top…2^(top+1), as far
// as it and its inverse are normal numbers.
int scaleOf(uint bits, int top) { return clamp(top + 127 - int(bits >> 23), -126, 126); }

// power returns 2^e for -126 ≤ e ≤ 127.
float power(int e) { return uintBitsToFloat(uint(e + 127) << 23); }

// finite returns the bits of magnitudes, 0 for those that are not finite.
uvec4 finite(uvec4 x) {
    x &= 0x7fffffffu;
    return mix(x, uvec4(0), greaterThanEqual(x, uvec4(0x7f800000u)));
}

// pair rounds to f16. Veltkamp's splitting leaves 11 bits, so that it does not matter how packing rounds.
uint pair(vec2 x) {
    precise vec2 t = x * 8193.0;
    precise vec2 d = t - x;
    precise vec2 high = t - d;
    return packHalf2x16(high);
}
#endif

// What the patterns say of the lane's part of a block.
struct Found {
    uvec2 bits; // of rows g and g + 8: 4 columns
    uvec2 first; // values before them
    uvec2 at; // the block's values
};

Found find(uint q) {
    uvec2 block = blockAt(q);
    uvec4 x = Octets(block).v[0], y = Octets(block).v[1];
    uint g = me >> 2, t = me & 3, below = (1u << 4 * g) - 1;
    uvec4 four = t < 2 ? x : y;
    uvec2 mine = (t & 1) == 0 ? four.xy : four.zw;
    uint before = (t > 0 ? bitCount(x.x) + bitCount(x.y) : 0) + (t > 1 ? bitCount(x.z) + bitCount(x.w) : 0) +
                  (t > 2 ? bitCount(y.x) + bitCount(y.y) : 0);
    Found f;
    f.bits = mine >> 4 * g & 15u;
    f.first = uvec2(before + bitCount(mine.x & below), before + bitCount(mine.x) + bitCount(mine.y & below));
    f.at = valuesOf(block);
    return f;
}

// The values of what was found, not yet scaled.
#if ELEM == F32
#define Values vec4
#else
#define Values uvec2
#endif

Values valuesAt(Found f, uint h) {
    uint k = f.first[h];
#if ELEM == F32
    vec4 v = vec4(0);
    [[unroll]] for (uint i = 0; i < 4; i++)
        if ((f.bits[h] >> i & 1u) != 0) v[i] = Floats(f.at).v[k++];
    return v;
#else
    uvec4 w = uvec4(0);
    [[unroll]] for (uint i = 0; i < 4; i++)
        if ((f.bits[h] >> i & 1u) != 0) w[i] = uint(Halves(f.at).v[k++]);
    return uvec2(w.x | w.y << 16, w.z | w.w << 16);
#endif
}

// packed returns values as halves, as the second operand has them.
uvec2 packed(Values v, uint h) {
#if ELEM == F32
    v *= power(rowScale[h]);
    return uvec2(pair(v.xy), pair(v.zw));
#else
    return v;
#endif
}

// The lane's rows of B of a block.
struct Rows {
    uvec4 low[4];
#if ELEM == F32
    uvec4 high[4];
#endif
};

Rows rowsAt(uvec4 k) {
    Rows x;
    [[unroll]] for (uint i = 0; i < 4; i++) {
        Octets row = Octets(rowOfB(k[i]));
#if ELEM == F32
        x.low[i] = row.v[2 * from];
        x.high[i] = row.v[2 * from + 1];
#else
        x.low[i] = row.v[from];
#endif
    }
    return x;
}

// octet returns the lane's columns of its row i, scaled, as 8 halves.
uvec4 octet(Rows x, uint i) {
#if ELEM == F32
    vec4 u = uintBitsToFloat(x.low[i]) * colScale[0], v = uintBitsToFloat(x.high[i]) * colScale[1];
    return uvec4(pair(u.xy), pair(u.zw), pair(v.xy), pair(v.zw));
#else
    return x.low[i];
#endif
}

// multiply adds a block: the lane's values of rows g and g + 8, and its rows of B.
void multiply(uvec4 v, Rows x) {
    OPERAND_B y = values8(v.xy), z = values8(v.zw);
    uvec4 w0 = octet(x, 0), w1 = octet(x, 1), w2 = octet(x, 2), w3 = octet(x, 3);
    [[unroll]] for (uint j = 0; j < 4; j++) {
        OPERAND_A c = columns16(w0[j], w1[j], w2[j], w3[j]);
        acc[j] = coopMatMulAdd(c, y, acc[j]);
        acc[4 + j] = coopMatMulAdd(c, z, acc[4 + j]);
    }
}

uvec4 columns(uint q) { return Octets(activeAt(q)).v[me & 3]; }

// run multiplies the part's blocks. While one is multiplied, B's rows of the next are on their way, and what says where
// those after it are; and A's values of the next round.
void run() {
    [[unroll]] for (uint i = 0; i < 8; i++)
        acc[i] = SUM(0.0);
    if (a.first == a.last) return;
    uint last = a.last - 1, mine = gl_SubgroupID;
    Found f = find(min(a.first + mine, last));
    Values v = valuesAt(f, 0), w = valuesAt(f, 1);
    f = find(min(a.first + SUBS + mine, last));
    uvec4 k = columns(a.first);
    Rows x = rowsAt(k);
    k = columns(min(a.first + 1, last));
    barrier(); // before the first round's values overwrite the last ones
    for (uint q = a.first, round = 0; q <= last; q += SUBS, round = 1 - round) {
        mem[(round * SUBS + mine) * 32 + me] = uvec4(packed(v, 0), packed(w, 1));
        barrier();
        v = valuesAt(f, 0);
        w = valuesAt(f, 1);
        f = find(min(q + 2 * SUBS + mine, last));
        if (!busy) continue;
        for (uint i = 0; i < SUBS && q + i <= last; i++) {
            Rows y = rowsAt(k);
            k = columns(min(q + i + 2, last));
            multiply(mem[(round * SUBS + i) * 32 + me], x);
            x = y;
        }
    }
}

#if ELEM == F32
// scale finds the scales of the subgroup's columns from the rows of B that blocks until the last use; and, the first
// time, rows' scales.
void scale(uint last, int top, bool first) {
    uint to = gl_SubgroupID * 64 + (me >> 2) * 8;
    [[unroll]] for (uint i = 0; i < 2; i++)
        colMax[gl_SubgroupID * 64 + 32 * i + me] = 0;
    for (uint i = gl_LocalInvocationIndex; i < ROWS && first; i += 32 * SUBS) rowMax[i] = 0;
    if (gl_LocalInvocationIndex == 0 && first) wild = 0;
    uvec2 most = uvec2(0);
    uvec4 low = uvec4(0), high = uvec4(0);
    if (a.first < last) {
        Rows x = rowsAt(columns(a.first)); // on their way while A's values are looked at
        if (first) {
            uint q = a.first + gl_SubgroupID;
            Found f = find(min(q, a.last - 1)), g = find(min(q + SUBS, a.last - 1)); // some blocks twice
            for (; q < a.last; q += 2 * SUBS) {
                uvec4 v = max(finite(floatBitsToUint(valuesAt(f, 0))), finite(floatBitsToUint(valuesAt(g, 0))));
                uvec4 w = max(finite(floatBitsToUint(valuesAt(f, 1))), finite(floatBitsToUint(valuesAt(g, 1))));
                f = find(min(q + 2 * SUBS, a.last - 1));
                g = find(min(q + 3 * SUBS, a.last - 1));
                most = max(most, uvec2(max(max(v.x, v.y), max(v.z, v.w)), max(max(w.x, w.y), max(w.z, w.w))));
            }
        }
        for (uint q = a.first;; x = rowsAt(columns(q))) {
            [[unroll]] for (uint i = 0; i < 4; i++) {
                low = max(low, finite(x.low[i]));
                high = max(high, finite(x.high[i]));
            }
            if (++q == last) break;
        }
    }
    barrier();
    [[unroll]] for (uint i = 0; i < 4; i++) {
        atomicMax(colMax[to + i], low[i]);
        atomicMax(colMax[to + 4 + i], high[i]);
    }
    if (first) [[unroll]]
        for (uint h = 0; h < 2; h++) atomicMax(rowMax[8 * h + (me >> 2)], most[h]);
    barrier();
    [[unroll]] for (uint i = 0; i < 8; i++)
        colScale[i / 4][i % 4] = power(scaleOf(colMax[to + i], top));
    [[unroll]] for (uint h = 0; h < 2; h++)
        rowScale[h] = scaleOf(rowMax[8 * h + (me >> 2)], 14);
}

// finiteSums tells whether all of the workgroup's sums that are of C are finite.
bool finiteSums() {
    bool some = false;
    [[unroll]] for (uint i = 0; i < 8; i++)
        [[unroll]] for (uint e = 0; e < 4; e++) some =
            some || special(acc[i][e]) && base + (me >> 2) * 8 + 2 * (i & 3) + (e >> 1) < p.n;
    if (some) atomicOr(wild, 1);
    barrier();
    return wild == 0;
}

// unscale takes the scales off the sums of row r and four columns from i of the subgroup's. 2^-e itself may not be
// a number, its root is.
vec4 unscale(uint r, uint i, int top, vec4 x) {
    for (uint j = 0; j < 4; j++) {
        int e = scaleOf(rowMax[r], 14) + scaleOf(colMax[gl_SubgroupID * 64 + i + j], top);
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
        addSlots(item, 32 * SUBS, 64 * SUBS);
        return;
    }
    a = partAt(item);
    base = (gl_WorkGroupID.y * SUBS + gl_SubgroupID) * 64;
    busy = base < p.n;
    from = min(base + (me >> 2) * 8, p.ldb - 8) / 8; // past the last column anything may be read
#if ELEM == F32
    int top = 11;
    scale(min(a.first + 1, a.last), top, true);
    run();
    if (!finiteSums()) {
        top = 14;
        scale(a.last, top, false);
        run();
    }
#else
    run();
#endif
    vec4 quads[8]; // of row 8h + 2t + e from column 8g + 4i on: number 4h + 2e + i
    [[unroll]] for (uint h = 0; h < 2; h++)
        [[unroll]] for (uint e = 0; e < 2; e++) [[unroll]] for (uint i = 0; i < 2; i++) quads[4 * h + 2 * e + i] =
            quadOf(acc[4 * h + 2 * i], acc[4 * h + 2 * i + 1], e);
    uint g = me >> 2, t = me & 3, to = gl_SubgroupID * 4 * C_ROW;
    barrier();
    // They go through shared memory four rows at a time: of the workgroups of a multiprocessor all have 48 KB together.
    [[dont_unroll]] for (uint n = 0; n < 4; n++) {
        mem[to + t * C_ROW + 2 * g] = floatBitsToUint(quads[0]);
        mem[to + t * C_ROW + 2 * g + 1] = floatBitsToUint(quads[1]);
        [[unroll]] for (uint i = 0; i < 6; i++)
            quads[i] = quads[i + 2];
        subgroupMemoryBarrierShared();
        subgroupBarrier();
        [[dont_unroll]] for (uint i = me; i < 64 && busy; i += 32) {
            uint r = 8 * (n / 2) + 2 * (i / 16) + n % 2, c = i % 16;
            vec4 x = uintBitsToFloat(mem[to + i / 16 * C_ROW + c]);
#if ELEM == F32
            x = unscale(r, 4 * c, top, x);
#endif
            keep(a, r, base + 4 * c, x);
        }
        subgroupMemoryBarrierShared();
        subgroupBarrier();
    }
}
