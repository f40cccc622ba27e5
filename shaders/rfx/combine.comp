// Computes: C (rows × n) = alpha·A·B + beta·C reproducibly (RFX-p, p = BITS), from the residues of its sums that
// residues.comp left in `part`, by the Chinese remainder theorem (package rfx of formats, residues.go); with DIGITS = 1
// from sums of products of digits.
// Tile: an invocation has an output.
// Data movement: residues straight from memory to registers. Weights are in shared memory.
// Bound by: integer arithmetic: LIMBS multiply-adds for each residue, and one rounding of 128 bits. All is in words of
// 32 bits, which every device has.

#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
layout(constant_id = 0) const uint BITS = 23;
layout(constant_id = 1) const uint LIMBS = 4;
layout(constant_id = 2) const uint DIGITS = 0;
#include "store.glsl"
#include "../include/residues.glsl"

layout(local_size_x = 128) in;

#define LIMB 20 // bits

// weights are the limbs of each modulus' weight, then those of the product of the moduli, then the reciprocal of that.
shared uint weights[(MOST_MODULI + 1) * LIMBS + 1];

uvec4 extended(int x) { return uvec4(uint(x), uvec3(uint(x >> 31))); }

// word returns that of an output in plane number `i`, which has elements of `bytes`.
uint word(uint i, uint row, uint j, uint bytes) {
    return Words(at(uvec2(p.part), i * p.items + row, bytes * p.ldq)).v[j * bytes / 4];
}

// of_digits returns the sum, given those of products of digits.
uvec4 of_digits(uint row, uint j) {
    uvec4 sum = uvec4(0);
    [[unroll]] for (int d = 2; d >= 0; d--)
        sum = add128(sum << 8 | uvec4(0, sum.xyz) >> 24, extended(int(word(d, row, j, 4))));
    return sum;
}

// of_residues returns the sum, given its residues. Limbs are reduced by a multiple of the product of the moduli, which
// a quotient in f32 tells, as sums are far from half of that product.
uvec4 of_residues(uint row, uint j) {
    uint s[LIMBS];
    [[unroll]] for (uint i = 0; i < LIMBS; i++)
        s[i] = 0;
    for (uint m = 0; m < p.segments; m++) {
        uint r = word(m, row, j, 1) >> (8 * (j % 4)) & 255u;
        [[unroll]] for (uint i = 0; i < LIMBS; i++)
            s[i] += r * weights[m * LIMBS + i];
    }
    uint product = p.segments * LIMBS;
    float top = (float(s[LIMBS - 1]) * (1 << LIMB) + float(s[LIMBS - 2])) * (1 << LIMB) + float(s[LIMBS - 3]);
    uint times = uint(top * uintBitsToFloat(weights[product + LIMBS]) + 0.5);
    uvec4 sum = uvec4(0);
    [[unroll]] for (uint i = LIMBS; i-- > 0;) {
        uint less = times * weights[product + i];
        sum = add128(sum << LIMB | uvec4(0, sum.xyz) >> (32 - LIMB),
                     uvec4(s[i] - less, uvec3(s[i] < less ? 0xffffffffu : 0)));
    }
    return sum;
}

void main() {
    if (DIGITS == 0) {
        uint from = p.heavy + (p.segments + 1) / 2 * 4 + 4; // behind the fractions
        for (uint i = gl_LocalInvocationIndex; i < (p.segments + 1) * LIMBS + 1; i += gl_WorkGroupSize.x)
            weights[i] = p.rows.v[from + i];
        barrier();
    }
    uint i = (gl_WorkGroupID.x + gl_WorkGroupID.z * p.width) * gl_WorkGroupSize.x + gl_LocalInvocationIndex,
         row = i / p.ldq, j = i % p.ldq;
    if (row >= p.items || j >= p.n) return;
    uvec4 sum;
    if (DIGITS != 0) sum = of_digits(row, j);
    else sum = of_residues(row, j);
    store(row, j, sum);
}
