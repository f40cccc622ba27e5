// What the GLSL kernels share: the operands of the product as they lie, and outputs that are not finite. Needs ELEM,
// the type of A and B, and ROWS and COLS, the tile of a workgroup.
//
// A kernel computes tiles of L·R, where L and R are A and B, or, for a column-major C, Bᵀ and Aᵀ: its rows p.rows and
// columns p.n are those of the product that it writes row by row.

#include "../include/operands.glsl"

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Words4 { uint v[]; };

#define B_COLUMNS 1 // bits of p.order
#define C_COLUMNS 2

// L by its rows or R by its columns: line i has p.cols elements.
struct Operand {
    uvec2 x; // address
    uint ld, lines;
    bool along; // a line's elements lie side by side; else its neighbours' at the same place do
};

Operand left() {
    if ((p.order & C_COLUMNS) != 0) return Operand(uvec2(p.b), p.ldb, p.rows, (p.order & B_COLUMNS) != 0);
    return Operand(uvec2(p.a), p.lda, p.rows, true);
}

Operand right() {
    if ((p.order & C_COLUMNS) != 0) return Operand(uvec2(p.a), p.lda, p.n, true);
    return Operand(uvec2(p.b), p.ldb, p.n, (p.order & B_COLUMNS) != 0);
}

// Where a run of elements begins that lie side by side: at element `at` behind an address.
struct Run {
    uvec2 line;
    uint at;
};

Run runOf(Operand x, uint i, uint k) {
    if (x.along) return Run(at(x.x, i, x.ld * ELEM_BYTES), k);
    return Run(at(x.x, k, x.ld * ELEM_BYTES), i);
}

#ifdef QUANT
#include "../include/quantised.glsl"

// Rows of codes are a multiple of 16 bytes long, and the scales lie behind them.
uint codeBytes() { return (p.cols + 15) / 16 * 16; }
uint codesOf(uint row, uint k) {
    return Words(at(uvec2(p.a), row, codeBytes())).v[k / 4];
} // that of column k in byte k % 4
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

// tileAt finds a workgroup's tile; there is none past the last.
bool tileAt(out uint row, out uint col) {
    uint tile = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width;
    row = tile / p.across * ROWS;
    col = tile % p.across * COLS;
    return row < p.rows;
}

#define SUMMED Operand[2]
float entries(Operand x[2], uint row, uint col) {
    Terms sum = Terms(0, 0);
    uvec2 bits =
        at(uvec2(p.stored), (p.order & C_COLUMNS) != 0 ? col : row, 4 * p.words); // of the row of A: those of entries
    for (uint k = 0; k < p.cols; k++)
        if (p.words == 0 || (Words4(bits).v[k / 32] >> (k % 32) & 1) != 0)
            addTerm(sum, leftOf(x[0], row, k), elementOf(x[1], col, k));
    return total(sum);
}
#include "../include/repair.glsl"
