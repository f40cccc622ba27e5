// Generated from the kernel's table. Do not edit.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_src { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_bias { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Arg_dst { uint v[]; };
layout(push_constant, std430) uniform Push {
    Arg_src src;
    Arg_bias bias;
    Arg_dst dst;
    uint lines;
    uint len;
    uint first;
    uint lds;
    uint ldd;
    uint stype;
    uint store;
    uint turned;
    uint shift;
    uint tiles;
    uint width;
    float alpha;
    float beta;
#ifdef DOUBLE
    uint alpha_low;
    uint alpha_high;
    uint beta_low;
    uint beta_high;
#endif
} p;
