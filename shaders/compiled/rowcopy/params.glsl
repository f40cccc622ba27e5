// Generated from the kernel's table. Do not edit.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_index { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_src { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Arg_dst { uint v[]; };
layout(push_constant, std430) uniform Push {
    Arg_index index;
    Arg_src src;
    Arg_dst dst;
    uint items;
    uint quads;
    uint srcrow;
    uint dstrow;
    uint place;
    uint width;
} p;
