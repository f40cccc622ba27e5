// What the GLSL kernels share: the operands L and R of a product, and the finite repair. Needs ELEM, the type of A and
// B, and ROWS and COLS, the tile of a workgroup.
//
// A kernel computes tiles of L·R and stores them row by row. L is A and R is B. For a column-major C, which is a
// row-major Cᵀ = Bᵀ·Aᵀ, L is Bᵀ and R is Aᵀ. L·R has p.rows rows and p.n columns, and p.cols is the length of the sums.

#include "../include/operands.glsl"

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Words4 { uint v[]; };

#define B_COLUMNS 1 // bits of p.order
#define C_COLUMNS 2

// Operand is L as its rows, or R as its columns. Line i is row or column i, and has p.cols elements.
struct Operand {
    uvec2 x; // address
    uint ld, lines;
    bool along; // K-major: elements of a line are neighbours in memory; else MN-major ("across")
};

Operand left() {
    if ((p.order & C_COLUMNS) != 0) return Operand(uvec2(p.b), p.ldb, p.rows, (p.order & B_COLUMNS) != 0);
    return Operand(uvec2(p.a), p.lda, p.rows, true);
}

Operand right() {
    if ((p.order & C_COLUMNS) != 0) return Operand(uvec2(p.a), p.lda, p.n, true);
    return Operand(uvec2(p.b), p.ldb, p.n, (p.order & B_COLUMNS) != 0);
}

// Run is where elements begin that are neighbours in memory: element `at` of those at the address `line`.
struct Run {
    uvec2 line;
    uint at;
};

// runOf returns the run that begins with element k of line i.
Run runOf(Operand x, uint i, uint k) {
    if (x.along) return Run(at(x.x, i, x.ld * ELEM_BYTES), k);
    return Run(at(x.x, k, x.ld * ELEM_BYTES), i);
}

#ifdef QUANT
#include "../include/quantised.glsl"

// A quantised A: its rows of codes have a multiple of 16 bytes, and the scales are behind them.
uint codeBytes() { return (p.cols + 15) / 16 * 16; }
uint codesOf(uint row, uint k) { // four codes: that of column k is byte k % 4
    return Words(at(uvec2(p.a), row, codeBytes())).v[k / 4];
}
float scaleOf(uint row, uint k) {
    return Floats(at(at(uvec2(p.a), p.rows, codeBytes()), row, (p.cols + SCALE_COLS - 1) / SCALE_COLS * 4))
        .v[k / SCALE_COLS];
}
float leftOf(Operand x, uint i, uint k) { return scaleOf(i, k) * level(codesOf(i, k), k % 4); }
#else
#define leftOf elementOf
#endif

float elementOf(Operand x, uint i, uint k) {
    Run r = runOf(x, i, k);
    return element(r.line, r.at);
}

// tileAt finds the workgroup's tile, and reports whether there is one.
bool tileAt(out uint row, out uint col) {
    uint tile = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width;
    row = tile / p.across * ROWS;
    col = tile % p.across * COLS;
    return row < p.rows;
}

#define SUMMED Operand[2]
float entries(Operand x[2], uint row, uint col) {
    Terms sum = Terms(0, 0);
    // The bits of A's row: which of its elements are entries.
    uvec2 bits = at(uvec2(p.stored), (p.order & C_COLUMNS) != 0 ? col : row, 4 * p.words);
    for (uint k = 0; k < p.cols; k++)
        if (p.words == 0 || (Words4(bits).v[k / 32] >> (k % 32) & 1) != 0)
            addTerm(sum, leftOf(x[0], row, k), elementOf(x[1], col, k));
    return total(sum);
}
#include "../include/repair.glsl"
