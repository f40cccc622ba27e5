// Generated from the kernel's table. Do not edit.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_src { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Arg_dst { uint v[]; };
layout(push_constant, std430) uniform Push {
    Arg_src src;
    Arg_dst dst;
    uint lines;
    uint len;
    uint lds;
    uint ldd;
    uint stype;
    uint dtype;
    uint turned;
    uint shift;
    uint tiles;
    uint width;
    float alpha;
    float beta;
} p;
