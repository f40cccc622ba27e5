// Generated from the kernel's table. Do not edit.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_values { ELEM_T v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_places { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_mask { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_rest { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_b { ELEM_T v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_bias { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Arg_c { float v[]; };
layout(push_constant, std430) uniform Push {
    Arg_values values;
    Arg_places places;
    Arg_mask mask;
    Arg_rest rest;
    Arg_b b;
    Arg_bias bias;
    Arg_c c;
    uint blocks;
    uint rows;
    uint n;
    uint ldb;
    uint ldc;
    uint store;
    float alpha;
    float beta;
    uint cols;
    uint width;
    uint groups;
    uint keep;
    uint every;
    uint wide;
    uint tall;
    uint panels;
} p;
