// out = the parameter block: eight words as they are, eight floats halved.
#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
layout(local_size_x = 1) in;
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Words { uint v[]; };
layout(push_constant, std430) uniform Push { Words dst; uint u[8]; float f[8]; } p;
void main() {
    for (uint i = 0; i < 8; i++) {
        p.dst.v[i] = p.u[i];
        p.dst.v[8 + i] = floatBitsToUint(p.f[i] * 0.5);
    }
}
