// Computes: C = alpha·A·B + beta·C, A (rows × cols) in HRPB as strips of HEIGHT rows (strips.cu), f32, f16 or bf16
// widened to f32, on scalar units. It serves tf32 too, and needs no scales.
// Tile: a workgroup computes (HEIGHT × 4·ACROSS) for as many items, strips or segments of one, as its LOCAL invocations
// suffice for. ACROSS invocations side by side hold four columns each; ALONG such groups, one or at least HEIGHT, take
// four vectors of an item in turn, and their sums are added at the end.
// Data movement: vectors and rows of B straight from memory to registers.
// Bound by: gathers of rows of B.

#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_16bit_storage : require

layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
layout(constant_id = 1) const uint ACROSS = 32;
layout(constant_id = 2) const uint ALONG = 1;
layout(constant_id = 3) const uint SHARED =
    1; // vec4 of shared memory: two for each invocation, if there are several groups

void storeAny(uint row, uint j, vec4 x);
#define STORE storeAny
#include "hrpb.glsl"
#include "../include/store_halves.glsl"

const uint LOCAL = gl_WorkGroupSize.x;
const uint TEAM = ACROSS * ALONG; // invocations of an item

#if ELEM == BF16
vec2 halves(uint w) { return vec2(uintBitsToFloat(w << 16), uintBitsToFloat(w & 0xffff0000u)); }
#elif ELEM == F16
vec2 halves(uint w) { return unpackHalf2x16(w); }
#endif

// rowOf returns four columns of B, number i of them, counted by fours.
vec4 rowOf(uint i) {
#if ELEM == F32
    return uintBitsToFloat(Octets(p.b).v[i]);
#else
    uvec2 q = Pairs(p.b).v[i];
    return vec4(halves(q.x), halves(q.y));
#endif
}

// The values of four vectors, each of four rows.
struct Four {
    vec4 v0, v1, v2, v3;
};

Four valuesAt(uint k) {
#if ELEM == F32
    Octets v = Octets(p.packed);
    return Four(uintBitsToFloat(v.v[k]), uintBitsToFloat(v.v[k + 1]), uintBitsToFloat(v.v[k + 2]),
                uintBitsToFloat(v.v[k + 3]));
#else
    uvec4 x = Octets(p.packed).v[k / 2], y = Octets(p.packed).v[k / 2 + 1];
    return Four(vec4(halves(x.x), halves(x.y)), vec4(halves(x.z), halves(x.w)), vec4(halves(y.x), halves(y.y)),
                vec4(halves(y.z), halves(y.w)));
#endif
}

// The sums of the strip's rows. (An array might be kept in memory.)
vec4 s0, s1, s2, s3;

// multiply adds the products of a vector and four columns of a row of B.
void multiply(vec4 v, vec4 b) {
    s0 += v.x * b;
    s1 += v.y * b;
    s2 += v.z * b;
    s3 += v.w * b;
}

// Sums of a row on their way between an item's groups, in two halves that are used in turn.
shared vec4 mem[SHARED];

// collect returns the sums of row r over all groups; each invocation passes its own.
vec4 collect(uint r, vec4 x) {
    uint half_ = r % 2 * LOCAL, me = gl_LocalInvocationIndex, first = me / TEAM * TEAM + me % ACROSS;
    mem[half_ + me] = x;
    barrier();
    x = mem[half_ + first];
    for (uint g = 1; g < ALONG; g++) x += mem[half_ + first + g * ACROSS];
    return x;
}

// storeAny writes alpha·x + beta·C, with the epilogue, to columns j to j+3 of C, in f32 or f16, without those from n
// on. Rare paths are done column by column, the next in x.x, so that there is little code of it: in a launch of some
// microseconds each instruction runs a few times.
void storeAny(uint row, uint j, vec4 x) {
    bool half_ = storeType == F16, whole = j + 4 <= p.n && (p.ldc & 3u) == 0;
    uvec2 c = at(uvec2(p.c), row, p.ldc * (half_ ? 2 : 4));
    x *= p.alpha;
    if (p.beta != 0) [[dont_unroll]]
        for (uint i = 0; i < 4; i++) {
            if (j + i < p.n)
                x.x += p.beta * (half_ ? uintBitsToFloat(widen_f16(uint(Halves(c).v[j + i]))) : Floats(c).v[j + i]);
            x = x.yzwx;
        }
    if (p.store > 3) x = epilogue4(row, j, x);
    if (half_) {
        uvec4 h = uvec4(0);
        [[dont_unroll]] for (uint i = 0; i < 4; i++) {
            h = uvec4(h.yzw, narrow_f16(floatBitsToUint(x.x)));
            if (!whole && j + i < p.n) Halves(c).v[j + i] = uint16_t(h.w);
            x = x.yzwx;
        }
        if (whole) HalfQuads(c).v[j >> 2] = uvec2(h.x | h.y << 16, h.z | h.w << 16);
    } else if (whole) {
        Quads(c).v[j >> 2] = x;
    } else {
        [[dont_unroll]] for (uint i = 0; i < 4 && j + i < p.n; i++) {
            Floats(c).v[j + i] = x.x;
            x = x.yzwx;
        }
    }
}

void main() {
    uint block = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width, me = gl_LocalInvocationIndex, lane = me % ACROSS;
    uint x = gl_WorkGroupID.y * ACROSS + lane, col = 4 * x;
    Part a = Part(0, 0, 0, NO_SLOT);
    uint first = 0, last = 0; // rows whose sums the invocation has in the end, from s0 on
    uvec4 rows = uvec4(0); // of C, which these are, from rows.x on
    s0 = s1 = s2 = s3 = vec4(0);
    if (p.phase == 1) { // a workgroup adds up the slots of a cut strip, an invocation of a row
        first = me / ACROSS;
        if (block < p.items && col < p.n && first < ROWS) {
            a = partAt(p.parts + block);
            s0 = sumOf(a, first, col);
            rows.x = rowAt(a.panel, first);
            a.slot = NO_SLOT;
            last = first + 1;
        }
    } else {
        uint item = block * (LOCAL / TEAM) + me / TEAM, group = me % TEAM / ACROSS;
        bool busy = item < p.items && col < p.n;
        if (busy) a = partAt(item);
        Octets columns = Octets(p.columns);
        uint ld = p.ldb / 4, k = a.first + 4 * group;
        uvec4 cols = uvec4(0);
        if (k < a.last) cols = columns.v[k / 4];
        if (busy) { // long before they are needed
            rows.x = rowAt(a.panel, group % ROWS);
            if (ALONG == 1) rows.yzw = uvec3(rowAt(a.panel, 1), rowAt(a.panel, 2), rowAt(a.panel, 3));
        }
        [[dont_unroll]] while (k < a.last) {
            uvec4 at = (cols & COLUMN) * ld + x; // padding has column 0 and zeros
            vec4 b0 = rowOf(at.x), b1 = rowOf(at.y), b2 = rowOf(at.z), b3 = rowOf(at.w);
            Four v = valuesAt(k);
            k += 4 * ALONG;
            cols = columns.v[min(k, a.last - 4) / 4];
            multiply(v.v0, b0);
            multiply(v.v1, b1);
            multiply(v.v2, b2);
            multiply(v.v3, b3);
        }
        last = busy ? ROWS : 0;
        if (ALONG > 1) {
            vec4 mine = s0; // of row number group
            [[dont_unroll]] for (uint r = 0; r < ROWS; r++) {
                vec4 y = collect(r, s0);
                s0 = s1;
                s1 = s2;
                s2 = s3;
                if (r == group) mine = y;
            }
            s0 = mine;
            first = group;
            last = min(last, group + 1);
        }
    }
    [[dont_unroll]] for (uint r = first; r < last; r++) {
        keepAt(a, r, rows.x, col, s0);
        rows = rows.yzwx;
        s0 = s1;
        s1 = s2;
        s2 = s3;
    }
}
