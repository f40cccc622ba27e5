// Computes: C (rows × n) = alpha·A·B + beta·C reproducibly (RFX-p, p = BITS), from the residues of its sums that
// residues.comp left in `part`, by the Chinese remainder theorem (package rfx of formats, residues.go); with DIGITS = 1
// from sums of products of digits.
// Tile: an invocation has four neighbouring outputs of a row.
// Data movement: residues straight from memory to registers. Weights are in shared memory.
// Bound by: integer arithmetic: LIMBS multiply-adds for each residue, and one rounding, of 64 bits where sums fit. All is
// in words of 32 bits, which every device has.

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

const bool SHORT = BITS <= 23; // sums of fewer than 2^16 products fit 64 bits

// weights are the limbs of each modulus' weight, then those of the product of the moduli, then the reciprocal of that.
shared uint weights[(MOST_MODULI + 1) * LIMBS + 1];

uvec4 extended(int x) { return uvec4(uint(x), uvec3(uint(x >> 31))); }

uvec2 add64(uvec2 a, uvec2 b) {
    uint carry, lo = uaddCarry(a.x, b.x, carry);
    return uvec2(lo, a.y + b.y + carry);
}

// horner returns sum·2^bits + x for an x of 33 bits and its sign, in as many words as sums need.
uvec4 horner(uvec4 sum, const uint bits, uint x, uint sign) {
    if (SHORT) return uvec4(add64(uvec2(sum.x << bits, sum.y << bits | sum.x >> (32 - bits)), uvec2(x, sign)), 0, 0);
    return add128(sum << bits | uvec4(0, sum.xyz) >> (32 - bits), uvec4(x, uvec3(sign)));
}

// round64 is round128 of a number of 64 bits.
uint round64(uvec2 a, int scale) {
    uint sign = a.y & 0x80000000u;
    uvec2 x = a;
    if (sign != 0u) x = uvec2(-a.x, ~a.y + (a.x == 0u ? 1u : 0u));
    if ((x.x | x.y) == 0u) return 0u;
    int n = x.y != 0u ? 31 - findMSB(x.y) : 63 - findMSB(x.x); // leading zeros
    int last = 40 - n + scale; // the exponent of the result's last bit
    if (last < -149) return round128(uvec4(a, uvec2(sign != 0u ? 0xffffffffu : 0u)), scale);
    if (n >= 32) x = uvec2(0, x.x);
    n &= 31;
    uint top = n == 0 ? x.y : (x.y << n) | (x.x >> (32 - n)), m = top >> 8;
    uint below = (top << 24) | ((x.x << n) != 0u ? 1u : 0u);
    if (below > 0x80000000u || (below == 0x80000000u && (m & 1u) != 0u)) m++;
    return sign | (last > 104 ? 0x7f800000u : min((uint(last + 149) << 23) + m, 0x7f800000u));
}

// rounded returns the sum in units of 2^scale as an f32.
uint rounded(uvec4 sum, int scale) {
    if (SHORT) return round64(sum.xy, scale);
    return round128(sum, scale);
}

// ofDigits returns the sum, given those of products of digits.
uvec4 ofDigits(int low, int middle, int high) {
    uvec4 sum = extended(high);
    sum = horner(sum, 8, uint(middle), uint(middle >> 31));
    return horner(sum, 8, uint(low), uint(low >> 31));
}

// ofLimbs returns the sum, given its limbs modulo the product of the moduli. They are reduced by a multiple of that,
// which a quotient in f32 tells, as sums are far from half of the product.
uvec4 ofLimbs(uint s[LIMBS]) {
    uint product = p.segments * LIMBS;
    float top = (float(s[LIMBS - 1]) * (1 << LIMB) + float(s[LIMBS - 2])) * (1 << LIMB) + float(s[LIMBS - 3]);
    uint times = uint(top * uintBitsToFloat(weights[product + LIMBS]) + 0.5);
    uvec4 sum = uvec4(0);
    [[unroll]] for (uint i = LIMBS; i-- > 0;) {
        uint less = times * weights[product + i];
        sum = horner(sum, LIMB, s[i] - less, s[i] < less ? 0xffffffffu : 0);
    }
    return sum;
}

// sumsOf returns four sums, from column j on.
void sumsOf(out uvec4 sums[4], uint row, uint j) {
    if (DIGITS != 0) {
        uvec4 v[3];
        [[unroll]] for (uint d = 0; d < 3; d++)
            v[d] = Words4(at(uvec2(p.part), d * p.items + row, 4 * p.ldq)).v[j / 4];
        [[unroll]] for (uint e = 0; e < 4; e++)
            sums[e] = ofDigits(int(v[0][e]), int(v[1][e]), int(v[2][e]));
        return;
    }
    uint s[4][LIMBS];
    [[unroll]] for (uint e = 0; e < 4; e++)
        [[unroll]] for (uint i = 0; i < LIMBS; i++) s[e][i] = 0;
    for (uint m = 0; m < p.segments; m++) {
        uint r = Words(at(uvec2(p.part), m * p.items + row, p.ldq)).v[j / 4];
        [[unroll]] for (uint i = 0; i < LIMBS; i++) {
            uint w = weights[m * LIMBS + i];
            [[unroll]] for (uint e = 0; e < 4; e++)
                s[e][i] += (r >> (8 * e) & 255u) * w;
        }
    }
    [[unroll]] for (uint e = 0; e < 4; e++) sums[e] = ofLimbs(s[e]);
}

void main() {
    if (DIGITS == 0) {
        uint from = p.heavy + (p.segments + 1) / 2 * 4 + 4; // behind the fractions
        for (uint i = gl_LocalInvocationIndex; i < (p.segments + 1) * LIMBS + 1; i += gl_WorkGroupSize.x)
            weights[i] = p.rows.v[from + i];
        barrier();
    }
    uint i = (gl_WorkGroupID.x + gl_WorkGroupID.z * p.width) * gl_WorkGroupSize.x + gl_LocalInvocationIndex,
         row = i / (p.ldq / 4), j = i % (p.ldq / 4) * 4;
    if (row >= p.items || j >= p.n) return;
    uvec4 sums[4], y, rb = Words4(uvec2(p.q)).v[j / 4];
    sumsOf(sums, row, j);
    uint ra = p.rows.v[2 * row + 1];
    int unitOfRow = unit(ra, BITS);
    [[unroll]] for (uint e = 0; e < 4; e++) y[e] = rounded(sums[e], unitOfRow + unit(rb[e], BITS));
    if (p.store == 0 && ((ra | rb.x | rb.y | rb.z | rb.w) & WILD) == 0 && p.ldc % 4 == 0 && j + 4 <= p.n) {
        Out4(at(uvec2(p.c), row, 4 * p.ldc)).v[j / 4] = y;
        return;
    }
    for (uint e = 0; e < 4 && j + e < p.n; e++) storeRounded(row, j + e, y[e], ra, rb[e]);
}
