// What GLSL kernels on panels share: the work list, buffers of any size, elements, sums over a row's entries alone,
// storing C, and phase 1. Needs V, the rows of a panel, and ELEM, the type of A and B. The kernel's table has the
// arguments and the parameters that package panel lists.

#include "operands.glsl"

#define NO_SLOT 0xffffffffu

// Panel is the columns of a panel, or of one split of a heavy panel.
struct Panel {
    uint first, count; // columns, numbered over all panels
    uint rows; // from which the kernel finds the panel's rows of C
    uint slot; // of the workspace, for partial sums; NO_SLOT: the sums go to C
    uvec2 cols; // address of their numbers
    uvec2 values; // and values
};

// panelAt returns the panel of columns first to last - 1.
Panel panelAt(uint first, uint last, uint rows, uint slot) {
    return Panel(first, last - first, rows, slot, at(uvec2(p.colind), first, 4),
                 at(uvec2(p.values), first, V * ELEM_BYTES));
}

// panelOf returns the panel of a record of the work list, of those of the launch's phase.
Panel panelOf(uint number) {
    uvec4 r = Octets(at(uvec2(p.work), p.start + number, 16)).v[0];
    return panelAt(r.x, r.y, r.z, r.w);
}

uint rowOf(Panel a, uint r); // defined in the kernel's own file: returns the row of C that is row r of a panel

// stored reports whether row r of the panel's column q is an entry. Its bit is number (first + q)·V + r.
bool stored(Panel a, uint q, uint r) {
    uint bit = ((a.first + q) % 32) * V + r;
    uvec2 words = at(uvec2(p.mask), (a.first + q) / 32, 4 * V);
    return (Words(words).v[bit >> 5] >> (bit & 31u) & 1u) != 0;
}

// valueOf returns the index, among the panel's values, of row r of column q.
uint valueOf(uint q, uint r) {
#ifdef LANES // see panel_lanes.glsl
    return ((q / 16 * 32 + r % 8 * 4 + q / 4 % 4) * (V / 8) + r / 8) * 4 + q % 4;
#else
    return q * V + r;
#endif
}

// columnOf returns the number of the panel's column q. w is a window that q is not before.
uint columnOf(Panel a, uint q, inout uint w) {
#ifdef CUT // see panel_window.glsl
    uint lists = a.rows / V * ((p.cols + WINDOW - 1) / WINDOW);
    while (a.first + q >= p.work.v[lists + w + 1]) w++;
    uint at = a.first + q;
    return w * WINDOW + (p.colind.v[at / 2] >> (16 * (at & 1u)) & 0xffffu);
#else
    return Words(a.cols).v[q];
#endif
}

// entries returns an output computed from the entries alone: the sum over row r's entries times column j of B.
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
#ifdef HALVES_OF_C
#include "store_halves.glsl"
#endif

// finish writes the sums x of row r of a whole panel to C, four columns from j on. It repairs those that are not
// finite.
void finish(Panel a, uint r, uint j, vec4 x) {
    uint row = rowOf(a, r);
    if (row >= p.rows || j >= p.n) return;
    x = repair(a, r, j, x);
#ifdef HALVES_OF_C
    if (storeType == F16) {
        storeHalves(row, j, x);
        return;
    }
#endif
    storeFloats(row, j, x);
}

// quadsOfSums returns the number of quads in a row of a slot. sumsAt returns the address of row r of a slot.
uint quadsOfSums() { return (p.n + 7) / 8 * 2; }
uvec2 sumsAt(uint slot, uint r) { return at(at(uvec2(p.part), slot, V * quadsOfSums() * 16), r, quadsOfSums() * 16); }

// keep writes the sums x of row r: to C, or partial sums to their slot.
void keep(Panel a, uint r, uint j, vec4 x) {
    if (a.slot == NO_SLOT) finish(a, r, j, x);
    else if (j < p.n) Quads(sumsAt(a.slot, r)).v[j >> 2] = x;
}

// addParts is phase 1: it adds the partial sums of heavy panels. An invocation, one of `local`, has four columns of a
// row.
void addParts(uint local) {
    uint number = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width, quads = quadsOfSums();
    uint t = gl_WorkGroupID.y * local + gl_LocalInvocationIndex, r = t / quads, i = t % quads;
    if (number >= p.panels || r >= V) return;
    Panel a = panelOf(number);
    uint slots = panelOf(number + 1).slot - a.slot;
    vec4 x = vec4(0);
    for (uint s = 0; s < slots; s++) x += Quads(sumsAt(a.slot + s, r)).v[i];
    finish(a, r, 4 * i, x);
}
