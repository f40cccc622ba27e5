// out[x, y, z] = x | y<<10 | z<<20 for every invocation inside nx × ny × nz.
#version 460
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
layout(local_size_x = 4, local_size_y = 2, local_size_z = 2) in;
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Words { uint v[]; };
layout(push_constant, std430) uniform Push { Words dst; uint nx, ny, nz; } p;
void main() {
    uvec3 g = gl_GlobalInvocationID;
    if (g.x < p.nx && g.y < p.ny && g.z < p.nz)
        p.dst.v[(g.z * p.ny + g.y) * p.nx + g.x] = g.x | g.y << 10 | g.z << 20;
}
