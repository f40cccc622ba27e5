// Computes: new values of a prepared A as residues or digits in planes of bytes (package rfx of formats: Planes), after
// phase 0 of kernel.comp found the rows' ranges.
// Tile: an entry an invocation.
// Data movement: straight through registers, a byte to each plane. An invocation finds its row by bisection.
// Bound by: memory bandwidth: a sector is written for each byte.

#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_8bit_storage : require
#include "params.glsl"
#include "../include/addr.glsl"
#include "../include/half.glsl"
#include "../include/fixed.glsl"
#include "../include/residues.glsl"

layout(local_size_x = 128) in;

layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Line { int8_t v[]; };

#define ROWS 256 // of a plane there are a multiple of this
#define DEPTH 128 // columns of a block
#define SLICE 32 // columns that lie side by side

uint word(uvec2 a, uint i) { return Words(at(a, i, 4)).v[0]; }

// load returns the f32 bits of entry e.
uint load(uint e) {
    if (p.elem == F32) return word(uvec2(p.values), e);
    return widen((word(uvec2(p.values), e / 2) >> (16 * (e % 2))) & 0xffffu, p.elem);
}

// row_of returns the row of entry e.
uint row_of(uint e) {
    uint lo = 0, hi = p.count; // the row is in [lo, hi)
    while (hi - lo > 1) {
        uint mid = lo + (hi - lo) / 2;
        if (word(uvec2(p.rows), 2 * mid) <= e) lo = mid;
        else hi = mid;
    }
    return lo;
}

// digit returns number `i` of the balanced digits of 8 bits of q, which has 47 bits at most.
int digit(uvec2 q, uint i) {
    uint carry;
    uvec2 d = uvec2(uaddCarry(q.x, 0x80808080u, carry), 0);
    d.y = q.y + 0x8080u + carry;
    return int(((i < 4 ? d.x >> (8 * i) : d.y >> (8 * i - 32)) & 255u) ^ 128u) << 24 >> 24;
}

// weight returns number `i` of the digits' weights of a modulus.
int weight(uvec2 w, uint i) { return int((i < 4 ? w.x >> (8 * i) : w.y >> (8 * i - 32)) << 24) >> 24; }

void main() {
    uint e = (gl_WorkGroupID.x + gl_WorkGroupID.z * p.width) * p.per + gl_LocalInvocationIndex;
    if (e >= p.n) return;
    uint row = row_of(e), lines = (p.count + ROWS - 1) / ROWS * ROWS, col = word(uvec2(p.rows), p.columns + e);
    uvec2 q = quantise(load(e), unit(word(uvec2(p.rows), 2 * row + 1), p.bits));
    uint line = col / SLICE * lines + row;
    for (uint i = 0; i < p.planes; i++) {
        int x = 0;
        if (p.weights == 0) {
            x = digit(q, i);
        } else {
            uint m = MODULI[i], w = p.weights + 2 * i;
            uvec2 weights = uvec2(word(uvec2(p.rows), w), word(uvec2(p.rows), w + 1));
            [[unroll]] for (uint d = 0; d < 6; d++)
                x += digit(q, d) * weight(weights, d);
            // At most 6·2^14 are added or subtracted.
            x = int(modulo(uint(x + int(multiple(m, 1 << 17) + m / 2)), m, reciprocal(m))) - int(m / 2);
        }
        Line(at(uvec2(p.ints), i * p.blocks * (DEPTH / SLICE) * lines + line, SLICE)).v[col % SLICE] = int8_t(x);
    }
}
