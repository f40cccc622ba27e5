// dst[i] = i, n times multiplied and added to: a launch may take as long as is wanted.
#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
layout(local_size_x = 64) in;
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Words { uint v[]; };
layout(push_constant, std430) uniform Push { Words dst; uint n; } p;
void main() {
    uint x = gl_LocalInvocationID.x;
    for (uint i = 0; i < p.n; i++) x = x * 1664525u + 1013904223u;
    p.dst.v[gl_LocalInvocationID.x] = x;
}
