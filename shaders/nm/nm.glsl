// What the GLSL kernels share: buffers of any size, elements, slots, sums over a row's entries alone, writing C.
// Needs ELEM, the type of A and B.
//
// Parameters: a panel has p.tall rows and p.groups groups, which keep p.keep of p.every units each, 2^p.wide columns wide.

#include "../include/half.glsl"
#define ELEM_T uint // 16-bit elements are read two at a time
#include "params.glsl"
#include "../include/addr.glsl"

layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Words { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Floats { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Quads { vec4 v[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Pairs { uvec2 v[]; };

#if ELEM == F32
#define ELEM_BYTES 4u
float element(uvec2 a, uint i) { return uintBitsToFloat(Words(a).v[i]); }
vec4 quad(uvec2 a, uint i) { return Quads(a).v[i]; }
#else
#define ELEM_BYTES 2u
float element(uvec2 a, uint i) {
    return uintBitsToFloat(widen((Words(a).v[i >> 1] >> (16u * (i & 1u))) & 0xffffu, ELEM));
}

// pair returns two neighbouring 16-bit elements, quad four.
vec2 pair(uint w) {
#if ELEM == BF16
    return uintBitsToFloat(uvec2(w << 16, w & 0xffff0000u));
#else
    return unpackHalf2x16(w);
#endif
}
vec4 quad(uvec2 a, uint i) {
    uvec2 w = Pairs(a).v[i];
    return vec4(pair(w.x), pair(w.y));
}
#endif

// A panel: its condensed columns, and where its arrays are. Addresses of values count from the element of the panel
// that is at a multiple of 16 bytes, skip elements before the first.
struct Panel {
    uint count;    // condensed columns
    uint bits;     // of a place
    uvec2 places;
    uvec2 mask;
    uvec2 values;
    uint skip;
#ifdef SPARSE24
    uint row;
#endif
};

Panel panelOf(uint number) {
    Panel a;
    uint slots = p.groups * p.keep;
    a.count = slots << p.wide;
    a.bits = 32 - (31 - findMSB(p.every - 1));
    a.places = at(uvec2(p.places), number, 4 * ((slots * a.bits + 31) / 32));
    a.mask = at(uvec2(p.mask), number, 4 * ((a.count * p.tall + 31) / 32));
    // Panels of single entries start anywhere.
#ifdef SPARSE24 // see valueOf
    uint stages = (p.cols + 63) / 64;
    a.places = at(uvec2(p.places), number / 16, stages * 128);
    a.values = at(uvec2(p.values), number / 16, stages * 1024);
    a.row = number;
#elif defined(LANES)
    a.places = at(uvec2(p.places), number, (a.count + 31) / 32 * 128);
    a.values = at(uvec2(p.values), number, (a.count + 31) / 32 * 32 * p.tall * ELEM_BYTES);
#else
    a.values = at(uvec2(p.values), number, a.count * p.tall * ELEM_BYTES);
#endif
    a.skip = (a.values.x & 15u) / ELEM_BYTES;
    a.values.x &= ~15u;
    return a;
}

// valueOf returns the place, among the panel's values, of row r of condensed column k.
uint valueOf(Panel a, uint k, uint r) {
#ifdef SPARSE24 // sparse24.go
    return k / 16 * 256 + (a.row % 8 * 4 + k % 8 / 2) * 8 + k % 16 / 8 * 4 + a.row / 8 % 2 * 2 + k % 2;
#elif defined(LANES) // lanes.go
    return ((k / 16 * (p.tall / 16) + r / 16) * 32 + r % 8 * 4 + k % 16 / 4) * 8 + r % 16 / 8 * 4 + k % 4;
#else
    return a.skip + k * p.tall + r;
#endif
}

// columnOf returns the matrix's column of condensed column k. In the last group it may lie past the matrix.
uint columnOf(Panel a, uint k) {
#ifdef SPARSE24
    uint word = Words(a.places).v[a.row % 8 * 4 + k / 32 * 32 + k / 16 % 2 * 2 + k % 16 / 8];
    return k / 2 * 4 + (word >> (a.row / 8 % 2 * 16 + k % 8 * 2) & 3u);
#elif defined(LANES)
    return Words(a.places).v[k];
#else
    uint slot = k >> p.wide, bit = slot * a.bits, low = bit & 31u;
    uint place = Words(a.places).v[bit >> 5] >> low;
    if (low + a.bits > 32) place |= Words(a.places).v[(bit >> 5) + 1] << (32 - low);
    place &= (1u << a.bits) - 1;
    return (slot / p.keep * p.every + place << p.wide) + (k & (1u << p.wide) - 1);
#endif
}

// rowOfB returns the address of row k of B.
uvec2 rowOfB(uint k) { return at(uvec2(p.b), k, p.ldb * ELEM_BYTES); }

bool special(float x) { return (floatBitsToUint(x) & 0x7f800000u) == 0x7f800000u; }

// entries returns the sum of the entries of row r of a panel times column j of B. Terms with operands that are not
// finite decide by themselves what it is, so that the order of summation does not matter; they are told apart by their
// bits, since a compiler may take floats to be finite.
float entries(Panel a, uint r, uint j) {
    const uint NAN = 4, NEGATIVE = 2, POSITIVE = 1;
    float sum = 0;
    uint seen = 0;
    for (uint k = 0; k < a.count; k++) {
        uint v = k * p.tall + r;
        if ((Words(a.mask).v[v >> 5] >> (v & 31u) & 1u) == 0) continue;
        float x = element(a.values, valueOf(a, k, r)), y = element(rowOfB(columnOf(a, k)), j);
        if (!special(x) && !special(y)) {
            sum += x * y;
            continue;
        }
        uint s = floatBitsToUint(x), t = floatBitsToUint(y);
        uint lesser = min(s & 0x7fffffffu, t & 0x7fffffffu), greater = max(s & 0x7fffffffu, t & 0x7fffffffu);
        if (greater > 0x7f800000u || lesser == 0) seen |= NAN;
        else seen |= (s ^ t) >> 31 != 0 ? NEGATIVE : POSITIVE;
    }
    if (seen == 0) return sum;
    return uintBitsToFloat(seen == POSITIVE ? 0x7f800000u : seen == NEGATIVE ? 0xff800000u : 0x7fc00000u);
}

// repair replaces those of row r's sums at columns j to j+3 that are not finite.
vec4 repair(Panel a, uint r, uint j, vec4 x) {
    for (uint i = 0; i < 4; i++)
        if (special(x[i]) && j + i < p.n) x[i] = entries(a, r, j + i);
    return x;
}

// storeFloats writes alpha·x + beta·C to four columns of C, as far as there are so many.
void storeFloats(uint row, uint j, vec4 x) {
    uvec2 c = at(uvec2(p.c), row, p.ldc * 4);
    x *= p.alpha;
    if (j + 4 <= p.n && (p.ldc & 3u) == 0) {
        if (p.beta != 0) x += p.beta * Quads(c).v[j >> 2];
        Quads(c).v[j >> 2] = x;
        return;
    }
    for (uint i = 0; i < min(4, p.n - j); i++) {
        if (p.beta != 0) x[i] += p.beta * Floats(c).v[j + i];
        Floats(c).v[j + i] = x[i];
    }
}
