// What the GLSL kernels share: parts and blocks, elements, sums over a row's entries alone, C, and phase 1.
// Needs BLOCK, the active columns of a block, and ELEM, the type of A and B.

#include "../include/half.glsl"
#define ELEM_T uint // 16-bit elements are read two at a time
#include "params.glsl"
#include "../include/addr.glsl"

layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Words { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Words4 { uvec4 v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Floats { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Quads { vec4 v[]; };

#define ROWS 16u               // of a panel
#define PATTERNS (BLOCK / 2u)  // words of a block's patterns
#define NO_SLOT 0xffffffffu

#if ELEM == F32
#define ELEM_BYTES 4u
float element(uvec2 a, uint i) { return uintBitsToFloat(Words(a).v[i]); }
#else
#define ELEM_BYTES 2u
float element(uvec2 a, uint i) {
    return uintBitsToFloat(widen((Words(a).v[i >> 1] >> (16u * (i & 1u))) & 0xffffu, ELEM));
}
#endif

// An item of the work list: blocks of a panel.
struct Part { uint panel, first, last, slot; };

Part partAt(uint i) {
    uvec4 w = Words4(p.work).v[i];
    return Part(w.x, w.y, w.z, w.w);
}

// blockAt returns the address of block q's patterns; valuesOf that of its values.
uvec2 blockAt(uint q) { return at(uvec2(p.packed), p.sizes.v[q], 16); }
uvec2 valuesOf(uvec2 block) { return at(block, PATTERNS, 4); }

// activeAt returns the address of block q's active columns, rowOfB that of row k of B.
uvec2 activeAt(uint q) { return at(uvec2(p.columns), q, 4 * BLOCK); }
uvec2 rowOfB(uint k) { return at(uvec2(p.b), k, p.ldb * ELEM_BYTES); }

bool special(float x) { return (floatBitsToUint(x) & 0x7f800000u) == 0x7f800000u; }

// entries returns the sum of row r's entries times column j of B, over the part's blocks. Terms with
// operands that are not finite decide by themselves what it is, so that the order of summation does not
// matter; they are told apart by their bits, since a compiler may take floats to be finite.
float entries(Part a, uint r, uint j) {
    const uint NAN = 4, NEGATIVE = 2, POSITIVE = 1;
    float sum = 0;
    uint seen = 0;
    for (uint q = a.first; q < a.last; q++) {
        uvec2 block = blockAt(q), cols = activeAt(q), values = valuesOf(block);
        uint before = 0; // entries of the words before
        for (uint i = 0; i < PATTERNS; i++) {
            uint word = Words(block).v[i], shift = r % 8 * 4;
            uint mine = i % 2 == r / 8 ? (word >> shift) & 15u : 0;
            uint k = before + bitCount(word & ((1u << shift) - 1u));
            for (uint c = 0; c < 4 && mine != 0; c++) {
                if ((mine >> c & 1u) == 0) continue;
                float x = element(values, k), y = element(rowOfB(Words(cols).v[i / 2 * 4 + c]), j);
                k++;
                if (!special(x) && !special(y)) {
                    sum += x * y;
                    continue;
                }
                uint s = floatBitsToUint(x), t = floatBitsToUint(y);
                uint lesser = min(s & 0x7fffffffu, t & 0x7fffffffu), greater = max(s & 0x7fffffffu, t & 0x7fffffffu);
                if (greater > 0x7f800000u || lesser == 0) seen |= NAN;
                else seen |= (s ^ t) >> 31 != 0 ? NEGATIVE : POSITIVE;
            }
            before += bitCount(word);
        }
    }
    if (seen == 0) return sum;
    return uintBitsToFloat(seen == POSITIVE ? 0x7f800000u : seen == NEGATIVE ? 0xff800000u : 0x7fc00000u);
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

#ifndef STORE
#define STORE storeFloats
#endif

// finish writes the sums x of row r of a whole panel to C, four columns from j on. Those that are not finite
// are replaced.
void finish(Part a, uint r, uint j, vec4 x) {
    uint row = a.panel * ROWS + r;
    if (row >= p.rows || j >= p.n) return;
    for (uint i = 0; i < 4; i++)
        if (special(x[i]) && j + i < p.n) x[i] = entries(a, r, j + i);
    STORE(row, j, x);
}

// sums is the address of row r of a slot of the workspace.
uvec2 sums(uint slot, uint r) { return at(at(uvec2(p.part), slot, ROWS * p.ldp * 4), r, p.ldp * 4); }

// keep writes the sums x of row r of a part: to C, or to its slot.
void keep(Part a, uint r, uint j, vec4 x) {
    if (a.slot == NO_SLOT) finish(a, r, j, x);
    else if (j < p.n) Quads(sums(a.slot, r)).v[j >> 2] = x;
}

// addSlots is phase 1: the sums of split panel i, by a workgroup of so many invocations and columns.
void addSlots(uint i, uint local, uint cols) {
    Part a = partAt(p.parts + i);
    uint slots = (a.last - a.first + p.longest - 1) / p.longest;
    uint base = gl_WorkGroupID.y * cols;
    for (uint t = gl_LocalInvocationIndex; t < ROWS * cols / 4; t += local) {
        uint r = t / (cols / 4), j = base + t % (cols / 4) * 4;
        if (j >= p.n) continue;
        vec4 x = vec4(0);
        for (uint s = 0; s < slots; s++) x += Quads(sums(a.slot + s, r)).v[j >> 2];
        finish(a, r, j, x);
    }
}
