// Copies a dense matrix of f64 from or to one of any type. See densecopy.go for how work is shared out.

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

// src's elements of the workgroup's tile where src is turned: element e of line l is
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
double value(uint l, uint e, uint l0, int e0) {
    return p.turned != 0 ? tile[int(e) - e0][l - l0] : load(l, e);
}

// scale returns what becomes of x and, where beta is not 0, y, which goes to element e of line l: x itself where that is all.
double scale(double x, double y, uint l, uint e) {
    if (betaOf() != 0) x = alphaOf() * x + betaOf() * y;
    else if (alphaOf() != 1) x = alphaOf() * x;
    return p.store > 3 ? epilogue64(x, l, e) : x;
}

// shortened returns the bits of x as an element of 16 bits, lengthened an element of them.
uint shortened(double x) { return narrow(singleOf(x, true), storeType); }
double lengthened(uint h) { return doubleOf(widen(h, storeType)); }

// pair writes word w of line l, of 16-bit elements.
void pair(uint l, uint w, uint l0, int e0) {
    uvec2 a = at(uvec2(p.dst), l, 2 * p.ldd);
    int e = int(2 * w) - int((a.x >> 1) & 1u); // the word's first element, in line l
    a.x &= ~3u;
    bool tight = p.ldd == p.len;
    if (e < 0 && tight && l > 0) return; // the previous line's
    int len = int(p.len);
    bool lo = e >= 0 && e < len, hi = e + 1 < len;
    bool wraps = e + 1 == len && tight && l + 1 < p.lines; // its second element starts the next line
    if (!lo && !hi) return;
    double x0 = 0, x1 = 0;
    if (lo) x0 = value(l, e, l0, e0);
    if (hi) x1 = value(l, e + 1, l0, e0);
    if (wraps) x1 = p.turned != 0 ? load(0, l + 1) : load(l + 1, 0);
    hi = hi || wraps;
    uint old = betaOf() != 0 || !lo || !hi ? Words(a).v[w] : 0;
    uint y0 = old & 0xffffu, y1 = old >> 16;
    if (lo) y0 = shortened(scale(x0, lengthened(y0), l, e));
    if (hi) y1 = shortened(scale(x1, lengthened(y1), wraps ? l + 1 : l, wraps ? 0 : e + 1));
    Words(a).v[w] = y0 | (y1 << 16);
}

// one writes element e of line l, of f32 or f64.
void one(uint l, uint e, uint l0, int e0) {
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

void main() {
    uvec2 me = gl_LocalInvocationID.xy;
    uint number = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width;
    uint per = storeType == F32 || storeType == F64 ? 1 : 2; // elements of a word
    uint l0 = number / p.tiles * (1024u >> p.shift), w0 = number % p.tiles << p.shift;
    int e0 = int(w0 * per) - int(per - 1); // a word of 16-bit elements may start at the one before
    if (p.turned != 0) {
        uint l = l0 + me.x;
        for (uint t = me.y; t < 32 * per + per - 1; t += 4) {
            uint e = uint(e0 + int(t));
            if (l < p.lines && e < p.len) tile[t][me.x] = load(e, l);
        }
        barrier();
    }
    for (uint t = gl_LocalInvocationIndex; t < 1024; t += 128) {
        uint l = l0 + (t >> p.shift), w = w0 + (t & ((1u << p.shift) - 1u));
        if (l >= p.lines) return;
        if (per == 1) one(l, w, l0, e0);
        else pair(l, w, l0, e0);
    }
}
