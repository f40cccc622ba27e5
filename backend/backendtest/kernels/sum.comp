// out[i] = sum of (k+1)*in_k[i] over seven inputs: eight arguments, no parameters.
#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
layout(local_size_x = 64) in;
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer In { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Words { uint v[]; };
layout(push_constant, std430) uniform Push { In a, b, c, d, e, f, g; Words dst; } p;
void main() {
    uint i = gl_GlobalInvocationID.x;
    p.dst.v[i] = p.a.v[i] + 2u * p.b.v[i] + 3u * p.c.v[i] + 4u * p.d.v[i]
               + 5u * p.e.v[i] + 6u * p.f.v[i] + 7u * p.g.v[i];
}
