// Computes: s = pattern ⊙ (x·yᵀ), scaled by a number for each entry if asked; x and y row-major; sums in f32, or f64.
// Tile: 128 consecutive entries a workgroup, eight for each eight invocations, one entry after another. An invocation
// has every eighth 16 bytes of the rows.
// Data movement: rows by loads of 16 bytes. Partial sums go through shared memory, from which each invocation adds up
// those of one entry.
// Bound by: gathers of rows of y.

#version 460
#extension GL_GOOGLE_include_directive : require
#ifdef DOUBLE
#define ELEM_T double
#define real double
#else
#define ELEM_T uint
#define real float
#endif
#include "params.glsl"
#include "../include/addr.glsl"
#ifndef DOUBLE
#include "../include/half.glsl"
#include "../include/pair.glsl"
#endif

layout(local_size_x = 128) in;

layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Quad { uvec4 v; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Index { uint v; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Real { real v; };

#ifdef DOUBLE
const uint WIDTH = 2; // elements of 16 bytes
#elif ELEM == F32
const uint WIDTH = 4;
#else
const uint WIDTH = 8;
#endif
const uint LANES = 8;
const uint APART = 129; // partial sums of one entry and the next, in other banks

shared real partial[LANES * APART];

// products returns the sum of the products of the first n elements of 16 bytes.
real products(uvec4 a, uvec4 b, uint n) {
#ifdef DOUBLE
    real sum = packDouble2x32(a.xy) * packDouble2x32(b.xy);
    if (n > 1) sum += packDouble2x32(a.zw) * packDouble2x32(b.zw);
    return sum;
#elif ELEM == F32
    vec4 x = uintBitsToFloat(a), y = uintBitsToFloat(b);
    real sum = x.x * y.x;
    if (n > 1) sum += x.y * y.y;
    if (n > 2) sum += x.z * y.z;
    if (n > 3) sum += x.w * y.w;
    return sum;
#else
    real sum = 0;
    for (uint i = 0; i < 4; i++) {
        vec2 x = pair(a[i]), y = pair(b[i]);
        if (n > 2 * i) sum += x.x * y.x;
        if (n > 2 * i + 1) sum += x.y * y.y;
    }
    return sum;
#endif
}

// entrySum returns the invocation's partial sum of the entry.
real entrySum(uint entry, uint part) {
    uvec2 x = at(uvec2(p.x), Index(at(uvec2(p.rows), entry, 4)).v, p.ldx * (16 / WIDTH));
    uvec2 y = at(uvec2(p.y), Index(at(uvec2(p.cols), entry, 4)).v, p.ldy * (16 / WIDTH));
    real sum = 0;
    for (uint k = part; k * WIDTH < p.k; k += LANES)
        sum += products(Quad(at(x, k, 16)).v, Quad(at(y, k, 16)).v, min(WIDTH, p.k - k * WIDTH));
    return sum;
}

void main() {
    uint me = gl_LocalInvocationIndex, part = me % LANES;
    uint first = (gl_WorkGroupID.x + gl_WorkGroupID.z * p.width) * 128;
    for (uint e = 0; e < LANES; e++) {
        uint entry = first + me - part + e;
        if (entry < p.entries) partial[e * APART + me] = entrySum(entry, part);
    }
    barrier();
    uint entry = first + me;
    if (entry >= p.entries) return;
    real sum = 0;
    for (uint i = 0; i < LANES; i++) sum += partial[part * APART + me - part + i];
    const uint size = 16 / WIDTH < 4 ? 4 : 16 / WIDTH;
    if (p.scaled != 0) sum *= Real(at(uvec2(p.scale), entry, size)).v;
    Real(at(uvec2(p.s), entry, size)).v = sum;
}
