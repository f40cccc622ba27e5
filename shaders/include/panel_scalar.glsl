// Panels × dense on scalar units. A kernel's own file defines locate and rowOf.
//
// Tile: a workgroup computes a panel (V × 4·LOCAL), an invocation (V × 4). If C has fewer columns, invocations with the
// same outputs divide the panel's columns (slices), and their partial sums are added in order at the end.
// Data movement: values and column numbers of STAGE columns go through shared memory. Rows of B come straight from
// memory.
// Bound by: FMA if C has many columns, else gathers of rows of B.
//
// ELEM is the type of A and B.

layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
layout(constant_id = 2) const uint STAGE = 64; // columns

const uint LOCAL = gl_WorkGroupSize.x;

shared vec4 values[STAGE * V / 4];
shared uint cols[STAGE];
shared vec4 sums[LOCAL];

#include "quad.glsl"

// loadStage copies columns s to s + m - 1 of the panel to shared memory.
void loadStage(Panel a, uint s, uint m) {
    uvec2 from = at(a.values, s, V * ELEM_BYTES);
    for (uint i = gl_LocalInvocationIndex; i < m * V / 4; i += LOCAL) values[i] = quad(from, i);
    for (uint i = gl_LocalInvocationIndex; i < m; i += LOCAL) cols[i] = Words(a.cols).v[s + i];
}

void main() {
    if (p.phase == 1) {
        addParts(gl_WorkGroupSize.x);
        return;
    }
    Panel a;
    uint base, width = 1;
    if (!locate(4 * LOCAL, a, base)) return;
    while (width < LOCAL && 4 * width < p.n - base) width *= 2;
    uint slices = LOCAL / width;
    uint slice = gl_LocalInvocationIndex / width, lane = gl_LocalInvocationIndex % width;
    uint j = base + 4 * lane;
    uint from = min(j, p.ldb - 4) / 4; // columns past the last are never stored

    vec4 acc[V];
    [[unroll]] for (uint r = 0; r < V; r++)
        acc[r] = vec4(0);
    for (uint s = 0; s < a.count; s += STAGE) {
        uint m = min(STAGE, a.count - s);
        barrier();
        loadStage(a, s, m);
        barrier();
        for (uint q = slice; q < m; q += slices) {
            vec4 x = quad(rowOfB(cols[q]), from);
            [[unroll]] for (uint r = 0; r < V; r += 4) {
                vec4 w = values[(q * V + r) / 4];
                acc[r] += w.x * x;
                acc[r + 1] += w.y * x;
                acc[r + 2] += w.z * x;
                acc[r + 3] += w.w * x;
            }
        }
    }
    [[unroll]] for (uint r = 0; r < V; r++) {
        if (slices > 1) {
            barrier();
            sums[gl_LocalInvocationIndex] = acc[r];
            barrier();
            if (slice == 0)
                for (uint i = 1; i < slices; i++) acc[r] += sums[i * width + lane];
        }
        if (slice == 0) keep(a, r, j, acc[r]);
    }
}
