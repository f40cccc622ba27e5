// Computes: C (rows × n) = alpha·A·B + beta·C, A (rows × cols) as lane streams, f32, f16 or bf16, sums in f32, on
// scalar units.
// Tile: a workgroup computes (64·p.each × 64). It has teams of 64 invocations. Each team takes a stream of a group, or
// every n-th stream if the group has more than its teams. An invocation computes (16 × 4). If C has fewer columns,
// invocations with the same outputs divide the 16 columns of A among themselves (slices). Partial sums of slices and
// streams are added in order at the end.
// Data movement: 16 columns of A at a time are expanded to a dense tile in shared memory; each invocation of a team
// takes the values of one chain. Rows of B come straight from memory.
// Bound by: FMA.
// Constants: ELEM.

#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require

layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;

#include "lanestream.glsl"

const uint LOCAL = gl_WorkGroupSize.x;
const uint TEAMS = LOCAL / 64;
const uint ROWS = 16; // of an invocation
const uint QUADS = 16; // of four columns: the tile's columns of C

// A team's 16 columns of 64 rows of A. Quad i of column k, which has rows 4i to 4i+3, is at 16·k + (i ^ k & 7), so that
// the rows that invocations write at the same time are in different banks. At the end: one row's sums of each
// invocation.
shared vec4 tile[TEAMS * 256];

#include "../include/quad.glsl"

// value returns value i of those at address a; for a quantised matrix that is the code's number, without its scale.
float value(uvec2 a, uint i) {
#ifdef QUANT
    return level(Words(a).v[i >> 2], i & 3u);
#elif ELEM == F32
    return uintBitsToFloat(Words(a).v[i]);
#else
    return pair(Words(a).v[i >> 1] >> 16 * (i & 1u)).x;
#endif
}

// Values are the values that a chain has for one word of the mask.
struct Values {
    float v[16];
};

// fetch loads them. It loads at all positions, needed or not, so that no load waits for another. last is the number of
// the stream's last value.
Values fetch(uint word, uvec2 values, inout uint next, uint last) {
    Values x;
    [[unroll]] for (uint i = 0; i < 16; i++) {
        bool is = (word >> 2 * i & 1u) != 0;
        float y = value(values, min(next, last));
        x.v[i] = is ? y : 0;
        next += is ? CHAINS : 0;
    }
    return x;
}

// keep writes them to a team's tile, whose first row in A is `row` and whose first column is `first`.
void keep(Values x, uint to, uint chain, uint row, uint first) {
    uint g = chain >> 3, col = 4 * (chain & 1u) + (chain >> 1 & 3u);
    [[unroll]] for (uint i = 0; i < 16; i++) {
        uint k = 8 * (i >> 1 & 1u) + col, r = 16 * (i >> 2) + 8 * (i & 1u) + g;
#ifdef QUANT
        x.v[i] *= scaleOf(min(row + r, p.rows - 1), min(first + k, p.cols - 1));
#endif
        tile[to + 16 * k + (r >> 2 ^ k & 7u)][r & 3u] = x.v[i];
    }
}

// remainderOf returns entry i of a row's COO remainder.
float remainderOf(uint row, uint i) {
#ifdef QUANT
    return entryOf(remainderValues(), i, row, Words(remainderCols()).v[i]);
#else
    return value(remainderValues(), i);
#endif
}

void main() {
    uint block = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width, base = gl_WorkGroupID.y * 64, first = block * p.each;
    if (first >= p.groups) return;
    uint team = gl_LocalInvocationIndex / 64, me = gl_LocalInvocationIndex % 64;
    uint share = team / p.each, shares = min(TEAMS / p.each, p.splits), group = first + team % p.each;
    bool works = share < shares && group < p.groups;

    uint width = 1;
    while (width < QUADS && 4 * width < p.n - base) width *= 2;
    uint slices = QUADS / width, slice = me % QUADS / width, rows = me / QUADS * ROWS, j = base + me % width * 4;
    uint from = min(j, p.ldb - 4) / 4; // columns past the last are never stored

    vec4 acc[ROWS];
    [[unroll]] for (uint r = 0; r < ROWS; r++)
        acc[r] = vec4(0);
    uint most = (p.segments + p.splits - 1) / p.splits * p.steps * 2; // words of the longest split
    for (uint round = 0; round < p.splits; round += shares) {
        uint split = round + share, words = 0, begin = 0, next = me, last = 0;
        uvec2 values = uvec2(p.values), masks = uvec2(p.mask);
        if (works && split < p.splits) {
            uint row = rowAt(group * p.splits + split);
            begin = firstSegment(split) * p.steps;
            words = firstSegment(split + 1) * p.steps * 2 - 2 * begin;
            last = max((rowAt(group * p.splits + split + 1) - row) * CHAINS, 1) - 1;
            if (last > 0) values = at(values, row, CHAINS * VALUE_BYTES);
            if (words > 0) masks = maskAt(group, begin);
        }
        // While a word is multiplied, the values of the next word are loaded, and the mask of the one after it.
        uint bits = words > 0 ? Words(masks).v[me / 2 * 2] >> (me & 1u) : 0;
        Values x = fetch(bits, values, next, last);
        bits = words > 1 ? Words(masks).v[me / 2 * 2 + 1] >> (me & 1u) : 0;
        for (uint w = 0; w < most; w++) {
            barrier();
            if (w < words) keep(x, team * 256, me, group * GROUP_ROWS, begin * STEP_COLS + 16 * w);
            barrier();
            x = fetch(bits, values, next, last);
            bits = w + 2 < words ? Words(masks).v[(w + 2) / 2 * 64 + me / 2 * 2 + (w & 1u)] >> (me & 1u) : 0;
            if (w >= words) continue;
            for (uint k = slice; k < 16; k += slices) {
                vec4 y = quad(rowOfB(min(begin * STEP_COLS + 16 * w + k, p.cols - 1)), from);
                [[unroll]] for (uint r = 0; r < ROWS; r += 4) {
                    vec4 a = tile[team * 256 + 16 * k + ((rows + r) / 4 ^ k & 7u)];
                    acc[r] += a.x * y;
                    acc[r + 1] += a.y * y;
                    acc[r + 2] += a.z * y;
                    acc[r + 3] += a.w * y;
                }
            }
        }
    }

    // Rows are stored one after the other, always from acc[0], and the others move up: so the code is small.
    uint row = group * GROUP_ROWS + rows;
    [[dont_unroll]] for (uint r = 0; r < ROWS; r++) {
        vec4 x = acc[0];
        [[unroll]] for (uint i = 1; i < ROWS; i++)
            acc[i - 1] = acc[i];
        if (works && row + r < p.rows) {
            uint end = remainderAt(row + r + 1);
            for (uint i = remainderAt(row + r) + share * slices + slice; i < end; i += shares * slices)
                x += remainderOf(row + r, i) * quad(rowOfB(Words(remainderCols()).v[i]), from);
        }
        if (shares * slices > 1) {
            barrier();
            tile[gl_LocalInvocationIndex] = x;
            barrier();
        }
        if (works && share == 0 && slice == 0 && j < p.n && row + r < p.rows) {
            for (uint i = 1; i < shares * slices; i++)
                x += tile[gl_LocalInvocationIndex + i / slices * p.each * 64 + i % slices * width];
            storeFloats(row + r, j, repair(group, rows + r, j, x));
        }
    }
}
