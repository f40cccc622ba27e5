// Quads of columns with two entries (2:4 sparsity).

// quadOf24 returns the four columns of a quad, as f16. x has the two values; bits 0 and 1 of place have the column of
// the first, bits 2 and 3 that of the second.
uvec2 quadOf24(uint x, uint place) {
    uint at0 = place & 3, at1 = place >> 2 & 3;
    return uvec2(at0 == 0   ? (at1 == 1 ? x : x & 0xffffu)
                 : at0 == 1 ? x << 16
                            : 0,
                 at1 == 3   ? (at0 == 2 ? x : x & 0xffff0000u)
                 : at1 == 2 ? x >> 16
                            : 0);
}
