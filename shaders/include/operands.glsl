// What GLSL kernels on sparse formats share: buffers in units of one load, elements of A and B, rows of B, storing C.
// Needs ELEM, the type of A and B, and the parameters b, bias, c, n, ldb, ldc, store, alpha and beta.

#extension GL_EXT_control_flow_attributes : require
#include "half.glsl"
#define ELEM_T uint // 16-bit elements are read two at a time
#include "params.glsl"
#include "addr.glsl"
#include "epilogue.glsl"

layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Words { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Pairs { uvec2 v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Octets { uvec4 v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Floats { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Quads { vec4 v[]; };

// element returns element i of the values at address a.
#if ELEM == F32
#define ELEM_BYTES 4u
float element(uvec2 a, uint i) { return uintBitsToFloat(Words(a).v[i]); }
#else
#define ELEM_BYTES 2u
float element(uvec2 a, uint i) {
    return uintBitsToFloat(widen((Words(a).v[i >> 1] >> (16u * (i & 1u))) & 0xffffu, ELEM));
}
#endif

// rowOfB returns the address of row k of B.
uvec2 rowOfB(uint k) { return at(uvec2(p.b), k, p.ldb * ELEM_BYTES); }

// epilogue4 applies the epilogue to columns j to j+3 of a row, without those from n on. It computes one column at a
// time, always x.x, and moves the others up: so the code is small.
vec4 epilogue4(uint row, uint j, vec4 x) {
    [[dont_unroll]] for (uint i = 0; i < 4; i++)
        x = vec4(x.yzw, j + i < p.n ? epilogue(x.x, row, j + i) : x.x);
    return x;
}

// storeFloats writes alpha·x + beta·C, with the epilogue, to columns j to j+3 of C, without those from n on.
void storeFloats(uint row, uint j, vec4 x) {
    uvec2 c = at(uvec2(p.c), row, p.ldc * 4);
    bool whole = j + 4 <= p.n && (p.ldc & 3u) == 0;
    x *= p.alpha;
    if (p.beta != 0) {
        if (whole) x += p.beta * Quads(c).v[j >> 2];
        else
            for (uint i = 0; i < min(4, p.n - j); i++) x[i] += p.beta * Floats(c).v[j + i];
    }
    if (p.store > 3) x = epilogue4(row, j, x);
    if (whole) Quads(c).v[j >> 2] = x;
    else
        for (uint i = 0; i < min(4, p.n - j); i++) Floats(c).v[j + i] = x[i];
}

// special reports whether x is infinite or NaN. It tests the bits, because a compiler may assume that floats are
// finite.
bool special(float x) { return (floatBitsToUint(x) & 0x7f800000u) == 0x7f800000u; }

// Terms is a sum of products. Products with operands that are not finite are only noted: they decide the result, so
// that the order of the sum does not matter.
struct Terms {
    float sum; // of the finite products
    uint seen; // bits: 1 positive infinity, 2 negative infinity, 4 NaN
};

void addTerm(inout Terms t, float x, float y) {
    if (!special(x) && !special(y)) {
        t.sum += x * y;
        return;
    }
    uint a = floatBitsToUint(x), b = floatBitsToUint(y);
    uint lesser = min(a & 0x7fffffffu, b & 0x7fffffffu), greater = max(a & 0x7fffffffu, b & 0x7fffffffu);
    t.seen |= greater > 0x7f800000u || lesser == 0 ? 4u : (a ^ b) >> 31 != 0 ? 2u : 1u;
}

float total(Terms t) {
    if (t.seen == 0) return t.sum;
    return uintBitsToFloat(t.seen == 1 ? 0x7f800000u : t.seen == 2 ? 0xff800000u : 0x7fc00000u);
}
