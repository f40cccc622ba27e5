// Generated from the kernel's table. Do not edit.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_src { ELEM_T v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Arg_dst { ELEM_T v[]; };
layout(push_constant, std430) uniform Push {
    Arg_src src;
    Arg_dst dst;
    uint rounds;
    uint span;
#ifdef DOUBLE
    uint alpha_low;
    uint alpha_high;
    uint beta_low;
    uint beta_high;
#endif
} p;
