// What kernels on lanes.glsl share: the values of a lane's chains, which lie in shared memory in rows of 32 words,
// words.v, and the COO remainder. Needs ../include/lanes.glsl.

#define ROW_WORDS 32
#include "take.glsl"

// tileOfA takes a 16×16 tile, by byte i of a mask word: the first operand. The lower halves of its registers are of the
// first chain, the upper ones of the second.
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
