// A tile of L·R by packed dot products of 8-bit integers, sums in 32 bits, in the place of ../include/coop_tile.glsl in
// residues.comp, which has the same constants and functions for both.
//
// Tile: an invocation computes (8 × 8), in two quads of columns, half of the tile apart. Its neighbours have the quads
// beside.
// Data movement: a step of K is prefetched to registers while the one before is multiplied from the only stage buffer.
// There, four lines are 16 bytes longer than they need be, so that invocations side by side read other banks.

#include "../include/dots.glsl"

void fetchStep(out Fetched x, uint s);
void putStep(Fetched x, uint s, uint to);
void putQuad(uint i, uint j, uvec4 v);

#define HIGH 8 // rows of an invocation
#define QUADS 2 // and quads of columns

uint lineAt(uint i) { return i * CHUNKS + i / 4; }

const uint LEFT = ROWS * CHUNKS + ROWS / 4; // uvec4 of the left operand's step
const uint ACROSS = COLS / (4 * QUADS); // invocations side by side

shared uvec4 mem[SHARED];
void put(uint i, uvec4 v) { mem[i] = v; }

ivec4 sums[HIGH * QUADS];

// multiply adds the products of chunk c of the step for rows from `down` on and quads from column `across` on.
void multiply(uint down, uint across, uint c) {
    uvec4 y[4 * QUADS];
    [[unroll]] for (uint q = 0; q < QUADS; q++)
        [[unroll]] for (uint e = 0; e < 4; e++)
            y[4 * q + e] = mem[LEFT + lineAt(q * (COLS / QUADS) + across) + e * CHUNKS + c];
    [[unroll]] for (uint i = 0; i < HIGH; i++) {
        uvec4 x = mem[lineAt(down + i) + c];
        [[unroll]] for (uint q = 0; q < QUADS; q++)
            [[unroll]] for (uint e = 0; e < 4; e++)
                sums[i * QUADS + q][e] = dots(sums[i * QUADS + q][e], x, y[4 * q + e]);
    }
}

// multiplySteps computes the tile's sums over steps first to last - 1 and passes them to putQuad.
void multiplySteps(uint first, uint last) {
    uint down = gl_LocalInvocationIndex / ACROSS * HIGH, across = gl_LocalInvocationIndex % ACROSS * 4;
    [[unroll]] for (uint i = 0; i < HIGH * QUADS; i++) sums[i] = ivec4(0);
    Fetched x;
    fetchStep(x, first);
    for (uint s = first; s < last; s++) {
        barrier();
        putStep(x, s, 0);
        barrier();
        fetchStep(x, s + 1);
        if (row + down < p.items)
            [[dont_unroll]] for (uint c = 0; c < CHUNKS; c++) multiply(down, across, c);
    }
    [[unroll]] for (uint i = 0; i < HIGH; i++)
        [[unroll]] for (uint q = 0; q < QUADS; q++)
            putQuad(down + i, q * (COLS / QUADS) + across, uvec4(sums[i * QUADS + q]));
}
