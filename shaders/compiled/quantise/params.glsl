// Generated from the kernel's table. Do not edit.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_b { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Arg_q { uint v[]; };
layout(push_constant, std430) uniform Push {
    Arg_b b;
    Arg_q q;
    uint phase;
    uint k;
    uint n;
    uint ldb;
    uint ldq;
    uint elem;
    uint bits;
    uint chunks;
    uint rows;
    uint across;
} p;
