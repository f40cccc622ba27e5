// What the GLSL kernels share: buffers of any size, elements, slots, sums over a row's entries alone, writing C. Needs
// ELEM, the type of A and B.
//
// Parameters: a panel has p.tall rows and p.groups groups, which keep p.keep of p.every units each, 2^p.wide columns
// wide.

#include "../include/operands.glsl"
#include "../include/quad.glsl"

// A panel: its condensed columns, and where its arrays are. Addresses of values count from the element of the panel
// that is at a multiple of 16 bytes, skip elements before the first.
struct Panel {
    uint count; // condensed columns
    uint bits; // of a place
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

// entries returns the sum of the entries of row r of a panel times column j of B.
float entries(Panel a, uint r, uint j) {
    Terms sum = Terms(0, 0);
    for (uint k = 0; k < a.count; k++) {
        uint v = k * p.tall + r;
        if ((Words(a.mask).v[v >> 5] >> (v & 31u) & 1u) == 0) continue;
        float x = element(a.values, valueOf(a, k, r)), y = element(rowOfB(columnOf(a, k)), j);
        addTerm(sum, x, y);
    }
    return total(sum);
}

#define SUMMED Panel
#include "../include/repair.glsl"
