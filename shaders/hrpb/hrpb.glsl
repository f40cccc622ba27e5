// What the GLSL kernels share: parts and blocks, elements, sums over a row's entries alone, C, and phase 1.
// Needs BLOCK, the active columns of a block, and ELEM, the type of A and B.

#include "../include/operands.glsl"

#define ROWS 16u               // of a panel
#define PATTERNS (BLOCK / 2u)  // words of a block's patterns
#define NO_SLOT 0xffffffffu

// An item of the work list: blocks of a panel.
struct Part { uint panel, first, last, slot; };

Part partAt(uint i) {
    uvec4 w = Octets(p.work).v[i];
    return Part(w.x, w.y, w.z, w.w);
}

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

#define SUMMED Part
#include "../include/repair.glsl"

#ifndef STORE
#define STORE storeFloats
#endif

// finish writes the sums x of row r of a whole panel to C, four columns from j on. Those that are not finite
// are replaced.
void finish(Part a, uint r, uint j, vec4 x) {
    uint row = a.panel * ROWS + r;
    if (row >= p.rows || j >= p.n) return;
    if (p.places != 0) row = Words(uvec2(p.work)).v[p.places + row];
    STORE(row, j, repair(a, r, j, x));
}

// sums is the address of row r of a slot of the workspace.
uvec2 sums(uint slot, uint r) { return at(at(uvec2(p.part), slot, ROWS * p.ldp * 4), r, p.ldp * 4); }

// keep writes the sums x of row r of a part: to C, or to its slot.
void keep(Part a, uint r, uint j, vec4 x) {
    if (a.slot == NO_SLOT) finish(a, r, j, x);
    else if (j < p.n) Quads(sums(a.slot, r)).v[j >> 2] = x;
}

// addSlots is phase 1: the sums of split panel i, by a workgroup of `local` invocations and `cols` columns.
void addSlots(uint i, uint local, uint cols) {
    Part a = partAt(p.parts + i);
    uint slots = (a.last - a.first + p.longest - 1) / p.longest;
    uint base = gl_WorkGroupID.y * cols;
    for (uint t = gl_LocalInvocationIndex; t < ROWS * cols / 4; t += local) {
        uint r = t / (cols / 4), j = base + t % (cols / 4) * 4;
        if (j >= p.n) continue;
        vec4 x = vec4(0);
        for (uint s = 0; s < slots; s++) x += Quads(sums(a.slot + s, r)).v[j >> 2];
        finish(a, r, j, x);
    }
}
