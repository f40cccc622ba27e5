// Operand B and the COO remainder, for kernels of known lane layout. Needs ../include/lanes.glsl.

// columnOf returns operand B from the lane's elements of a column: those of rows q, q + 4, q + 8 and q + 12 of 16.
OPERAND_B columnOf(float16_t r0, float16_t r1, float16_t r2, float16_t r3) {
    OPERAND_B y;
    y[0] = r0;
    y[1] = r1;
    y[2] = r2;
    y[3] = r3;
    return y;
}

// addRemainder adds every shares-th entry of a row's COO remainder, beginning with entry number `share`, to x, the sums
// of columns j to j+7.
void addRemainder(uint row, uint share, uint shares, uint j, inout float x[8]) {
    const uint AT_ONCE = 4;
    uint end = remainderAt(row + 1);
    // Columns past the leading dimension are read from its end instead; they are never stored.
    uvec2 cols = remainderCols(), vals = remainderValues(), b = at(uvec2(p.b), min(j, p.ldb - 8), 2);
    for (uint i = remainderAt(row) + share; i < end; i += AT_ONCE * shares) {
        float v[AT_ONCE];
        uvec4 y[AT_ONCE];
        [[unroll]] for (uint k = 0; k < AT_ONCE; k++) { // past the end: the last entry again, which is not added
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
