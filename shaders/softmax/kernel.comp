// Computes: the softmax of each row of a sparse matrix's values, in place (softmax.go), in f32, or f64 with DOUBLE.
// Tile: p.lanes invocations a row: eight, or all of the workgroup.
// Data movement: the row is read three times, which the caches hold, and written twice. Maxima and sums meet in shared
// memory.
// Bound by: memory bandwidth.

#version 460
#extension GL_GOOGLE_include_directive : require
#include "params.glsl"
#include "../include/addr.glsl"

layout(local_size_x = 128) in;

#ifdef DOUBLE
#define real double
const uint SIZE = 8;
#else
#define real float
const uint SIZE = 4;
#endif

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Word { uint v; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Real { real v; };

shared real meet[128];

#define number(i) Real(at(uvec2(p.s), i, SIZE)).v

// nan tells whether x is NaN, by its bits, because a compiler may assume that numbers are finite.
bool nan(real x) {
#ifdef DOUBLE
    uvec2 w = unpackDouble2x32(x);
    return (w.y & 0x7fffffffu) > 0x7ff00000u || (w.y & 0x7fffffffu) == 0x7ff00000u && w.x != 0u;
#else
    return (floatBitsToUint(x) & 0x7fffffffu) > 0x7f800000u;
#endif
}

// exp_of returns exp(t) for t <= 0, as 2^n·exp(r) with |r| ≤ ln(2)/2, and 0 far below.
real exp_of(real t) {
    if (nan(t)) return t;
#ifdef DOUBLE
    if (t <= -700) return 0;
    int n = int(floor(float(t) * 1.44269504 + 0.5)); // one off at most
    double r = t - double(n) * 0.693145751953125LF - double(n) * 1.4286068203094172e-06LF;
    double y = 1.0LF / 6227020800.0LF;
    y = y * r + 1.0LF / 479001600.0LF;
    y = y * r + 1.0LF / 39916800.0LF;
    y = y * r + 1.0LF / 3628800.0LF;
    y = y * r + 1.0LF / 362880.0LF;
    y = y * r + 1.0LF / 40320.0LF;
    y = y * r + 1.0LF / 5040.0LF;
    y = y * r + 1.0LF / 720.0LF;
    y = y * r + 1.0LF / 120.0LF;
    y = y * r + 1.0LF / 24.0LF;
    y = y * r + 1.0LF / 6.0LF;
    y = y * r + 0.5LF;
    y = y * r + 1.0LF;
    y = y * r + 1.0LF;
    return y * packDouble2x32(uvec2(0u, uint(n + 1023) << 20));
#else
    if (t <= -87) return 0;
    float n = floor(t * 1.44269504 + 0.5);
    float r = t - n * 0.693359375 + n * 0.000212194440;
    float y = 1.0 / 5040.0;
    y = y * r + 1.0 / 720.0;
    y = y * r + 1.0 / 120.0;
    y = y * r + 1.0 / 24.0;
    y = y * r + 1.0 / 6.0;
    y = y * r + 0.5;
    y = y * r + 1.0;
    y = y * r + 1.0;
    return y * uintBitsToFloat(uint(int(n) + 127) << 23);
#endif
}

void main() {
    uint me = gl_LocalInvocationIndex, lane = me & (p.lanes - 1);
    uint item = (gl_WorkGroupID.x + gl_WorkGroupID.z * p.width) * (128 / p.lanes) + me / p.lanes, begin = 0, end = 0;
    if (item < p.items) {
        begin = Word(at(uvec2(p.spans), p.first + item, 8)).v;
        end = Word(at(at(uvec2(p.spans), p.first + item, 8), 1, 4)).v;
    }
#ifdef DOUBLE
    real most = packDouble2x32(uvec2(0u, 0xfff00000u)), sum = 0;
#else
    real most = uintBitsToFloat(0xff800000u), sum = 0;
#endif
    for (uint i = begin + lane; i < end; i += p.lanes) most = max(most, number(i));
    meet[me] = most;
    for (uint d = p.lanes / 2; d > 0; d /= 2) {
        barrier();
        if (lane < d) meet[me] = max(meet[me], meet[me + d]);
    }
    barrier();
    most = meet[me - lane];
    for (uint i = begin + lane; i < end; i += p.lanes) {
        real y = exp_of(number(i) - most);
        number(i) = y;
        sum += y;
    }
    barrier();
    meet[me] = sum;
    for (uint d = p.lanes / 2; d > 0; d /= 2) {
        barrier();
        if (lane < d) meet[me] += meet[me + d];
    }
    barrier();
    sum = meet[me - lane];
    for (uint i = begin + lane; i < end; i += p.lanes) number(i) = number(i) / sum;
}
