// What the GLSL kernels on lane streams share: where the arrays are, and sums over a row's entries alone (package
// formats/lanestream). Needs ELEM, the type of A and B. A segment is p.steps steps of 32 columns.

#include "../include/operands.glsl"

const uint GROUP_ROWS = 64;
const uint STEP_COLS = 32;
const uint CHAINS = 64;

#ifdef QUANT
#include "../include/quantised.glsl"
#define VALUE_BYTES 1u
#elif defined TWINS
#define VALUE_BYTES 4u
#else
#define VALUE_BYTES ELEM_BYTES
#endif

// Where the arrays are in `index`: StreamPtr, SegmentRows, RemainderPtr, RemainderCol, Stored, and for a quantised
// matrix its scales, row after row.
uint streams() { return p.groups * p.splits; }
uint rowAt(uint stream) { return p.index.v[stream]; }
uint segmentRowsAt(uint stream) { return p.index.v[streams() + 1 + stream]; }
uint remainderAt(uint row) { return Words(at(uvec2(p.index), streams() * 2 + 1, 4)).v[row]; }
uvec2 remainderCols() { return at(at(uvec2(p.index), streams() * 2 + 1, 4), p.rows + 1, 4); }

// remainderValues returns the address of the COO remainder's values, which lie behind those of the streams.
uvec2 remainderValues() { return at(uvec2(p.values), rowAt(streams()), CHAINS * VALUE_BYTES); }

#ifndef TWINS
// stored reports whether a value is an entry. It is value number `value` counted from row `row` of values on, 64 a row.
bool stored(uint row, uint value) {
    uvec2 words = at(at(remainderCols(), remainderAt(p.rows), 4), row, CHAINS / 8);
    return (Words(words).v[value >> 5] >> (value & 31u) & 1u) != 0;
}

#endif

// entryOf returns value i of those at an address as the number that it stands for in A's row and column.
#ifdef QUANT
float scaleOf(uint row, uint col) {
    uvec2 scales = at(at(remainderCols(), remainderAt(p.rows), 4), rowAt(streams()), CHAINS / 8);
    return Floats(at(scales, row, (p.cols + SCALE_COLS - 1) / SCALE_COLS * 4)).v[col / SCALE_COLS];
}
float entryOf(uvec2 values, uint i, uint row, uint col) {
    return scaleOf(row, col) * level(Words(values).v[i / 4], i % 4);
}
#else
float entryOf(uvec2 values, uint i, uint row, uint col) { return element(values, i); }
#endif

// firstSegment returns the first segment of a split.
uint firstSegment(uint split) { return p.segments * split / p.splits; }

#ifdef TWINS
#include "twins.glsl"
#else
// maskAt returns the address of a group's mask from a step on.
uvec2 maskAt(uint group, uint step) { return at(uvec2(p.mask), group * p.segments * p.steps + step, 256); }

// entries returns an output computed from the entries alone: the sum over row r of a group times column j of B.
float entries(uint group, uint r, uint j) {
    Terms sum = Terms(0, 0);
    uint mine = r >> 3 & 1u | r >> 4 << 2; // the row's positions, without their bit 1
    for (uint split = 0; split < p.splits; split++) {
        uint row = rowAt(group * p.splits + split);
        uvec2 values = at(uvec2(p.values), row, CHAINS * VALUE_BYTES);
        for (uint chain = 8 * (r & 7u); chain < 8 * (r & 7u) + 8; chain++) {
            uint value = chain;
            for (uint s = firstSegment(split) * p.steps; s < firstSegment(split + 1) * p.steps; s++)
                for (uint w = 0; w < 2; w++) {
                    uint word = Words(maskAt(group, s)).v[chain / 2 * 2 + w] >> (chain & 1u);
                    for (uint i = 0; i < 16; i++) {
                        if ((word >> 2 * i & 1u) == 0) continue;
                        uint k = s * STEP_COLS + 16 * w + 8 * (i >> 1 & 1u) + 4 * (chain & 1u) + (chain / 2 & 3u);
                        if ((i & 13u) == mine && stored(row, value))
                            addTerm(sum, entryOf(values, value, group * GROUP_ROWS + r, k), element(rowOfB(k), j));
                        value += CHAINS;
                    }
                }
        }
    }
    uint row = group * GROUP_ROWS + r;
    for (uint i = remainderAt(row); i < remainderAt(row + 1); i++) {
        uint k = Words(remainderCols()).v[i];
        addTerm(sum, entryOf(remainderValues(), i, row, k), element(rowOfB(k), j));
    }
    return total(sum);
}

#endif

#define SUMMED uint
#include "../include/repair.glsl"
