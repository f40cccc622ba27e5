// Computes: s = pattern ⊙ (x·yᵀ) reproducibly in fixed point (RFX-p), scaled by a number for each entry if asked; x and
// y row-major (sddmmrfx.go). Phases 0 and 1 find the ranges of the rows of x and y, and make integers of them if asked.
// Tile: eight invocations a row in phases 0 and 1, an entry in phase 2.
// Data movement: elements or integers straight to registers; sums meet in shared memory.
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

// integers returns the address of the integers of a row of x, or of y after those of x.
uvec2 integers(uint row) { return at(at(uvec2(p.ranges), p.planes, 4), row, p.ldq * 4); }

// dot64 returns the products of two rows of integers that are an invocation's, added up.
uvec4 dot64(uvec2 x, uvec2 y, uint part) {
    uvec2 sum = uvec2(0);
    for (uint k = part; k < p.k; k += LANES) {
        int hi, lo;
        uint carry;
        imulExtended(int(word(x, k)), int(word(y, k)), hi, lo);
        sum.x = uaddCarry(sum.x, uint(lo), carry);
        sum.y += uint(hi) + carry;
    }
    return uvec4(sum, uvec2(int(sum.y) >> 31));
}

// write_row writes the range of a row, which its invocations have found, and its integers if asked.
void write_row(uint me, uint part, uint item) {
    uint range = 0, row = item + (p.phase == 0 ? 0 : p.base);
    for (uint d = 0; d < LANES; d++) range = join(range, found[me - part + d]);
    if (part == 0) Word(at(uvec2(p.ranges), row, 4)).v = range;
    if (p.planes == 0) return;
    uvec2 from = p.phase == 0 ? line(uvec2(p.x), item, p.ldx) : line(uvec2(p.y), item, p.ldy), to = integers(row);
    int l = unit(range, p.bits);
    for (uint k = part; k < p.k; k += LANES) Word(at(to, k, 4)).v = quantise(element(from, k), l).x;
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
        if (p.planes != 0 && !wild) sum = dot64(integers(i), integers(p.base + j), part);
        else for (uint k = part; k < p.k; k += LANES) {
            uint a = element(x, k), b = element(y, k);
            sum = add128(sum, product128(quantise(a, lx), quantise(b, ly)));
            if (wild) bits |= product_class(a, b);
        }
    }
    found[me] = bits;
    sums[me] = sum;
    barrier();
    if (!inside) return;
    if (p.phase != 2) {
        write_row(me, part, item);
        return;
    }
    if (part != 0) return;
    for (uint d = 1; d < LANES; d++) {
        bits |= found[me + d];
        sum = add128(sum, sums[me + d]);
    }
    uint result = bits != 0u ? class_value(bits) : round128(sum, l);
    if (p.scaled != 0) result = scale(word(uvec2(p.factors), item), result, 0, 0);
    Word(at(uvec2(p.s), item, 4)).v = result;
}
