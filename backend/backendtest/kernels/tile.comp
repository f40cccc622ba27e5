// out = in reversed within each group of 64, through shared memory, plus the constant ADD.
#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
layout(local_size_x = 64) in;
layout(constant_id = 3) const uint ADD = 0;
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Words { uint v[]; };
layout(push_constant, std430) uniform Push { Words src; Words dst; } p;
shared uint tile[64];
void main() {
    uint i = gl_GlobalInvocationID.x, t = gl_LocalInvocationID.x;
    tile[t] = p.src.v[i];
    barrier();
    p.dst.v[i] = tile[63 - t] + ADD;
}
