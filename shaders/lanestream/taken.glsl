// What the kernels on twins share (twins.go; ../include/lanes.glsl, which this needs): taking a lane's values from
// shared memory, words.v, where they lie in rows of 64 words; and the COO remainder.

#define ROW_WORDS 64
#include "take.glsl"

// tileOfA takes, from chain h, a 16×16 tile of A by byte i of a mask word.
OPERAND_A tileOfA(uint mask, uint i, uint h, inout uint from) {
    OPERAND_A x;
    [[unroll]] for (uint k = 0; k < 4; k++) {
        uint e = k / 2 * 2 + k % 2 * 4;
        f16vec2 pair = unpackFloat2x16(taken(mask, 1u << 8 * i + 2 * k + h, from));
        x[e] = pair.x;
        x[e + 1] = pair.y;
    }
    return x;
}

#include "remainder.glsl"
