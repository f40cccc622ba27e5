// Generated from the kernel's table. Do not edit.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_src { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_groups { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_sources { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Arg_dst { uint v[]; };
layout(push_constant, std430) uniform Push {
    Arg_src src;
    Arg_groups groups;
    Arg_sources sources;
    Arg_dst dst;
    uint quads;
    uint base;
    uint slots;
    uint first;
    uint lo;
    uint count;
    uint stride;
    uint stype;
    uint dtype;
    uint full;
    uint width;
    uint listed;
    uint run;
#ifdef DOUBLE
    uint alpha_low;
    uint alpha_high;
    uint beta_low;
    uint beta_high;
#endif
} p;
