// Computes: new values of 16 or 32 bits, written to their slots of a packed array (values.go explains the map).
// Tile: four words of the array an invocation.
// Data movement: straight through registers: coalesced writes, gathered reads.
// Bound by: memory bandwidth.

#version 460
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "../include/addr.glsl"
#include "../include/half.glsl"

layout(local_size_x = 128) in;

layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words { uint v[]; };

// load returns element i of src as one of dst.
uint load(uint i) {
    if (p.stype == F32) {
        uint x = Words(at(uvec2(p.src), i, 4 * p.stride)).v[0];
        return p.dtype == F32 ? x : narrow(x, p.dtype);
    }
    uvec2 a = at(uvec2(p.src), i, 2 * p.stride);
    uint odd = (a.x >> 1) & 1u;
    a.x &= ~3u;
    uint x = (Words(a).v[0] >> (16 * odd)) & 0xffffu;
    if (p.stype == p.dtype) return x;
    x = widen(x, p.stype);
    return p.dtype == F32 ? x : narrow(x, p.dtype);
}

// put returns a word of dst with entry e, if src holds it, in place of the bits of mask, shift up.
uint put(uint word, uint e, uint mask, uint shift) {
    uint i = e - p.lo;
    if (i >= p.count) return word;
    return (word & ~(mask << shift)) | (load(i) << shift);
}

void main() {
    uint quad = (gl_WorkGroupID.x + gl_WorkGroupID.z * p.width) * 128 + gl_LocalInvocationIndex;
    if (quad >= p.quads) return;
    uint per = p.dtype == F32 ? 1 : 2; // slots of a word
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
    Words words = Words(at(uvec2(p.dst), p.base + quad, 16));
    uint mask = per == 1 ? 0xffffffffu : 0xffffu;
    for (uint k = 0; k < 4; k++) {
        bool any = (held & (per == 1 ? 1u : 3u)) != 0;
        uint word = any && p.full == 0 ? words.v[k] : 0;
        for (uint h = 0; h < per; h++, held >>= 1) {
            if ((held & 1u) == 0) continue;
            uint e = p.slots > 0 ? next : Words(at(uvec2(p.sources), next, 4)).v[0];
            word = put(word, e, mask, 16 * h);
            next++;
        }
        if (any) words.v[k] = word;
    }
}
