// Panels × dense with B staged in shared memory, on cooperative matrices of a known lane layout (lanes.glsl), for
// panels that share most rows of B: panel_staged.cuh for Vulkan. A kernel's own file defines panelIn and rowOf.
//
// Tile: a workgroup of WARPS subgroups computes 2·WARPS panels (8 × 64 each).
// Data movement: B is copied once, WINDOW rows at a time, and every panel gathers from the copy. Staged rows are 160
// bytes apart, so that rows with different numbers mod 4 are in different banks. The encoder orders a panel's vectors
// so that the rows that four lanes of a quad read together differ mod 4 (package panel, windows.go).
// Bound by: shared-memory gathers.
//
// The lists are cut by window: list (panel, w) is vectors work[panel·windows + w] to work[panel·windows + w + 1], a
// multiple of 16; colind has their 16-bit columns within the window, two to a word; values are in the order of
// panel_lanes.glsl.

layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
layout(constant_id = 2) const uint WARPS = 8;
layout(constant_id = 4) const uint SHARED =
    2560; // uvec4 of shared memory: the window, or 8 rows of C for each subgroup

#include "lanes.glsl"

shared uvec4 mem[SHARED];

const uint LOCAL = gl_WorkGroupSize.x;
const uint PITCH = 10; // uvec4 from a staged row to the next
const uint LOADS = (WINDOW * 8 + LOCAL - 1) / LOCAL; // uvec4 of a window that each invocation copies

uint steps; // of all panels together

// A step of a panel: the lane's four columns, 16 bits each, and values.
struct Step {
    uvec2 cols, values;
};

Step stepAt(uint s) {
    if (s >= steps) return Step(uvec2(0), uvec2(0));
    return Step(Pairs(uvec2(p.colind)).v[s * 4 + (gl_SubgroupInvocationID & 3)],
                Pairs(uvec2(p.values)).v[s * 32 + gl_SubgroupInvocationID]);
}

void multiply(inout SUM sums[4], Step s) {
    uint g = gl_SubgroupInvocationID >> 2;
    uvec4 r0 = mem[(s.cols.x & 0xffffu) * PITCH + g], r1 = mem[(s.cols.x >> 16) * PITCH + g];
    uvec4 r2 = mem[(s.cols.y & 0xffffu) * PITCH + g], r3 = mem[(s.cols.y >> 16) * PITCH + g];
    OPERAND_B y = values8(s.values);
    [[unroll]] for (uint i = 0; i < 4; i++)
        sums[i] = coopMatMulAdd(columns16(r0[i], r1[i], r2[i], r3[i]), y, sums[i]);
}

// Work is the work on one panel. (It is no array: drivers keep an array in memory that an inner loop indexes.)
struct Work {
    uint number; // p.panels: there is none
    uint at, stop; // the next step; the end of the next window's list
    Step even, odd; // the next two steps
};

Work workOf(uint stratum, uint windows) {
    Work a;
    uint slot = stratum * gl_NumWorkGroups.x * gl_NumWorkGroups.z + gl_WorkGroupID.x + gl_WorkGroupID.z * p.width;
    a.number = slot < p.panels ? panelIn(slot) : p.panels;
    a.at = p.work.v[a.number * windows] / 16;
    a.stop = p.work.v[a.number * windows + min(1, p.panels - a.number)] / 16;
    uint next = a.at + 1;
    a.even = stepAt((a.at & 1) == 0 ? a.at : next);
    a.odd = stepAt((a.at & 1) == 0 ? next : a.at);
    return a;
}

// list multiplies a panel's list of window w.
void list(inout Work a, inout SUM sums[4], uint w, uint windows) {
    uint end = a.stop;
    if (a.number < p.panels && w + 1 < windows) a.stop = p.work.v[a.number * windows + w + 2] / 16;
    while (a.at < end) {
        if ((a.at & 1) == 0) {
            multiply(sums, a.even);
            a.even = stepAt(a.at + 2);
        } else {
            multiply(sums, a.odd);
            a.odd = stepAt(a.at + 2);
        }
        a.at++;
    }
}

// store writes the sums of a panel to shared memory, row by row of C, and from there to C.
void store(Work w, SUM sums[4], uint base, uint windows) {
    const uint pitch = 17;
    uint lane = gl_SubgroupInvocationID, g = lane >> 2, t = lane & 3, mine = gl_SubgroupID * 8 * pitch;
    [[unroll]] for (uint e = 0; e < 2; e++)
        [[unroll]] for (uint i = 0; i < 2; i++) mem[mine + (2 * t + e) * pitch + 2 * g + i] =
            floatBitsToUint(quadOf(sums[2 * i], sums[2 * i + 1], e));
    subgroupMemoryBarrierShared();
    subgroupBarrier();
    if (w.number < p.panels) {
        Panel a = panelAt(p.work.v[w.number * windows], p.work.v[(w.number + 1) * windows], w.number * V, NO_SLOT);
        for (uint i = lane; i < V * 16; i += 32) {
            uint r = i / 16;
            finish(a, r, base + 4 * (i % 16), uintBitsToFloat(mem[mine + r * pitch + i % 16]));
        }
    }
    subgroupMemoryBarrierShared();
    subgroupBarrier();
}

uvec4 rows[LOADS]; // of the next window

// fetch loads 8 octets of each row of window w, from octet base on, into registers. Rows past B's last are zeros.
void fetch(uint w, uint base) {
    [[unroll]] for (uint i = 0; i < LOADS; i++) {
        uint at = i * LOCAL + gl_LocalInvocationIndex, k = w * WINDOW + at / 8;
        rows[i] = uvec4(0);
        // Columns past the leading dimension are read from its end instead; they are never stored.
        if (at < WINDOW * 8 && k < p.cols) rows[i] = Octets(rowOfB(k)).v[min(base + at % 8, p.ldb / 8 - 1)];
    }
}

void main() {
    uint windows = (p.cols + WINDOW - 1) / WINDOW, base = gl_WorkGroupID.y * 64;
    steps = p.work.v[p.panels * windows] / 16;
    // Panels are sorted by weight, the heaviest first. They are dealt to workgroups in turn, and to subgroups in turn
    // and back again, so that all have about the same work.
    Work a = workOf(gl_SubgroupID, windows), b = workOf(2 * WARPS - 1 - gl_SubgroupID, windows);
    SUM x[4], y[4];
    [[unroll]] for (uint i = 0; i < 4; i++)
        x[i] = SUM(0.0), y[i] = SUM(0.0);
    fetch(0, base / 8);
    for (uint w = 0; w < windows; w++) {
        barrier();
        [[unroll]] for (uint i = 0; i < LOADS; i++) {
            uint at = i * LOCAL + gl_LocalInvocationIndex;
            if (at < WINDOW * 8) mem[at / 8 * PITCH + at % 8] = rows[i];
        }
        barrier();
        if (w + 1 < windows) fetch(w + 1, base / 8);
        list(a, x, w, windows);
        list(b, y, w, windows);
    }
    barrier();
    store(a, x, base, windows);
    store(b, y, base, windows);
}
