// Generated from the kernel's table. Do not edit.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_rows { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_ints { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_values { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_b { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_q { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_bias { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Arg_c { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Arg_part { uint v[]; };
layout(push_constant, std430) uniform Push {
    Arg_rows rows;
    Arg_ints ints;
    Arg_values values;
    Arg_b b;
    Arg_q q;
    Arg_bias bias;
    Arg_c c;
    Arg_part part;
    uint n;
    uint ldb;
    uint ldc;
    uint ldq;
    uint first;
    uint heavy;
    uint columns;
    uint pieces;
    uint items;
    uint width;
    uint per;
    uint longest;
    uint shape;
    uint store;
    uint alpha;
    uint beta;
} p;
