// Computes: new values of a prepared A in RFX-p's fixed point (requantise.go). Phase 0 finds the rows' ranges, phase 1
// writes the integers.
// Tile: phase 0 some invocations for each row, phase 1 four entries an invocation.
// Data movement: straight through registers. Phase 1 finds an entry's row by bisection.
// Bound by: memory bandwidth.

#version 460
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "../include/addr.glsl"
#include "../include/half.glsl"
#include "../include/fixed.glsl"

layout(local_size_x = 128) in;

layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words { uint v[]; };

shared uint found[gl_WorkGroupSize.x];

uint word(uvec2 a, uint i) { return Words(at(a, i, 4)).v[0]; }

// load returns the f32 bits of entry e.
uint load(uint e) {
    if (p.elem == F32) return word(uvec2(p.values), e);
    return widen((word(uvec2(p.values), e / 2) >> (16 * (e % 2))) & 0xffffu, p.elem);
}

// first returns a row's first entry, row_of the row of entry e.
uint first(uint row) { return word(uvec2(p.rows), 2 * row); }

uint row_of(uint e) {
    uint lo = 0, hi = p.count; // the row is in [lo, hi)
    while (hi - lo > 1) {
        uint mid = lo + (hi - lo) / 2;
        if (first(mid) <= e) lo = mid;
        else hi = mid;
    }
    return lo;
}

void ranges(uint number) {
    uint lane = gl_LocalInvocationIndex & (p.lanes - 1), row = number * p.per + gl_LocalInvocationIndex / p.lanes,
         r = 0;
    if (row < p.count)
        for (uint e = first(row) + lane; e < first(row + 1); e += p.lanes) r = join(r, range_of(load(e)));
    found[gl_LocalInvocationIndex] = r;
    for (uint s = p.lanes / 2; s > 0; s /= 2) {
        barrier();
        if (lane < s)
            found[gl_LocalInvocationIndex] = join(found[gl_LocalInvocationIndex], found[gl_LocalInvocationIndex + s]);
    }
    if (lane == 0 && row < p.count) Words(at(uvec2(p.rows), row, 8)).v[1] = found[gl_LocalInvocationIndex];
}

void main() {
    uint number = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width;
    if (p.phase == 0) {
        ranges(number);
        return;
    }
    uint four = number * p.per + gl_LocalInvocationIndex;
    if (four >= p.fours) return;
    uvec2 q[4];
    uint row = 0, end = 0; // the row of the entries before end
    for (uint k = 0; k < 4; k++) {
        q[k] = uvec2(0);
        uint e = p.tile > 0 ? word(uvec2(p.slots), 4 * four + k) - 1 : 4 * four + k;
        if (e >= p.n) continue;
        if (e >= end || e < first(row)) {
            row = row_of(e);
            end = first(row + 1);
        }
        q[k] = quantise(load(e), unit(word(uvec2(p.rows), 2 * row + 1), p.bits));
    }
    if (p.tile > 0) { // digits of 8 bits: see package rfx
        uint bytes = (p.bits + 1) / 8, lower = 0x808080u >> (8 * (4 - bytes));
        Words to = Words(at(uvec2(p.ints), four / p.tile * bytes * p.tile + four % p.tile, 4));
        for (uint j = 0; j < bytes; j++) {
            uint digits = 0;
            for (uint k = 0; k < 4; k++) digits |= ((((q[k].x + lower) ^ lower) >> (8 * j)) & 0xffu) << (8 * k);
            to.v[j * p.tile] = digits;
        }
        return;
    }
    if (p.bits == 15) {
        Words to = Words(at(uvec2(p.ints), four, 8));
        to.v[0] = (q[0].x & 0xffffu) | (q[1].x << 16);
        to.v[1] = (q[2].x & 0xffffu) | (q[3].x << 16);
    } else if (p.bits != 47) {
        Words to = Words(at(uvec2(p.ints), four, 16));
        for (uint k = 0; k < 4; k++) to.v[k] = q[k].x;
    } else {
        Words to = Words(at(uvec2(p.ints), four, 32));
        for (uint k = 0; k < 4; k++) {
            ivec2 d = digits(q[k]);
            to.v[2 * k] = uint(d.x);
            to.v[2 * k + 1] = uint(d.y);
        }
    }
}
