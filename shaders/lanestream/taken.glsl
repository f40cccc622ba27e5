// What the kernels share that take twins: a lane's values, which lie in shared memory in rows of 64 words, words.v, and the rest. Needs
// ../include/lanes.glsl.

// taken returns the word that a chain has next, if the mask says that there is one, else 0. `from` is the word's number. (Compilers
// make a predicated load of the branch, and one instruction of each sum.)
uint taken(uint mask, uint bit, inout uint from) {
    uint x = 0, at_ = from;
    bool is = (mask & bit) != 0;
    from += is ? 64 : 0;
    if (is) x = words.v[at_];
    return x;
}

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

#include "rests.glsl"
