// A tile of L·R by packed dot products of 8-bit integers, sums in 32 bits, in the place of ../include/coop_tile.glsl in
// residues.comp, which has the same constants and functions for both.
//
// Tile: an invocation computes (8 × 8). Its neighbours have the rows below.
// Data movement: a step of K is prefetched to registers while the one before is multiplied from the only stage buffer.
// There, the first chunks of eight lines lie side by side, then their second ones, and so on; then 16 bytes are left
// out, so that invocations side by side read other banks.

#include "../include/dots.glsl"

void fetchStep(out Fetched x, uint s);
void putStep(Fetched x, uint s, uint to);
void putQuad(uint i, uint j, uvec4 v);

#define SIDE 8 // rows and columns of an invocation

const uint PITCH = SIDE * CHUNKS + 1; // uvec4 from eight lines to the next
const uint LEFT = ROWS / SIDE * PITCH; // uvec4 of the left operand's step

uint placed(uint line, uint chunk) { return line / SIDE * PITCH + chunk * SIDE + line % SIDE; }

shared uvec4 mem[SHARED];
void put(uint i, uvec4 v) { mem[i] = v; }

ivec4 sums[SIDE * 2];

// multiply adds the products of a chunk, given where those of eight lines of either operand lie.
void multiply(uint left, uint right) {
    uvec4 y[SIDE];
    [[unroll]] for (uint j = 0; j < SIDE; j++) y[j] = mem[right + j];
    [[unroll]] for (uint i = 0; i < SIDE; i++) {
        uvec4 x = mem[left + i];
        [[unroll]] for (uint j = 0; j < SIDE; j++)
            sums[2 * i + j / 4][j % 4] = dots(sums[2 * i + j / 4][j % 4], x, y[j]);
    }
}

// multiplySteps computes the tile's sums over steps first to last - 1 and passes them to putQuad.
void multiplySteps(uint first, uint last) {
    uint down = gl_LocalInvocationIndex % (ROWS / SIDE), across = gl_LocalInvocationIndex / (ROWS / SIDE);
    bool inside = row + down * SIDE < p.items && col + across * SIDE < p.ldq;
    [[unroll]] for (uint i = 0; i < SIDE * 2; i++) sums[i] = ivec4(0);
    Fetched x;
    fetchStep(x, first);
    for (uint s = first; s < last; s++) {
        barrier();
        putStep(x, s, 0);
        barrier();
        fetchStep(x, s + 1);
        if (inside)
            [[dont_unroll]] for (uint c = 0; c < CHUNKS; c++)
                multiply(down * PITCH + c * SIDE, LEFT + across * PITCH + c * SIDE);
    }
    [[unroll]] for (uint i = 0; i < SIDE; i++)
        [[unroll]] for (uint q = 0; q < 2; q++)
            putQuad(down * SIDE + i, across * SIDE + 4 * q, uvec4(sums[2 * i + q]));
}
