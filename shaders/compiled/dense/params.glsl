// Generated from the kernel's table. Do not edit.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_a { ELEM_T v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_stored { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_b { ELEM_T v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_bias { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Arg_c { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Arg_work { float v[]; };
layout(push_constant, std430) uniform Push {
    Arg_a a;
    Arg_stored stored;
    Arg_b b;
    Arg_bias bias;
    Arg_c c;
    Arg_work work;
    uint rows;
    uint n;
    uint cols;
    uint lda;
    uint ldb;
    uint ldc;
    uint order;
    uint store;
    float alpha;
    float beta;
    uint width;
    uint across;
    uint words;
    uint whole;
    uint splits;
} p;
