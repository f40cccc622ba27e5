// dst[i] = src[(i + rot) mod n] * mul + add: order and visibility between launches show in the result.
#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
layout(local_size_x = 64) in;
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Words { uint v[]; };
layout(push_constant, std430) uniform Push { Words src; Words dst; uint n, rot, mul, add; } p;
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < p.n) p.dst.v[i] = p.src.v[(i + p.rot) % p.n] * p.mul + p.add;
}
