// Finite repair. Kernels multiply the zeros that pad a format like entries, so that an Inf or NaN in B may reach
// outputs whose rows have no entry there. Such outputs are computed again from the entries alone. Needs SUMMED, the
// type of a workgroup's matrix, and entries(a, r, j), the sum over row r's entries times column j of B.

// repair replaces those of row r's outputs in columns j to j+3 that are not finite.
vec4 repair(SUMMED a, uint r, uint j, vec4 x) {
    for (uint i = 0; i < 4; i++)
        if (special(x[i]) && j + i < p.n) x[i] = entries(a, r, j + i);
    return x;
}
