// Generated from the kernel's table. Do not edit.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_work { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_columns { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_sizes { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_packed { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_b { ELEM_T v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_bias { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Arg_c { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Arg_part { float v[]; };
layout(push_constant, std430) uniform Push {
    Arg_work work;
    Arg_columns columns;
    Arg_sizes sizes;
    Arg_packed packed;
    Arg_b b;
    Arg_bias bias;
    Arg_c c;
    Arg_part part;
    uint phase;
    uint items;
    uint parts;
    uint longest;
    uint rows;
    uint n;
    uint ldb;
    uint ldc;
    uint ldp;
    uint store;
    uint width;
    uint fours;
    uint twos;
    uint places;
    float alpha;
    float beta;
#ifdef DOUBLE
    uint alpha_low;
    uint alpha_high;
    uint beta_low;
    uint beta_high;
#endif
} p;
