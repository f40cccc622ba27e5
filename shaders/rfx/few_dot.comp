// Computes: C (rows × n) = alpha·A·B + beta·C reproducibly in fixed point (RFX-p, p = BITS) for few columns, A dense,
// in digits of 8 bits (few.go), by packed dot products.
// Tile: a workgroup computes (16 × 8). Its 8 teams take slices of 32 of k by turns, and add their sums in shared memory.
// An invocation has four columns of a row.
// Data movement: operands go straight from memory to registers; the invocations of a team read the same columns of B at
// the same time. In memory the bytes of a slice's rows, and of its columns of B, follow each other.
// Bound by: at p = 15 the bytes of A and of B in the first-level cache; from 23 on not known.
// Constants: BITS (p).

#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "store.glsl"
#include "../include/dots.glsl"

#define ROWS 16
#define COLS 8 // what leading dimensions of q are a multiple of
#define QUADS (COLS / 4)
#define TEAMS 8
#define TILE (ROWS * COLS)
#define LOCAL (ROWS * QUADS * TEAMS)

layout(local_size_x = LOCAL) in;

#define S ((BITS + 1) / 8) // digits
#define DIAGS (2 * S - 1) // sums of places
#define DEPTH 128 // k of a block; a plane has whole ones
#define SLICE 32

shared ivec4 mem[LOCAL]; // of each team, sums of a place

// total adds up a place's sums of all teams, for output gl_LocalInvocationIndex of the tile.
int total(ivec4 sums) {
    barrier();
    mem[gl_LocalInvocationIndex] = sums;
    barrier();
    uint t = gl_LocalInvocationIndex % TILE;
    int sum = 0;
    [[unroll]] for (uint i = 0; i < TEAMS; i++) sum += mem[(i * TILE + t) / 4][t % 4];
    return sum;
}

uvec4 extended(int x) { return uvec4(uint(x), uvec3(uint(x >> 31))); }

void main() {
    uint wide = p.ldq / COLS, item = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width;
    uint row = item / wide * ROWS, col = item % wide * COLS;
    if (row >= p.items) return;
    uint t = gl_LocalInvocationIndex, slices = p.per * (DEPTH / SLICE);
    uint i = row + t / QUADS % ROWS, j = col + t % QUADS * 4;
    Words4 a[S], b[S]; // each digit's plane
    [[unroll]] for (uint d = 0; d < S; d++) {
        a[d] = Words4(at(uvec2(p.ints), d * slices * p.longest, SLICE));
        b[d] = Words4(at(at(uvec2(p.q), p.first, 4), d * slices * p.ldq, SLICE));
    }
    ivec4 sums[DIAGS];
    [[unroll]] for (uint d = 0; d < DIAGS; d++) sums[d] = ivec4(0);
    for (uint s = t / (TILE / 4); s < slices; s += TEAMS) {
        [[dont_unroll]] for (uint h = 0; h < 2; h++) {
            uvec4 x[S];
            [[unroll]] for (uint d = 0; d < S; d++) x[d] = a[d].v[(s * p.longest + i) * 2 + h];
            [[unroll]] for (uint f = 0; f < S; f++)
                [[unroll]] for (uint e = 0; e < 4; e++) {
                    uvec4 y = b[f].v[(s * p.ldq + j + e) * 2 + h];
                    [[unroll]] for (uint d = 0; d < S; d++) sums[d + f][e] = dots(sums[d + f][e], x[d], y);
                }
        }
    }
    uvec4 sum = uvec4(0);
    [[unroll]] for (int d = DIAGS - 1; d >= 0; d--)
        sum = add128(sum << 8 | uvec4(0, sum.xyz) >> 24, extended(total(sums[d])));
    i = row + t / COLS, j = col + t % COLS;
    if (t < TILE && i < p.items && j < p.n) store(i, j, sum);
}
