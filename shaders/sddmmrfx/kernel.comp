// Computes: s = pattern ⊙ (x·yᵀ) reproducibly in fixed point (RFX-p), scaled by a number for each entry if asked; x and
// y row-major (sddmmrfx.go). Phases 0 and 1 find the ranges of the rows of x and y.
// Tile: eight invocations a row in phases 0 and 1, an entry in phase 2.
// Data movement: elements straight to registers, where they become integers; sums meet in shared memory.
// Bound by: integer arithmetic.

#version 460
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "../include/addr.glsl"
#include "../include/half.glsl"
#include "../include/fixed.glsl"

layout(local_size_x = 128) in;

layout(buffer_reference, std430, buffer_reference_align = 4) buffer Word { uint v; };

const uint LANES = 8;

shared uint found[128]; // ranges or classes
shared uvec4 sums[128];

uint word(uvec2 a, uint i) { return Word(at(a, i, 4)).v; }

// element returns the f32 bits of element k of a row, which begins at an address.
uint element(uvec2 row, uint k) {
    if (p.elem == F32) return word(row, k);
    return widen((word(row, k / 2) >> (16 * (k % 2))) & 0xffffu, p.elem);
}

// line returns the address of a row of a matrix.
uvec2 line(uvec2 m, uint row, uint ld) { return at(m, row, ld * (p.elem == F32 ? 4 : 2)); }

// product128 returns x·y for numbers of 48 bits.
uvec4 product128(uvec2 x, uvec2 y) {
    bool negative = ((x.y ^ y.y) >> 31) != 0u;
    if ((x.y >> 31) != 0u) x = neg128(uvec4(x, ~0u, ~0u)).xy;
    if ((y.y >> 31) != 0u) y = neg128(uvec4(y, ~0u, ~0u)).xy;
    uint hi, lo;
    umulExtended(x.x, y.x, hi, lo);
    uvec4 m = uvec4(lo, hi, x.y * y.y, 0);
    umulExtended(x.x, y.y, hi, lo);
    m = add128(m, uvec4(0, lo, hi, 0));
    umulExtended(x.y, y.x, hi, lo);
    m = add128(m, uvec4(0, lo, hi, 0));
    return negative ? neg128(m) : m;
}

void main() {
    uint me = gl_LocalInvocationIndex, part = me % LANES;
    uint item = (gl_WorkGroupID.x + gl_WorkGroupID.z * p.width) * (128 / LANES) + me / LANES;
    bool inside = item < p.items;
    uint bits = 0;
    uvec4 sum = uvec4(0);
    int l = 0;
    if (inside && p.phase != 2) {
        uvec2 row = p.phase == 0 ? line(uvec2(p.x), item, p.ldx) : line(uvec2(p.y), item, p.ldy);
        for (uint k = part; k < p.k; k += LANES) bits = join(bits, range_of(element(row, k)));
    } else if (inside) {
        uint i = word(uvec2(p.rows), item), j = word(uvec2(p.cols), item);
        uint rx = word(uvec2(p.ranges), i), ry = word(uvec2(p.ranges), p.base + j);
        uvec2 x = line(uvec2(p.x), i, p.ldx), y = line(uvec2(p.y), j, p.ldy);
        bool wild = ((rx | ry) & WILD) != 0u;
        int lx = unit(rx, p.bits), ly = unit(ry, p.bits);
        l = lx + ly;
        for (uint k = part; k < p.k; k += LANES) {
            uint a = element(x, k), b = element(y, k);
            sum = add128(sum, product128(quantise(a, lx), quantise(b, ly)));
            if (wild) bits |= product_class(a, b);
        }
    }
    found[me] = bits;
    sums[me] = sum;
    barrier();
    if (!inside || part != 0) return;
    for (uint d = 1; d < LANES; d++) {
        bits = p.phase == 2 ? bits | found[me + d] : join(bits, found[me + d]);
        sum = add128(sum, sums[me + d]);
    }
    if (p.phase != 2) {
        Word(at(uvec2(p.ranges), item + (p.phase == 0 ? 0 : p.base), 4)).v = bits;
        return;
    }
    uint result = bits != 0u ? class_value(bits) : round128(sum, l);
    if (p.scaled != 0) result = scale(word(uvec2(p.factors), item), result, 0, 0);
    Word(at(uvec2(p.s), item, 4)).v = result;
}
