// Copies a dense matrix. See densecopy.go for how work is shared out.

#version 460
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "../include/addr.glsl"
#include "../include/half.glsl"
#include "../include/epilogue.glsl"

layout(local_size_x = 32, local_size_y = 4) in;

layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words { uint v[]; };

// src's elements of the workgroup's tile where src is turned: element e of line l is
// tile[e - e0][l - l0].
shared uint tile[65][33];

// load returns element e of src's line l, as f32 bits.
uint load(uint l, uint e) {
    if (p.stype == F32) return Words(at(uvec2(p.src), l, 4 * p.lds)).v[p.first + e];
    uvec2 a = at(uvec2(p.src), l, 2 * p.lds);
    e += p.first + ((a.x >> 1) & 1u); // lines may start inside a word
    a.x &= ~3u;
    return widen((Words(a).v[e / 2] >> (16 * (e % 2))) & 0xffffu, p.stype);
}

// value returns what goes to element e of dst's line l, before scaling. l is in the tile.
uint value(uint l, uint e, uint l0, int e0) {
    return p.turned != 0 ? tile[int(e) - e0][l - l0] : load(l, e);
}

// scale returns the bits of what becomes of x and, where beta is not 0, y, which goes to element e of line l: x itself where
// that is all.
uint scale(uint x, uint y, uint l, uint e) {
    if (p.beta != 0) x = floatBitsToUint(p.alpha * uintBitsToFloat(x) + p.beta * uintBitsToFloat(y));
    else if (p.alpha != 1) x = floatBitsToUint(p.alpha * uintBitsToFloat(x));
    return p.store > 3 ? floatBitsToUint(epilogue(uintBitsToFloat(x), l, e)) : x;
}

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
    uint x0 = 0, x1 = 0;
    if (lo) x0 = value(l, e, l0, e0);
    if (hi) x1 = value(l, e + 1, l0, e0);
    if (wraps) x1 = p.turned != 0 ? load(0, l + 1) : load(l + 1, 0);
    hi = hi || wraps;
    uint old = p.beta != 0 || !lo || !hi ? Words(a).v[w] : 0;
    uint y0 = old & 0xffffu, y1 = old >> 16;
    if (lo) y0 = narrow(scale(x0, widen(y0, storeType), l, e), storeType);
    if (hi) y1 = narrow(scale(x1, widen(y1, storeType), wraps ? l + 1 : l, wraps ? 0 : e + 1), storeType);
    Words(a).v[w] = y0 | (y1 << 16);
}

// single writes word w of line l, of 32-bit elements.
void single(uint l, uint w, uint l0, int e0) {
    if (w >= p.len) return;
    Words line = Words(at(uvec2(p.dst), l, 4 * p.ldd));
    line.v[w] = scale(value(l, w, l0, e0), p.beta != 0 ? line.v[w] : 0, l, w);
}

void main() {
    uvec2 me = gl_LocalInvocationID.xy;
    uint number = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width;
    uint per = storeType == F32 ? 1 : 2; // elements of a word
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
        if (per == 1) single(l, w, l0, e0);
        else pair(l, w, l0, e0);
    }
}
