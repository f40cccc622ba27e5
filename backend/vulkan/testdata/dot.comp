// dst[i] = a · b, the dot product of four signed bytes of each, for i < n.
#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_integer_dot_product : require
layout(local_size_x = 64) in;
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Words { int v[]; };
layout(push_constant, std430) uniform Push { Words dst; uint n; int a, b; } p;
void main() {
    for (uint i = gl_GlobalInvocationID.x; i < p.n; i += gl_NumWorkGroups.x * 64) p.dst.v[i] = dotPacked4x8EXT(p.a, p.b);
}
