// Computes: C (rows × n) = alpha·A·B + beta·C in f64, A (rows × cols) in CSR, B (cols × n) row-major.
// Tile: as kernel.comp. An invocation holds two columns, 16 bytes of a row of B. With ROWS the matrix has no heavy rows
// and no segments.
// Data movement: A's entries and rows of B go straight from memory to registers.
// Bound by: gathers of rows of B, and f64 arithmetic on most consumer GPUs.

#version 460
#extension GL_GOOGLE_include_directive : require
#define ELEM_T double
#define DOUBLE
#include "params.glsl"
#include "../include/addr.glsl"
#include "../include/half.glsl"
#define EPILOGUE
#include "../include/f64.glsl"

layout(local_size_x = 128) in;

// Buffers in units of one load.
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Words4 { uvec4 v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Pairs { dvec2 v[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) buffer Doubles { double v[]; };

shared dvec2 sums[gl_WorkGroupSize.x];

dvec2 acc;

// entries adds the products of a lane group's share of the entries begin to end - 1. Group g takes fours g, g + along,
// g + 2·along, and so on. Fours are counted from a multiple of four, so that column indices are whole vectors. Entries
// of a four that belong to a neighbouring row are replaced by zeros. x is the lane's place in a row of B, in pairs of
// columns.
void entries(uint begin, uint end, uint group, uint along, uint x) {
    Pairs b = Pairs(p.b), values = Pairs(p.values);
    uint ld = p.ldb / 2;
    for (uint k = (begin & ~3u) + 4 * group; k < end; k += 4 * along) {
        uvec4 rows = Words4(p.colidx).v[k / 4] * ld + x;
        dvec2 lo = values.v[k / 2], hi = dvec2(0);
        if (k + 2 < end) hi = values.v[k / 2 + 1]; // there may be no memory past the last entry
        dvec2 q0, q1, q2, q3;
        if (k >= begin && k + 4 <= end) { // no branches between the loads, so that all four are in flight
            q0 = b.v[rows[0]];
            q1 = b.v[rows[1]];
            q2 = b.v[rows[2]];
            q3 = b.v[rows[3]];
        } else {
            q0 = q1 = q2 = q3 = dvec2(0);
            if (k >= begin) q0 = b.v[rows[0]]; // k is before end
            else lo.x = 0;
            if (k + 1 >= begin && k + 1 < end) q1 = b.v[rows[1]];
            else lo.y = 0;
            if (k + 2 >= begin && k + 2 < end) q2 = b.v[rows[2]];
            else hi.x = 0;
            if (k + 3 >= begin && k + 3 < end) q3 = b.v[rows[3]];
            else hi.y = 0;
        }
        acc += lo.x * q0;
        acc += lo.y * q1;
        acc += hi.x * q2;
        acc += hi.y * q3;
    }
}

// slots adds the lane group's share of the partial sums in rows first to last - 1 of the workspace, in the pair x.
void slots(uint first, uint last, uint group, uint x) {
    for (uint i = first + group; i < last; i += p.along) acc += Pairs(at(uvec2(p.part), i, 8 * p.ldp)).v[x];
}

// reduce adds the sums of the item's lane groups; the first group gets the total.
void reduce(uint group, uint along) {
    uint i = gl_LocalInvocationID.x;
    sums[i] = acc;
    for (uint d = along / 2; d > 0; d /= 2) {
        barrier();
        if (group < d) {
            acc += sums[i + d * p.across];
            sums[i] = acc;
        }
    }
}

// finish writes one element of C: alpha·sum + beta·C, with the epilogue.
void finish(uint row, uint col, double sum) {
    if (col >= p.n) return;
    Doubles c = Doubles(at(uvec2(p.c), row, 8 * p.ldc));
    double y = alphaOf() * sum, beta = betaOf();
    if (beta != 0) y += beta * c.v[col];
    c.v[col] = epilogue64(y, row, col);
}

#define FIRST_COLUMN(x) 2 * x
#define SLOTS_FROM x
#define CLEAR acc = dvec2(0)

const uint SEGMENT_WORDS = 4; // of a segment: begin, end, row, and its slot (NO_SLOT: the segment is a whole row)
const uint NO_SLOT = 0xffffffffu;

void main() {
#include "item.glsl"
    if (slot != NO_SLOT) {
        Pairs(at(uvec2(p.part), slot, 8 * p.ldp)).v[x] = acc;
        return;
    }
    if (p.ldc % 2 == 0 && col + 2 <= p.n && p.store <= 3) {
        Pairs c = Pairs(at(uvec2(p.c), row, 8 * p.ldc));
        dvec2 y = alphaOf() * acc;
        if (betaOf() != 0) y += betaOf() * c.v[x];
        c.v[x] = y;
        return;
    }
    finish(row, col, acc.x);
    finish(row, col + 1, acc.y);
}
