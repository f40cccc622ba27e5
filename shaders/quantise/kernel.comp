// Computes: B (cols × n) in RFX-p's fixed point, q (quantise.go). Phase 0 finds ranges of parts of columns, phases 1
// and 2 join them and quantise.
// Tile: a workgroup has a tile of rows and columns of B.
// Data movement: straight through registers; ranges of a tile meet in shared memory.
// Bound by: memory bandwidth.

#version 460
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "../include/addr.glsl"
#include "../include/half.glsl"
#include "../include/fixed.glsl"

layout(local_size_x = 128) in;

layout(buffer_reference, std430, buffer_reference_align = 4) buffer Words { uint v[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) buffer Pairs { uvec2 v[]; };

shared uvec2 found[gl_WorkGroupSize.x];
shared uint found8[8][gl_WorkGroupSize.x]; // in phase 2

// load returns the f32 bits of row k's elements j and j+1, zeros for those past the last column. j is even.
uvec2 load(uint k, uint j) {
    uvec2 x;
    if (p.elem == F32) {
        x = Pairs(at(uvec2(p.b), k, 4 * p.ldb)).v[j / 2];
    } else {
        uint w = Words(at(uvec2(p.b), k, 2 * p.ldb)).v[j / 2];
        x = uvec2(widen(w & 0xffffu, p.elem), widen(w >> 16, p.elem));
    }
    return uvec2(j < p.n ? x.x : 0u, j + 1 < p.n ? x.y : 0u);
}

uvec2 join2(uvec2 r, uvec2 s) { return uvec2(join(r.x, s.x), join(r.y, s.y)); }

// gather joins the ranges that the lanes of two columns found, for all of them.
uvec2 gather(uvec2 r, uint lane) {
    found[gl_LocalInvocationIndex] = r;
    barrier();
    r = found[lane];
    for (uint i = lane + p.across; i < gl_WorkGroupSize.x; i += p.across) r = join2(r, found[i]);
    return r;
}

// store writes row k's elements j and j+1.
void store(uvec2 row, uint j, uvec2 x, ivec2 l) {
    uvec2 a = quantise(x.x, l.x), b = quantise(x.y, l.y);
    if (p.bits == 15) {
        Words(row).v[j / 2] = (a.x & 0xffffu) | (b.x << 16);
    } else if (p.bits != 47) {
        Pairs(row).v[j / 2] = uvec2(a.x, b.x);
    } else {
        ivec2 da = digits(a), db = digits(b);
        Pairs(row).v[j / 2] = uvec2(da.x, db.x);
        Pairs(row).v[(p.ldq + j) / 2] = uvec2(da.y, db.y);
    }
}

// bytes8 returns the digits of one place of four integers side by side, cut being integers whose bytes are digits.
uint bytes8(uvec4 cut, uint place) {
    uvec4 b = cut >> (8 * place) & 0xffu;
    return b.x | b.y << 8 | b.z << 16 | b.w << 24;
}

// to_digits is phase 2: a lane has eight columns.
void to_digits() {
    uint lane = gl_LocalInvocationIndex % p.across, sub = gl_LocalInvocationIndex / p.across;
    uint subs = gl_WorkGroupSize.x / p.across;
    uint j = 8 * (gl_WorkGroupID.y * p.across + lane); // the first of the lane's columns
    uint begin = gl_WorkGroupID.x * p.rows, end = min(begin + p.rows, p.k);
    bool in_ = j < p.ldq;
    uint r[8];
    for (uint t = 0; t < 8; t++) r[t] = 0u;
    if (in_)
        for (uint c = sub; c < p.chunks; c += subs)
            for (uint t = 0; t < 8; t++) r[t] = join(r[t], Words(at(uvec2(p.q), c + 1, 4 * p.ldq)).v[j + t]);
    for (uint t = 0; t < 8; t++) found8[t][gl_LocalInvocationIndex] = r[t];
    barrier();
    for (uint i = lane; i < gl_WorkGroupSize.x; i += p.across)
        for (uint t = 0; t < 8; t++) r[t] = join(r[t], found8[t][i]);
    if (!in_) return;
    if (gl_WorkGroupID.x == 0 && sub == 0)
        for (uint t = 0; t < 8; t++) Words(uvec2(p.q)).v[j + t] = r[t];
    uint places = (p.bits + 1) / 8, pitch = ((places * p.ldq + 31) & ~63u) + 32;
    // Adding a half to each byte but the highest, and taking it away again, makes balanced digits of a number's bytes.
    uint half_ = p.bits == 15 ? 0x80u : p.bits == 23 ? 0x8080u : 0x808080u;
    uvec2 rows = at(uvec2(p.q), p.chunks + 1, 4 * p.ldq);
    for (uint k = begin + sub; k < end; k += subs) {
        uvec4 lo, hi;
        for (uint t = 0; t < 4; t += 2) {
            uvec2 x = load(k, j + t), y = load(k, j + 4 + t);
            lo[t] = (quantise(x.x, unit(r[t], p.bits)).x + half_) ^ half_;
            lo[t + 1] = (quantise(x.y, unit(r[t + 1], p.bits)).x + half_) ^ half_;
            hi[t] = (quantise(y.x, unit(r[4 + t], p.bits)).x + half_) ^ half_;
            hi[t + 1] = (quantise(y.y, unit(r[5 + t], p.bits)).x + half_) ^ half_;
        }
        uvec2 row = at(rows, k, pitch);
        for (uint d = 0; d < places; d++) {
            uint to = d == places - 1 && places == 3 ? 2 * p.ldq + j : d / 2 * 2 * p.ldq + 2 * j + d % 2 * 8;
            Pairs(row).v[to / 8] = uvec2(bytes8(lo, d), bytes8(hi, d));
        }
    }
}

void main() {
    if (p.phase == 2) {
        to_digits();
        return;
    }
    uint lane = gl_LocalInvocationIndex % p.across, sub = gl_LocalInvocationIndex / p.across;
    uint subs = gl_WorkGroupSize.x / p.across;
    uint j = 2 * (gl_WorkGroupID.y * p.across + lane); // the first of the lane's columns
    uint begin = gl_WorkGroupID.x * p.rows, end = min(begin + p.rows, p.k);
    bool in_ = j < p.ldq;
    uvec2 r = uvec2(0);
    if (p.phase == 0) {
        if (in_)
            for (uint k = begin + sub; k < end; k += subs) {
                uvec2 x = load(k, j);
                r = join2(r, uvec2(range_of(x.x), range_of(x.y)));
            }
        r = gather(r, lane);
        if (in_ && sub == 0) Pairs(at(uvec2(p.q), gl_WorkGroupID.x + 1, 4 * p.ldq)).v[j / 2] = r;
        return;
    }
    if (in_)
        for (uint c = sub; c < p.chunks; c += subs) r = join2(r, Pairs(at(uvec2(p.q), c + 1, 4 * p.ldq)).v[j / 2]);
    r = gather(r, lane);
    if (!in_) return;
    if (gl_WorkGroupID.x == 0 && sub == 0) Pairs(uvec2(p.q)).v[j / 2] = r;
    ivec2 l = ivec2(unit(r.x, p.bits), unit(r.y, p.bits));
    uvec2 rows = at(uvec2(p.q), p.chunks + 1, 4 * p.ldq);
    uint bytes = p.bits == 15 ? 2 * p.ldq : p.bits == 47 ? 8 * p.ldq : 4 * p.ldq; // of a row
    for (uint k = begin + sub; k < end; k += subs) store(at(rows, k, bytes), j, load(k, j), l);
}
