// What the GLSL kernels share: buffers of any size, elements, a strip's steps, sums over a row's entries
// alone. Needs ELEM, the type of A and B.

#include "../include/half.glsl"
#define ELEM_T uint // 16-bit elements are read two at a time
#include "params.glsl"
#include "../include/addr.glsl"

layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Words { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Floats { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) buffer Pairs { uvec2 v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Quads { vec4 v[]; };

const uint ROWS = 16;       // of a strip
const uint STEP_COLS = 32;  // of a step
const uint STEP_SLOTS = 256;

#if ELEM == F32
#define ELEM_BYTES 4u
float element(uvec2 a, uint i) { return uintBitsToFloat(Words(a).v[i]); }
#else
#define ELEM_BYTES 2u
float element(uvec2 a, uint i) {
    return uintBitsToFloat(widen((Words(a).v[i >> 1] >> (16u * (i & 1u))) & 0xffffu, ELEM));
}
#endif

// A strip's steps, and where in C it is.
struct Strip {
    uint steps;
    uint row;       // the first of 16
    uvec2 cols;     // address of the 32 column numbers of each step
    uvec2 metadata; // of the 16 words of each, two steps interleaved
    uvec2 values;
    uvec2 mask;
};

Strip stripOf(uint slot) {
    Strip a;
    uint number = p.index.v[2 * (p.blocks + 1) + slot], first = p.index.v[p.blocks + 1 + number];
    a.steps = p.index.v[p.blocks + 2 + number] - first;
    a.row = number * ROWS;
    a.cols = at(uvec2(p.colidx), first, STEP_COLS * 4);
    a.metadata = at(uvec2(p.metadata), first, 64);
    a.values = at(uvec2(p.values), first, STEP_SLOTS * ELEM_BYTES);
    a.mask = at(uvec2(p.mask), first, STEP_SLOTS / 8);
    return a;
}

// rowOfB returns the address of row k of B.
uvec2 rowOfB(uint k) { return at(uvec2(p.b), k, p.ldb * ELEM_BYTES); }

// places returns where in quad q of tile t of step n the two entries of row g and of row g + 8 are, 2 bits each:
// those of row g in the lowest four bits, of row g + 8 16 bits above.
uint places(Strip a, uint n, uint t, uint g, uint q) {
    return Words(at(a.metadata, n / 2, 128)).v[4 * g + 2 * (n & 1) + t] >> (4 * q) & 0xf000fu;
}

bool special(float x) { return (floatBitsToUint(x) & 0x7f800000u) == 0x7f800000u; }

// entries returns the sum of row r's entries times column j of B. Terms with operands that are not
// finite decide by themselves what it is, so that the order of summation does not matter; they are
// told apart by their bits, since a compiler may take floats to be finite.
float entries(Strip a, uint r, uint j) {
    const uint NAN = 4, NEGATIVE = 2, POSITIVE = 1;
    float sum = 0;
    uint seen = 0;
    for (uint n = 0; n < a.steps; n++)
        for (uint i = 0; i < 16; i++) { // quad i/4, tile i/2%2, entry i%2
            uint q = i >> 2, t = i >> 1 & 1, slot = 8 * (4 * (r & 7) + q) + 4 * t + 2 * (r >> 3) + (i & 1);
            if ((Words(at(a.mask, n, STEP_SLOTS / 8)).v[slot >> 5] >> (slot & 31) & 1) == 0) continue;
            uint k = 16 * t + 4 * q + (places(a, n, t, r & 7, q) >> (16 * (r >> 3) + 2 * (i & 1)) & 3);
            float x = element(at(a.values, n, STEP_SLOTS * ELEM_BYTES), slot);
            float y = element(rowOfB(Words(at(a.cols, n, STEP_COLS * 4)).v[k]), j);
            if (!special(x) && !special(y)) {
                sum += x * y;
                continue;
            }
            uint s = floatBitsToUint(x), u = floatBitsToUint(y);
            uint lesser = min(s & 0x7fffffffu, u & 0x7fffffffu), greater = max(s & 0x7fffffffu, u & 0x7fffffffu);
            if (greater > 0x7f800000u || lesser == 0) seen |= NAN;
            else seen |= (s ^ u) >> 31 != 0 ? NEGATIVE : POSITIVE;
        }
    if (seen == 0) return sum;
    return uintBitsToFloat(seen == POSITIVE ? 0x7f800000u : seen == NEGATIVE ? 0xff800000u : 0x7fc00000u);
}

// repair replaces those of row r's sums at columns j to j+3 that are not finite.
vec4 repair(Strip a, uint r, uint j, vec4 x) {
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
