// What GLSL kernels on panels share: buffers of any size, elements, sums over a row's entries alone. Needs V,
// the rows of a panel, and ELEM, the type of A and B. The kernel's table has arguments colind, values, mask,
// b and c, and the parameters that package panel lists.

#include "half.glsl"
#define ELEM_T uint // 16-bit elements are read two at a time
#include "params.glsl"
#include "addr.glsl"

layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Words { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Floats { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Quads { vec4 v[]; };
#ifdef LANES
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Pairs { uvec2 v[]; };
#endif

#if ELEM == F32
#define ELEM_BYTES 4u
float element(uvec2 a, uint i) { return uintBitsToFloat(Words(a).v[i]); }
#else
#define ELEM_BYTES 2u
float element(uvec2 a, uint i) {
    return uintBitsToFloat(widen((Words(a).v[i >> 1] >> (16u * (i & 1u))) & 0xffffu, ELEM));
}
#endif

// A panel's columns, and what its kernel knows its rows by.
struct Panel {
    uint first, count; // columns, the first counted over all
    uint rows;
    uvec2 cols;        // address of their numbers
    uvec2 values;      // and values
};

// panelAt returns the panel of columns first to last.
Panel panelAt(uint first, uint last, uint rows) {
    return Panel(first, last - first, rows, at(uvec2(p.colind), first, 4), at(uvec2(p.values), first, V * ELEM_BYTES));
}

// rowOfB returns the address of row k of B.
uvec2 rowOfB(uint k) { return at(uvec2(p.b), k, p.ldb * ELEM_BYTES); }

// stored tells whether row r of the panel's column q is an entry. Its bit is number (first + q)·V + r.
bool stored(Panel a, uint q, uint r) {
    uint bit = ((a.first + q) % 32) * V + r;
    uvec2 words = at(uvec2(p.mask), (a.first + q) / 32, 4 * V);
    return (Words(words).v[bit >> 5] >> (bit & 31u) & 1u) != 0;
}

// valueOf returns the number, among the panel's values, of row r of column q.
uint valueOf(uint q, uint r) {
#ifdef LANES // see panel_lanes.glsl
    return ((q / 16 * 32 + r % 8 * 4 + q / 4 % 4) * (V / 8) + r / 8) * 4 + q % 4;
#else
    return q * V + r;
#endif
}

// columnOf returns the number of the panel's column q. The window w is one that q is not before.
uint columnOf(Panel a, uint q, inout uint w) {
#ifdef CUT // see panel_window.glsl
    uint lists = a.rows / V * ((p.cols + WINDOW - 1) / WINDOW);
    while (a.first + q >= PTR.v[lists + w + 1]) w++;
    uint at = a.first + q;
    return w * WINDOW + (p.colind.v[at / 2] >> (16 * (at & 1u)) & 0xffffu);
#else
    return Words(a.cols).v[q];
#endif
}

bool special(float x) { return (floatBitsToUint(x) & 0x7f800000u) == 0x7f800000u; }

// entries returns the sum of row r's entries times column j of B. Terms with operands that are not
// finite decide by themselves what it is, so that the order of summation does not matter; they are
// told apart by their bits, since a compiler may take floats to be finite.
float entries(Panel a, uint r, uint j) {
    const uint NAN = 4, NEGATIVE = 2, POSITIVE = 1;
    float sum = 0;
    uint seen = 0, w = 0;
    for (uint q = 0; q < a.count; q++) {
        if (!stored(a, q, r)) continue;
        float x = element(a.values, valueOf(q, r)), y = element(rowOfB(columnOf(a, q, w)), j);
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
