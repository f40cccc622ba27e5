// Computes: rows of a dense matrix copied to or from the places that a list names (rowcopy.go).
// Tile: 16 bytes an invocation.
// Data movement: straight through registers, neighbours side by side.
// Bound by: memory bandwidth.

#version 460
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "../include/addr.glsl"

layout(local_size_x = 256) in;

layout(buffer_reference, std430, buffer_reference_align = 4) buffer Word { uint v; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Quad { uvec4 v; };

// quad returns the address of 16 bytes of a row.
uvec2 quad(uvec2 matrix, uint row, uint q) { return at(at(matrix, row, 16 * p.quads), q, 16); }

void main() {
    uint t = (gl_WorkGroupID.x + gl_WorkGroupID.z * p.width) * 256 + gl_LocalInvocationIndex;
    if (t >= p.items) return;
    uint row = t / p.quads, q = t - row * p.quads;
    uint from = row, to = row;
    if (p.place == 1) from = Word(at(uvec2(p.index), row, 4)).v;
    if (p.place == 2) to = Word(at(uvec2(p.index), row, 4)).v;
    Quad(quad(uvec2(p.dst), to + p.dstrow, q)).v = Quad(quad(uvec2(p.src), from + p.srcrow, q)).v;
}
