// Computes: C (rows × n) = alpha·A·B + beta·C, A (rows × cols) in CSR, B (cols × n) row-major, f32, f16 or bf16, sums
// in f32.
// Tile: a row segment × a tile of columns, as kernel.cu. p.across invocations next to each other form a lane group,
// each with VEC columns. The p.along lane groups take the entries in turn, four at a time. With ROWS the matrix has no
// heavy rows and no segments.
// Data movement: A's entries and rows of B go straight from memory to registers. The kernel needs no optional feature
// but buffer addresses: 16-bit elements are read as words.
// Bound by: gathers of rows of B.
// Constants: ELEM (half.glsl), ROWS.

#version 460
#extension GL_GOOGLE_include_directive : require
#define ELEM_T uint
#include "params.glsl"
#include "../include/addr.glsl"
#include "../include/half.glsl"
#include "../include/epilogue.glsl"

layout(local_size_x = 128) in;

#if ELEM == F32
#define VEC 4
#define VALUES uvec4 // four entries
#else
#define VEC 8
#define VALUES uvec2
#endif

// Buffers in units of one load.
layout(buffer_reference, std430, buffer_reference_align = 16) readonly buffer Words4 { uvec4 v[]; };
layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Values { VALUES v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Floats4 { vec4 v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) buffer Floats { float v[]; };

shared float sums[VEC][gl_WorkGroupSize.x];

// halves returns the two elements of a word.
vec2 halves(uint w) {
#if ELEM == BF16
    return vec2(uintBitsToFloat(w << 16), uintBitsToFloat(w & 0xffff0000u));
#else
    return unpackHalf2x16(w);
#endif
}

// four returns the values of four entries.
vec4 four(VALUES v) {
#if ELEM == F32
    return uintBitsToFloat(v);
#else
    return vec4(halves(v.x), halves(v.y));
#endif
}

float acc[VEC];

// accumulate adds v times the elements in q.
void accumulate(float v, uvec4 q) {
    for (int i = 0; i < 4; i++) {
#if ELEM == F32
        acc[i] += v * uintBitsToFloat(q[i]);
#else
        vec2 x = halves(q[i]);
        acc[2 * i] += v * x.x;
        acc[2 * i + 1] += v * x.y;
#endif
    }
}

// entries adds the products of a lane group's share of the entries begin to end - 1. Group g takes fours g, g + along,
// g + 2·along, and so on. Fours are counted from a multiple of four, so that column indices and values are whole
// vectors. Entries of a four that belong to a neighbouring row are replaced by zeros. x is the lane's place in a row of
// B, in vectors.
void entries(uint begin, uint end, uint group, uint along, uint x) {
    Words4 b = Words4(p.b);
    uint ld = p.ldb / VEC;
    for (uint k = (begin & ~3u) + 4 * group; k < end; k += 4 * along) {
        uvec4 rows = Words4(p.colidx).v[k / 4] * ld + x;
        vec4 vals = four(Values(p.values).v[k / 4]);
        uvec4 q[4];
        if (k >= begin && k + 4 <= end) { // no branches between the loads, so that all four are in flight
            for (int i = 0; i < 4; i++) q[i] = b.v[rows[i]];
        } else {
            for (int i = 0; i < 4; i++) {
                bool mine = k + i >= begin && k + i < end;
                q[i] = uvec4(0);
                if (mine) q[i] = b.v[rows[i]];
                else vals[i] = 0;
            }
        }
        for (int i = 0; i < 4; i++) accumulate(vals[i], q[i]);
    }
}

// slots adds the lane group's share of the partial sums in rows first to last - 1 of the workspace, from column col on.
void slots(uint first, uint last, uint group, uint col) {
    for (uint i = first + group; i < last; i += p.along) {
        Floats4 row = Floats4(at(uvec2(p.part), i, 4 * p.ldp));
        for (uint j = 0; j < VEC; j += 4) {
            vec4 x = row.v[(col + j) / 4];
            acc[j] += x.x;
            acc[j + 1] += x.y;
            acc[j + 2] += x.z;
            acc[j + 3] += x.w;
        }
    }
}

// reduce adds the sums of the item's lane groups; the first group gets the total.
void reduce(uint group, uint along) {
    uint i = gl_LocalInvocationID.x;
    for (int j = 0; j < VEC; j++) sums[j][i] = acc[j];
    for (uint d = along / 2; d > 0; d /= 2) {
        barrier();
        if (group < d)
            for (int j = 0; j < VEC; j++) {
                acc[j] += sums[j][i + d * p.across];
                sums[j][i] = acc[j];
            }
    }
}

// finish writes one element of C: alpha·sum + beta·C, with the epilogue.
void finish(uint row, uint col, float sum) {
    if (col >= p.n) return;
    Floats c = Floats(at(uvec2(p.c), row, 4 * p.ldc));
    float y = p.alpha * sum;
    if (p.beta != 0) y += p.beta * c.v[col];
    c.v[col] = epilogue(y, row, col);
}

// store writes alpha·acc + beta·C, with the epilogue, to a row of C from column col on.
void store(uint row, uint col) {
    if (p.store != 0) { // without a loop, because drivers would keep acc in memory for it
        finish(row, col, acc[0]);
        finish(row, col + 1, acc[1]);
        finish(row, col + 2, acc[2]);
        finish(row, col + 3, acc[3]);
#if VEC == 8
        finish(row, col + 4, acc[4]);
        finish(row, col + 5, acc[5]);
        finish(row, col + 6, acc[6]);
        finish(row, col + 7, acc[7]);
#endif
        return;
    }
    uvec2 a = at(uvec2(p.c), row, 4 * p.ldc);
    if (p.ldc % 4 == 0 && col + VEC <= p.n) {
        Floats4 c = Floats4(a);
        for (uint j = 0; j < VEC; j += 4) {
            vec4 y = p.alpha * vec4(acc[j], acc[j + 1], acc[j + 2], acc[j + 3]);
            if (p.beta != 0) y += p.beta * c.v[(col + j) / 4];
            c.v[(col + j) / 4] = y;
        }
        return;
    }
    Floats c = Floats(a);
    for (uint j = 0; j < VEC && col + j < p.n; j++) {
        float y = p.alpha * acc[j];
        if (p.beta != 0) y += p.beta * c.v[col + j];
        c.v[col + j] = y;
    }
}

// clang-format off
#define FIRST_COLUMN(x) x * VEC
// clang-format on
#define SLOTS_FROM col
#define CLEAR \
    for (int j = 0; j < VEC; j++) acc[j] = 0

const uint SEGMENT_WORDS = 4; // of a segment: begin, end, row, and its slot (NO_SLOT: the segment is a whole row)
const uint NO_SLOT = 0xffffffffu;

void main() {
#include "item.glsl"
    if (slot == NO_SLOT) {
        store(row, col);
        return;
    }
    Floats4 sum = Floats4(at(uvec2(p.part), slot, 4 * p.ldp));
    for (uint j = 0; j < VEC; j += 4) sum.v[(col + j) / 4] = vec4(acc[j], acc[j + 1], acc[j + 2], acc[j + 3]);
}
