// Computes: C = alpha·(Pairs + Remainder)·B + beta·C, f32, f16 or bf16 on scalar units.
// Tile: an invocation computes (1 × 4).
// Data movement: an invocation reads the entries of its row one by one, and rows of B straight from memory.
// Bound by: gathers of rows of B.
// Constants: ELEM.

#version 460
#extension GL_GOOGLE_include_directive : require

layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
layout(constant_id = 1) const uint LANES = 16; // invocations of a row

#include "../nm/nm.glsl"

void main() {
    uint t = gl_LocalInvocationIndex, block = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width;
    uint row = block * (gl_WorkGroupSize.x / LANES) + t / LANES, j = (gl_WorkGroupID.y * LANES + t % LANES) * 4;
    if (block >= p.blocks || row >= p.rows || j >= p.n) return;
    vec4 acc = vec4(0);
    Panel a = panelOf(row);
    for (uint word = 0; word < (a.count + 31) / 32; word++)
        for (uint bits = Words(a.mask).v[word]; bits != 0; bits &= bits - 1) {
            uint slot = word * 32 + findLSB(bits);
            acc += element(a.values, a.skip + slot) * quad(rowOfB(columnOf(a, slot)), j / 4);
        }
    Words remainder = Words(uvec2(p.remainder));
    uint last = remainder.v[row / 16 + 2], cols = p.panels + 2, mask = cols + remainder.v[p.panels + 1],
         first = remainder.v[0] * 16;
    for (uint q = remainder.v[row / 16 + 1]; q < last; q++)
        if ((remainder.v[mask + q / 2] >> (q % 2 * 16 + row % 16) & 1u) != 0)
            acc += element(at(uvec2(p.values), first + q, 16 * ELEM_BYTES), row % 16) *
                   quad(rowOfB(remainder.v[cols + q]), j / 4);
    storeFloats(row, j, acc);
}
