// How a sum becomes an element of C: the one rounding, alpha, beta and the epilogue. BITS is p.

#include "params.glsl"
#include "../include/addr.glsl"
#include "../include/half.glsl"
#include "../include/fixed.glsl"

// The same buffers, in units of one load.
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Words { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Words2 { uvec2 v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Words4 { uvec4 v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Out { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Out4 { uvec4 v[]; };

// The fields of p.shape.
uint across_of() { return p.shape & 255u; }
uint along_of() { return p.shape >> 8 & 255u; }
uint phase_of() { return p.shape >> 16 & 255u; }
uint elem_of() { return p.shape >> 24; }

// colidx is where the entries' columns are.
uvec2 colidx() { return at(uvec2(p.rows), p.columns, 4); }

// element returns the f32 bits of element i of a line of values or b, which starts at an even element.
uint element(uvec2 line, uint i) {
    if (elem_of() == F32) return Words(line).v[i];
    return widen((Words(line).v[i / 2] >> (16 * (i % 2))) & 0xffffu, elem_of());
}

// kind returns the class of the products of a row's entries with column j.
uint kind(uint row, uint j) {
    uint c = 0, begin = p.rows.v[2 * row], end = p.rows.v[2 * row + 2];
    Words columns = Words(colidx());
    for (uint k = begin; k < end; k++) {
        uvec2 line = at(uvec2(p.b), columns.v[k], (elem_of() == F32 ? 4 : 2) * p.ldb);
        c |= product_class(element(uvec2(p.values), k), element(line, j));
    }
    return c;
}

#define SCALED 0x10000u // of the parameter `store`, see rfx.go

// epilogue returns relu(y + bias), or what of it the parameter `store` asks for (spec.Problem.StoreWord), for an output
// in that row and column.
uint epilogue(uint y, uint row, uint j) {
    uint kind = p.store >> 2 & 3u;
    if (kind != 0) y = plus(y, Words(at(uvec2(p.bias), kind == 1 ? row : j, 4u << (p.store >> 8 & 15u))).v[0]);
    return (p.store >> 4 & 15u) != 0 ? relu(y) : y;
}

// storeRounded writes element (row, j) of C, given the rounded sum and the ranges of the row and of the column.
void storeRounded(uint row, uint j, uint y, uint ra, uint rb) {
    if (((ra | rb) & WILD) != 0) {
        uint c = kind(row, j);
        if (c != 0) y = class_value(c);
    }
    Out line = Out(at(uvec2(p.c), row, 4 * p.ldc));
    if (p.store != 0) {
        if ((p.store & SCALED) != 0) y = scale(p.alpha, y, p.beta, (p.beta & 0x7fffffffu) != 0 ? line.v[j] : 0);
        y = epilogue(y, row, j);
    }
    line.v[j] = y;
}

// store writes element (row, j) of C, given the sum.
void store(uint row, uint j, uvec4 sum) {
    uint ra = p.rows.v[2 * row + 1], rb = p.q.v[j];
    storeRounded(row, j, round128(sum, unit(ra, BITS) + unit(rb, BITS)), ra, rb);
}
