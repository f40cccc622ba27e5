// Computes: B (cols × n) in RFX-p's fixed point as residues, or as digits, q (quantise.go), from the ranges of parts of
// its columns that phase 0 of kernel.comp found.
// Tile: a workgroup has 16 columns of 128 rows of B, an invocation 16 rows of a column.
// Data movement: elements go through registers. The invocations of a column are neighbours, so that they store whole
// sectors of each modulus.
// Bound by: integer arithmetic.

#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "params.glsl"
#include "../include/addr.glsl"
#include "../include/half.glsl"
#include "../include/fixed.glsl"
#include "../include/residues.glsl"

#define DEPTH 128 // rows of B in a block
#define CHUNKS 8 // of 16 rows of a block; two are a slice, in which a column's bytes lie side by side
#define COLS 16

layout(local_size_x = 128) in;
layout(constant_id = 0) const uint WIDE = 0; // 1: p = 47, integers take two words

layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Words4 { uvec4 v[]; };

shared uint found[CHUNKS][COLS];

#define HIGH 16 // rows of an invocation

// load reads words with element j of HIGH rows from k on, of the last one for rows past that. No load waits for another.
void load(out uint x[HIGH], uint k, uint j, uint bytes) {
    j = min(j, p.n - 1);
    [[unroll]] for (uint i = 0; i < HIGH; i++)
        x[i] = Words(at(uvec2(p.b), min(k + i, p.k - 1), bytes * p.ldb)).v[j * bytes / 4];
}

// balanced returns 2^n modulo m in [-m/2, m/2], n at most 32.
int balanced(uint n, uint m) {
    uint power = 65536 % m;
    if (n == 32) power = power * power % m;
    return int(power) - (power > m / 2 ? int(m) : 0);
}

// residue returns that of q in [-128, 127]. Of q's parts of 16 bits all but the lowest are multiplied by residues, so
// that the sum is less than 2^24.
uint residue(uvec2 q, uint m) {
    int x = int(q.x & 0xffffu);
    if (WIDE != 0) x += int(q.x >> 16) * balanced(16, m) + int(q.y) * balanced(32, m);
    else x += (int(q.x) >> 16) * balanced(16, m);
    return modulo(uint(x + int(multiple(m, 1 << 24) + m / 2)), m, reciprocal(m)) - m / 2;
}

// digit returns number `i` of the balanced digits of 8 bits of q. Adding a half to each byte, and taking it away again,
// makes balanced digits of a number's bytes.
uint digit(uvec2 q, uint i) {
    uint carry, lo = uaddCarry(q.x, 0x80808080u, carry), word = i < 4 ? lo : q.y + 0x8080u + carry;
    return word >> (8 * (i % 4)) & 255u ^ 128u;
}

void main() {
    uint chunk = gl_LocalInvocationIndex % CHUNKS, column = gl_LocalInvocationIndex / CHUNKS;
    uint j = gl_WorkGroupID.y * COLS + column, block = gl_WorkGroupID.x, blocks = (p.k + DEPTH - 1) / DEPTH;
    bool inside = j < p.ldq;
    uint r = 0;
    if (inside)
        for (uint c = chunk; c < p.chunks; c += CHUNKS) r = join(r, Words(at(uvec2(p.q), c + 1, 4 * p.ldq)).v[j]);
    found[chunk][column] = r;
    barrier();
    for (uint c = 0; c < CHUNKS; c++) r = join(r, found[c][column]);
    if (!inside) return;
    if (block == 0 && chunk == 0) Words(uvec2(p.q)).v[j] = r;
    if (block >= blocks) return;
    int l = unit(r, p.bits);
    uint x[HIGH], k = block * DEPTH + chunk * HIGH;
    load(x, k, j, p.elem == F32 ? 4 : 2);
    uvec2 q[HIGH];
    [[unroll]] for (uint i = 0; i < HIGH; i++) {
        if (p.elem != F32) x[i] = widen(x[i] >> (16 * (j % 2)) & 0xffffu, p.elem);
        q[i] = quantise(k + i < p.k && j < p.n ? x[i] : 0, l);
    }
    uvec2 rows = at(uvec2(p.q), p.chunks + 1, 4 * p.ldq);
    uint planes = p.across == 0 ? (p.bits + 1) / 8 : p.across;
    [[unroll]] for (uint m = 0; m < MOST_MODULI; m++) {
        if (m >= planes) break;
        uvec4 w = uvec4(0);
        [[unroll]] for (uint i = 0; i < HIGH; i++) {
            uint y;
            if (p.across == 0) y = digit(q[i], m);
            else y = residue(q[i], MODULI[m]);
            w[i / 4] |= (y & 255u) << (8 * (i % 4));
        }
        Words4(at(rows, ((m * blocks + block) * (CHUNKS / 2) + chunk / 2) * p.ldq + j, 32)).v[chunk % 2] = w;
    }
}
