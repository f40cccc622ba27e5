// What the kernels of known lane layout share (../include/lanes.glsl, which this needs): taking the values of a lane's
// chains from shared memory, words.v, where they lie in rows of 32 words; and the COO remainder.

#define ROW_WORDS 32
#include "take.glsl"

// tileOfA takes a 16×16 tile of A by byte i of a mask word. The lower halves of its registers take from the first
// chain, at from.x, the upper halves from the second, at from.y.
OPERAND_A tileOfA(uint mask, uint i, inout uvec2 from) {
    OPERAND_A x;
    [[unroll]] for (uint k = 0; k < 4; k++) {
        uint bit = 1u << 8 * i + 2 * k, e = k / 2 * 2 + k % 2 * 4;
        x[e] = unpackFloat2x16(taken(mask, bit, from.x)).x;
        x[e + 1] = unpackFloat2x16(taken(mask, 2 * bit, from.y)).y;
    }
    return x;
}

#include "remainder.glsl"
