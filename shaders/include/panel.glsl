// What GLSL kernels on panels share: buffers of any size, elements, sums over a row's entries alone. Needs V,
// the rows of a panel, and ELEM, the type of A and B. The kernel's table has arguments colind, values, mask,
// b and c, and the parameters that package panel lists.

#include "operands.glsl"

// A panel's columns, and what its kernel knows its rows by.
struct Panel {
    uint first, count; // columns, the first counted over all
    uint rows;
    uvec2 cols;        // address of their numbers
    uvec2 values;      // and values
};

// panelAt returns the panel of columns first to last.
Panel panelAt(uint first, uint last, uint rows) {
    return Panel(first, last - first, rows, at(uvec2(p.colind), first, 4), at(uvec2(p.values), first, V * ELEM_BYTES));
}

// stored tells whether row r of the panel's column q is an entry. Its bit is number (first + q)·V + r.
bool stored(Panel a, uint q, uint r) {
    uint bit = ((a.first + q) % 32) * V + r;
    uvec2 words = at(uvec2(p.mask), (a.first + q) / 32, 4 * V);
    return (Words(words).v[bit >> 5] >> (bit & 31u) & 1u) != 0;
}

// valueOf returns the number, among the panel's values, of row r of column q.
uint valueOf(uint q, uint r) {
#ifdef LANES // see panel_lanes.glsl
    return ((q / 16 * 32 + r % 8 * 4 + q / 4 % 4) * (V / 8) + r / 8) * 4 + q % 4;
#else
    return q * V + r;
#endif
}

// columnOf returns the number of the panel's column q. The window w is one that q is not before.
uint columnOf(Panel a, uint q, inout uint w) {
#ifdef CUT // see panel_window.glsl
    uint lists = a.rows / V * ((p.cols + WINDOW - 1) / WINDOW);
    while (a.first + q >= PTR.v[lists + w + 1]) w++;
    uint at = a.first + q;
    return w * WINDOW + (p.colind.v[at / 2] >> (16 * (at & 1u)) & 0xffffu);
#else
    return Words(a.cols).v[q];
#endif
}

// entries returns the sum of row r's entries times column j of B.
float entries(Panel a, uint r, uint j) {
    Terms sum = Terms(0, 0);
    uint w = 0;
    for (uint q = 0; q < a.count; q++) {
        if (!stored(a, q, r)) continue;
        float x = element(a.values, valueOf(q, r)), y = element(rowOfB(columnOf(a, q, w)), j);
        addTerm(sum, x, y);
    }
    return total(sum);
}

#define SUMMED Panel
#include "repair.glsl"
