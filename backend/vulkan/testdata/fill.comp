// dst[i] = i * mul + add for i < n, each invocation on a stride of the grid's size.
#version 460
#extension GL_EXT_buffer_reference : require
layout(local_size_x = 64) in;
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Words { uint v[]; };
layout(push_constant, std430) uniform Push { Words dst; uint n, mul, add; } p;
void main() {
    for (uint i = gl_GlobalInvocationID.x; i < p.n; i += gl_NumWorkGroups.x * 64) p.dst.v[i] = i * p.mul + p.add;
}
