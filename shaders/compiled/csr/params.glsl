// Generated from the kernel's table. Do not edit.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_rowptr { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_colidx { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_values { ELEM_T v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_heavy { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_b { ELEM_T v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_bias { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Arg_c { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Arg_part { float v[]; };
layout(push_constant, std430) uniform Push {
    Arg_rowptr rowptr;
    Arg_colidx colidx;
    Arg_values values;
    Arg_heavy heavy;
    Arg_b b;
    Arg_bias bias;
    Arg_c c;
    Arg_part part;
    uint phase;
    uint m;
    uint n;
    uint ldb;
    uint ldc;
    uint ldp;
    uint pieces;
    uint items;
    uint width;
    uint per;
    uint longest;
    uint across;
    uint along;
    uint store;
    float alpha;
    float beta;
#ifdef DOUBLE
    uint alpha_low;
    uint alpha_high;
    uint beta_low;
    uint beta_high;
#endif
} p;
