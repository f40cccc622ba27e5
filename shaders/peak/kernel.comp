// Computes: nothing of use: it measures what a Vulkan device attains without matrix units (peak.go). KIND: 1 copy, 2
// read, 3 fma, 5 fma in f64.
// Tile: p.rounds rounds for each invocation.
// Data movement: KIND 1 and 2 through memory or cache; the others stay in registers.
// Bound by: the unit that KIND names.

#version 450
#extension GL_EXT_control_flow_attributes : require
#extension GL_GOOGLE_include_directive : require
#define ELEM_T uvec4
#if KIND == 5
#define DOUBLE
#endif
#include "params.glsl"
layout(local_size_x = 256) in;

void main() {
    uint id = gl_GlobalInvocationID.x, all = gl_NumWorkGroups.x * 256u;
#if KIND == 1
    for (uint r = 0; r < p.rounds; r++) p.dst.v[r * all + id] = p.src.v[r * all + id];
#elif KIND == 2
    uvec4 s = uvec4(0);
    uint at = id;
    for (uint r = 0; r < p.rounds; r++) {
        s ^= p.src.v[at & (p.span - 1u)];
        at += all + 256u;
    }
    p.dst.v[id] = s;
#elif KIND == 5
    uvec4 w = p.src.v[0];
    double x = packDouble2x32(w.xy), y = packDouble2x32(w.zw);
    double a[8];
    for (int i = 0; i < 8; i++) a[i] = double(id + i);
    for (uint r = 0; r < p.rounds; r++) {
        [[unroll]] for (int i = 0; i < 32; i++)
            a[i & 7] = fma(a[i & 7], x, y);
    }
    double s = 0;
    for (int i = 0; i < 8; i++) s += a[i];
    p.dst.v[id] = uvec4(unpackDouble2x32(s), 0, 0);
#else
    float x = uintBitsToFloat(p.src.v[0].x), y = uintBitsToFloat(p.src.v[0].y);
    float a[8];
    for (int i = 0; i < 8; i++) a[i] = float(id + i);
    for (uint r = 0; r < p.rounds; r++) {
        [[unroll]] for (int i = 0; i < 32; i++)
            a[i & 7] = fma(a[i & 7], x, y);
    }
    float s = 0;
    for (int i = 0; i < 8; i++) s += a[i];
    p.dst.v[id] = uvec4(floatBitsToUint(s));
#endif
}
