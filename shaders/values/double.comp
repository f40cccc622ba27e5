// Computes: new values of f64, or of any type for an array of f64, written to their slots of a packed array
// (values.go).
// Tile: four words of the array an invocation.
// Data movement: straight through registers: coalesced writes, gathered reads.
// Bound by: memory bandwidth.

#version 460
#extension GL_GOOGLE_include_directive : require
#define DOUBLE
#include "params.glsl"
#include "../include/addr.glsl"
#include "../include/half.glsl"
#include "../include/f64.glsl"

layout(local_size_x = 128) in;

layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words { uint v[]; };

// load returns element i of src as one of dst; f64 takes both words.
uvec2 load(uint i) {
    if (p.stype == F64) {
        Words w = Words(at(uvec2(p.src), i, 8 * p.stride));
        uvec2 x = uvec2(w.v[0], w.v[1]);
        if (p.dtype == F64) return x;
        if (p.dtype == F32) return uvec2(singleOf(packDouble2x32(x), false), 0);
        return uvec2(narrow(singleOf(packDouble2x32(x), true), p.dtype), 0);
    }
    if (p.stype == F32) return unpackDouble2x32(doubleOf(Words(at(uvec2(p.src), i, 4 * p.stride)).v[0]));
    uvec2 a = at(uvec2(p.src), i, 2 * p.stride);
    uint odd = (a.x >> 1) & 1u;
    a.x &= ~3u;
    return unpackDouble2x32(doubleOf(widen((Words(a).v[0] >> (16 * odd)) & 0xffffu, p.stype)));
}

void main() {
    uint quad = (gl_WorkGroupID.x + gl_WorkGroupID.z * p.width) * 128 + gl_LocalInvocationIndex;
    if (quad >= p.quads) return;
    uint per = p.dtype == F32 || p.dtype == F64 ? 1 : 2; // slots of a word
    uint slot = 4 * per * quad, all = (1u << (4 * per)) - 1u;
    uint held = all, next; // which slots hold entries, and the number of the first: of the entry, or in sources
    if (p.slots > 0) {
        if (p.slots - slot < 4 * per) held = (1u << (p.slots - slot)) - 1u;
        next = p.first + slot;
    } else {
        Words group = Words(at(uvec2(p.groups), slot / 32, 8));
        uint bits = group.v[0], at32 = slot % 32;
        held = (bits >> at32) & all;
        next = group.v[1] + bitCount(bits & ((1u << at32) - 1u));
    }
    if (held == 0) return;
    Words words = Words(at(uvec2(p.dst), p.base + quad, p.dtype == F64 ? 32 : 16));
    for (uint k = 0; k < 4; k++) {
        bool any = (held & (per == 1 ? 1u : 3u)) != 0, brought = false;
        uint word = any && per == 2 && p.full == 0 ? words.v[k] : 0;
        for (uint h = 0; h < per; h++, held >>= 1) {
            if ((held & 1u) == 0) continue;
            uint i = (p.slots > 0 ? next : Words(at(uvec2(p.sources), next, 4)).v[0]) - p.lo;
            next++;
            if (i >= p.count) continue;
            uvec2 x = load(i);
            brought = true;
            if (p.dtype == F64) {
                words.v[2 * k] = x.x;
                words.v[2 * k + 1] = x.y;
            } else word = per == 1 ? x.x : (word & ~(0xffffu << (16 * h))) | (x.x << (16 * h));
        }
        if (brought && p.dtype != F64) words.v[k] = word;
    }
}
