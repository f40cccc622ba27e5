// What the GLSL kernels share: work items and blocks, elements, sums over a row's entries alone, C, and phase 1. Needs
// ELEM, the type of A and B, and BLOCK, the active columns of a block, or HEIGHT: then a panel is a strip of HEIGHT
// rows, and work items count its vectors in place of blocks.

#include "../include/operands.glsl"

#ifdef HEIGHT
#define ROWS uint(HEIGHT)
#else
#define ROWS 16u // of a panel
#define PATTERNS (BLOCK / 2u) // words of a block's patterns
#endif
#define NO_SLOT 0xffffffffu

// An item of the work list: blocks of a panel.
struct Part {
    uint panel, first, last, slot;
};

Part partAt(uint i) {
    uvec4 w = Octets(p.work).v[i];
    return Part(w.x, w.y, w.z, w.w);
}

// rowAt returns the row of C that row r of a panel is; one past the last row if there is none.
uint rowAt(uint panel, uint r) {
    uint row = panel * ROWS + r;
    if (row >= p.rows) return p.rows;
    return p.places != 0 ? Words(uvec2(p.work)).v[p.places + row] : row;
}

#ifdef HEIGHT
#define COLUMN (0xffffffffu >> HEIGHT) // of a vector's word; the bits above say which values are entries

// entries returns the sum of row r's entries times column j of B, over the part's vectors.
float entries(Part a, uint r, uint j) {
    Terms sum = Terms(0, 0);
    for (uint k = a.first; k < a.last; k++) {
        uint word = Words(uvec2(p.columns)).v[k];
        if ((word >> (32 - HEIGHT + r) & 1u) == 0) continue;
        addTerm(sum, element(at(uvec2(p.packed), k, ROWS * ELEM_BYTES), r), element(rowOfB(word & COLUMN), j));
    }
    return total(sum);
}
#else
// blockAt returns the address of block q's patterns; valuesOf that of its values.
uvec2 blockAt(uint q) { return at(uvec2(p.packed), p.sizes.v[q], 16); }
uvec2 valuesOf(uvec2 block) { return at(block, PATTERNS, 4); }

// activeAt returns the address of block q's active columns.
uvec2 activeAt(uint q) { return at(uvec2(p.columns), q, 4 * BLOCK); }

// entries returns the sum of row r's entries times column j of B, over the part's blocks.
float entries(Part a, uint r, uint j) {
    Terms sum = Terms(0, 0);
    for (uint q = a.first; q < a.last; q++) {
        uvec2 block = blockAt(q), cols = activeAt(q), values = valuesOf(block);
        uint before = 0; // entries of the words before
        for (uint i = 0; i < PATTERNS; i++) {
            uint word = Words(block).v[i], shift = r % 8 * 4;
            uint mine = i % 2 == r / 8 ? (word >> shift) & 15u : 0;
            uint k = before + bitCount(word & ((1u << shift) - 1u));
            for (uint c = 0; c < 4 && mine != 0; c++) {
                if ((mine >> c & 1u) == 0) continue;
                float x = element(values, k), y = element(rowOfB(Words(cols).v[i / 2 * 4 + c]), j);
                k++;
                addTerm(sum, x, y);
            }
            before += bitCount(word);
        }
    }
    return total(sum);
}
#endif

#ifdef HEIGHT
// repair replaces those of row r's sums at columns j to j+3 that are not finite, one after the other, which is little
// code.
vec4 repair(Part a, uint r, uint j, vec4 x) {
    [[dont_unroll]] for (uint i = 0; i < 4; i++) {
        if (special(x.x) && j + i < p.n) x.x = entries(a, r, j + i);
        x = x.yzwx;
    }
    return x;
}
#else
#define SUMMED Part
#include "../include/repair.glsl"
#endif

#ifndef STORE
#define STORE storeFloats
#endif

// finishAt writes the sums x of row r of a whole panel to C's row `row`, four columns from j on. Those that are not
// finite are replaced. finish looks up the row.
void finishAt(Part a, uint r, uint row, uint j, vec4 x) {
    if (row >= p.rows || j >= p.n) return;
    STORE(row, j, repair(a, r, j, x));
}

void finish(Part a, uint r, uint j, vec4 x) { finishAt(a, r, rowAt(a.panel, r), j, x); }

// sums is the address of row r of a slot of the workspace.
uvec2 sums(uint slot, uint r) { return at(at(uvec2(p.part), slot, ROWS * p.ldp * 4), r, p.ldp * 4); }

// keepAt writes the sums x of row r of a part: to C's row `row`, or to its slot. keep looks up the row.
void keepAt(Part a, uint r, uint row, uint j, vec4 x) {
    if (a.slot == NO_SLOT) finishAt(a, r, row, j, x);
    else if (j < p.n) Quads(sums(a.slot, r)).v[j >> 2] = x;
}

void keep(Part a, uint r, uint j, vec4 x) { keepAt(a, r, a.slot == NO_SLOT ? rowAt(a.panel, r) : 0, j, x); }

// sumOf adds up row r of the slots of a split panel, at four columns from j on.
vec4 sumOf(Part a, uint r, uint j) {
    uint slots = (a.last - a.first + p.longest - 1) / p.longest;
    vec4 x = vec4(0);
    for (uint s = 0; s < slots; s++) x += Quads(sums(a.slot + s, r)).v[j >> 2];
    return x;
}

// addSlots is phase 1: the sums of split panel i, by a workgroup of `local` invocations and `cols` columns.
void addSlots(uint i, uint local, uint cols) {
    Part a = partAt(p.parts + i);
    uint base = gl_WorkGroupID.y * cols;
    for (uint t = gl_LocalInvocationIndex; t < ROWS * cols / 4; t += local) {
        uint r = t / (cols / 4), j = base + t % (cols / 4) * 4;
        if (j < p.n) finish(a, r, j, sumOf(a, r, j));
    }
}
