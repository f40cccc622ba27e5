// Generated from the kernel's table. Do not edit.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_work { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_colind { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_values { ELEM_T v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_mask { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_b { ELEM_T v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_bias { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Arg_c { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Arg_part { float v[]; };
layout(push_constant, std430) uniform Push {
    Arg_work work;
    Arg_colind colind;
    Arg_values values;
    Arg_mask mask;
    Arg_b b;
    Arg_bias bias;
    Arg_c c;
    Arg_part part;
    uint phase;
    uint panels;
    uint start;
    uint places;
    uint rows;
    uint n;
    uint ldb;
    uint ldc;
    uint store;
    float alpha;
    float beta;
    uint cols;
    uint width;
} p;
