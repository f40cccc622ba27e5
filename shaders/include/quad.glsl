// Four neighbouring elements of a row. Needs operands.glsl.

#include "pair.glsl"

vec4 quad(uvec2 row, uint i) {
#if ELEM == F32
    return Quads(row).v[i];
#else
    uvec2 w = Pairs(row).v[i];
    return vec4(pair(w.x), pair(w.y));
#endif
}
