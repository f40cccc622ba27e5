// What the GLSL kernels share: buffers of any size, elements, a strip's steps, sums over a row's entries
// alone. Needs ELEM, the type of A and B.

#include "../include/operands.glsl"

const uint ROWS = 16; // of a strip
const uint STEP_COLS = 32; // of a step
const uint STEP_SLOTS = 256;

// A strip's steps, and where in C it is.
struct Strip {
    uint steps;
    uint row; // the first of 16
    uvec2 cols; // address of the 32 column numbers of each step
    uvec2 metadata; // of the 16 words of each, two steps interleaved
    uvec2 values;
    uvec2 mask;
};

Strip stripOf(uint slot) {
    Strip a;
    uint number = p.index.v[2 * (p.blocks + 1) + slot], first = p.index.v[p.blocks + 1 + number];
    a.steps = p.index.v[p.blocks + 2 + number] - first;
    a.row = number * ROWS;
    a.cols = at(uvec2(p.colidx), first, STEP_COLS * 4);
    a.metadata = at(uvec2(p.metadata), first, 64);
    a.values = at(uvec2(p.values), first, STEP_SLOTS * ELEM_BYTES);
    a.mask = at(uvec2(p.mask), first, STEP_SLOTS / 8);
    return a;
}

// places returns where in quad q of tile t of step n the two entries of row g and of row g + 8 are, 2 bits each:
// those of row g in the lowest four bits, of row g + 8 16 bits above.
uint places(Strip a, uint n, uint t, uint g, uint q) {
    return Words(at(a.metadata, n / 2, 128)).v[4 * g + 2 * (n & 1) + t] >> (4 * q) & 0xf000fu;
}

// entries returns the sum of row r's entries times column j of B.
float entries(Strip a, uint r, uint j) {
    Terms sum = Terms(0, 0);
    for (uint n = 0; n < a.steps; n++)
        for (uint i = 0; i < 16; i++) { // quad i/4, tile i/2%2, entry i%2
            uint q = i >> 2, t = i >> 1 & 1, slot = 8 * (4 * (r & 7) + q) + 4 * t + 2 * (r >> 3) + (i & 1);
            if ((Words(at(a.mask, n, STEP_SLOTS / 8)).v[slot >> 5] >> (slot & 31) & 1) == 0) continue;
            uint k = 16 * t + 4 * q + (places(a, n, t, r & 7, q) >> (16 * (r >> 3) + 2 * (i & 1)) & 3);
            float x = element(at(a.values, n, STEP_SLOTS * ELEM_BYTES), slot);
            float y = element(rowOfB(Words(at(a.cols, n, STEP_COLS * 4)).v[k]), j);
            addTerm(sum, x, y);
        }
    return total(sum);
}

#define SUMMED Strip
#include "../include/repair.glsl"
