// Computes: dst = alpha·src + beta·dst with an epilogue, dense matrices of any 16- or 32-bit type, order and stride.
// Tile: a workgroup copies 1024 words of dst (densecopy.go).
// Data movement: straight through registers; a transposition goes through shared memory.
// Bound by: memory bandwidth.

#version 460
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "../include/addr.glsl"
#include "../include/half.glsl"
#include "../include/epilogue.glsl"

layout(local_size_x = 32, local_size_y = 4) in;

layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words { uint v[]; };

// src's elements of the workgroup's tile where src is transposed: element e of line l is
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
uint value(uint l, uint e, uint l0, int e0) { return p.turned != 0 ? tile[int(e) - e0][l - l0] : load(l, e); }

// scale returns the bits of what becomes of x and, where beta is not 0, y, which goes to element e of line l: x itself
// where that is all.
uint scale(uint x, uint y, uint l, uint e) {
    if (p.beta != 0) x = floatBitsToUint(p.alpha * uintBitsToFloat(x) + p.beta * uintBitsToFloat(y));
    else if (p.alpha != 1) x = floatBitsToUint(p.alpha * uintBitsToFloat(x));
    return p.store > 3 ? floatBitsToUint(epilogue(uintBitsToFloat(x), l, e)) : x;
}

#define NUMBER uint
#define BETA p.beta
#define SHORTENED(x) narrow(x, storeType)
#define LENGTHENED(h) widen(h, storeType)
#include "pair.glsl"

// single writes word w of line l, of 32-bit elements.
void single(uint l, uint w, uint l0, int e0) {
    if (w >= p.len) return;
    Words line = Words(at(uvec2(p.dst), l, 4 * p.ldd));
    line.v[w] = scale(value(l, w, l0, e0), p.beta != 0 ? line.v[w] : 0, l, w);
}

#define ONE_A_WORD storeType == F32
#include "main.glsl"
