// What the kernels on twins share: a lane's values, which lie in shared memory in rows of 64 words, words.v, and the
// COO remainder. Needs
// ../include/lanes.glsl.

#define ROW_WORDS 64
#include "take.glsl"

// tileOfA takes chain h's share of tile i, 16×16: the first operand.
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
