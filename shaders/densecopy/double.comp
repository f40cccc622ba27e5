// Computes: dst = alpha·src + beta·dst with an epilogue, dense matrices, src or dst of f64.
// Tile: a workgroup copies 1024 words of dst (densecopy.go).
// Data movement: straight through registers; a transposition goes through shared memory.
// Bound by: memory bandwidth.

#version 460
#extension GL_GOOGLE_include_directive : require
#define DOUBLE
#include "params.glsl"
#include "../include/addr.glsl"
#include "../include/half.glsl"
#define EPILOGUE
#include "../include/f64.glsl"

layout(local_size_x = 32, local_size_y = 4) in;

layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) buffer Doubles { double v[]; };

// src's elements of the workgroup's tile where src is transposed: element e of line l is
// tile[e - e0][l - l0].
shared double tile[65][33];

// load returns element e of src's line l.
double load(uint l, uint e) {
    if (p.stype == F64) return Doubles(at(uvec2(p.src), l, 8 * p.lds)).v[p.first + e];
    if (p.stype == F32) return doubleOf(Words(at(uvec2(p.src), l, 4 * p.lds)).v[p.first + e]);
    uvec2 a = at(uvec2(p.src), l, 2 * p.lds);
    e += p.first + ((a.x >> 1) & 1u); // lines may start inside a word
    a.x &= ~3u;
    return doubleOf(widen((Words(a).v[e / 2] >> (16 * (e % 2))) & 0xffffu, p.stype));
}

// value returns what goes to element e of dst's line l, before scaling. l is in the tile.
double value(uint l, uint e, uint l0, int e0) { return p.turned != 0 ? tile[int(e) - e0][l - l0] : load(l, e); }

// scale returns what becomes of x and, where beta is not 0, y, which goes to element e of line l: x itself where that
// is all.
double scale(double x, double y, uint l, uint e) {
    if (betaOf() != 0) x = alphaOf() * x + betaOf() * y;
    else if (alphaOf() != 1) x = alphaOf() * x;
    return p.store > 3 ? epilogue64(x, l, e) : x;
}

// shortened returns the bits of x as an element of 16 bits, lengthened an element of them.
uint shortened(double x) { return narrow(singleOf(x, true), storeType); }
double lengthened(uint h) { return doubleOf(widen(h, storeType)); }

#define NUMBER double
#define BETA betaOf()
#define SHORTENED shortened
#define LENGTHENED lengthened
#include "pair.glsl"

// single writes element e of line l, of f32 or f64.
void single(uint l, uint e, uint l0, int e0) {
    if (e >= p.len) return;
    double x = value(l, e, l0, e0);
    if (storeType == F64) {
        Doubles line = Doubles(at(uvec2(p.dst), l, 8 * p.ldd));
        double y = 0;
        if (betaOf() != 0) y = line.v[e];
        line.v[e] = scale(x, y, l, e);
        return;
    }
    Words line = Words(at(uvec2(p.dst), l, 4 * p.ldd));
    double y = 0;
    if (betaOf() != 0) y = doubleOf(line.v[e]);
    line.v[e] = singleOf(scale(x, y, l, e), false);
}

#define ONE_A_WORD storeType == F32 || storeType == F64
#include "main.glsl"
