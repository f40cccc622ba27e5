// What the kernels share that make operands lane by lane: the values of a lane's chains, which lie in shared memory in rows of 32 words,
// words.v, and the rest. Needs ../include/lanes.glsl.

// taken returns the word in which a chain has its next value, if the mask says that there is one, else 0. `from` is the word's number. (Compilers
// make a predicated load of the branch, and one instruction of each sum.)
uint taken(uint mask, uint bit, inout uint from) {
    uint x = 0, at_ = from;
    bool is = (mask & bit) != 0;
    from += is ? 32 : 0;
    if (is) x = words.v[at_];
    return x;
}

// tileOfA takes a 16×16 tile, by byte i of a mask word: the first operand. The lower halves of its registers are of the first
// chain, the upper ones of the second.
OPERAND_A tileOfA(uint mask, uint i, inout uvec2 from) {
    OPERAND_A x;
    [[unroll]] for (uint k = 0; k < 4; k++) {
        uint bit = 1u << 8 * i + 2 * k, e = k / 2 * 2 + k % 2 * 4;
        x[e] = unpackFloat2x16(taken(mask, bit, from.x)).x;
        x[e + 1] = unpackFloat2x16(taken(mask, 2 * bit, from.y)).y;
    }
    return x;
}

// columnOf returns the second operand of what a lane has of a column of B: rows q, q + 4, q + 8 and q + 12 of 16.
OPERAND_B columnOf(float16_t r0, float16_t r1, float16_t r2, float16_t r3) {
    OPERAND_B y;
    y[0] = r0;
    y[1] = r1;
    y[2] = r2;
    y[3] = r3;
    return y;
}

// addRest adds every shares'th of a row's entries in the rest, from number share on, to columns j to j+7.
void addRest(uint row, uint share, uint shares, uint j, inout float x[8]) {
    const uint AT_ONCE = 4;
    uint end = restAt(row + 1);
    // Columns past the leading dimension are read from its end instead; they are never stored.
    uvec2 cols = restCols(), vals = restValues(), b = at(uvec2(p.b), min(j, p.ldb - 8), 2);
    for (uint i = restAt(row) + share; i < end; i += AT_ONCE * shares) {
        float v[AT_ONCE];
        uvec4 y[AT_ONCE];
        [[unroll]] for (uint k = 0; k < AT_ONCE; k++) { // past the end the last again
            uint e = min(i + k * shares, end - 1);
            v[k] = element(vals, e);
            y[k] = Octets(at(b, Words(cols).v[e], 2 * p.ldb)).v[0];
        }
        [[unroll]] for (uint k = 0; k < AT_ONCE; k++)
            if (i + k * shares < end) {
                [[unroll]] for (uint e = 0; e < 4; e++) {
                    vec2 z = unpackHalf2x16(y[k][e]);
                    x[2 * e] += v[k] * z.x;
                    x[2 * e + 1] += v[k] * z.y;
                }
            }
    }
}
