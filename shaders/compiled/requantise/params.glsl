// Generated from the kernel's table. Do not edit.
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference2 : require
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_values { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Arg_slots { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Arg_rows { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Arg_ints { uint v[]; };
layout(push_constant, std430) uniform Push {
    Arg_values values;
    Arg_slots slots;
    Arg_rows rows;
    Arg_ints ints;
    uint phase;
    uint count;
    uint n;
    uint elem;
    uint bits;
    uint tile;
    uint fours;
    uint lanes;
    uint per;
    uint width;
} p;
