// Writing C in f16, for kernels that have storeFloats. Needs operands.glsl.

layout(buffer_reference, std430, buffer_reference_align = 8) buffer HalfQuads { uvec2 v[]; };
layout(buffer_reference, std430, buffer_reference_align = 2) buffer Halves { uint16_t v[]; };

// storeHalves is storeFloats for a C in f16.
void storeHalves(uint row, uint j, vec4 x) {
    uvec2 c = at(uvec2(p.c), row, p.ldc * 2);
    bool whole = j + 4 <= p.n && (p.ldc & 3u) == 0;
    x *= p.alpha;
    if (p.beta != 0) {
        uvec4 old = uvec4(0);
        if (whole) {
            uvec2 w = HalfQuads(c).v[j >> 2];
            old = uvec4(w.x & 0xffffu, w.x >> 16, w.y & 0xffffu, w.y >> 16);
        } else {
            for (uint i = 0; i < min(4, p.n - j); i++) old[i] = uint(Halves(c).v[j + i]);
        }
        for (uint i = 0; i < 4; i++) x[i] += p.beta * uintBitsToFloat(widen_f16(old[i]));
    }
    if (p.store > 3) x = epilogue4(row, j, x);
    uvec4 h;
    for (uint i = 0; i < 4; i++) h[i] = narrow_f16(floatBitsToUint(x[i]));
    if (whole) HalfQuads(c).v[j >> 2] = uvec2(h.x | h.y << 16, h.z | h.w << 16);
    else
        for (uint i = 0; i < min(4, p.n - j); i++) Halves(c).v[j + i] = uint16_t(h[i]);
}
