// Computes: C (rows × n) = alpha·A·B + beta·C reproducibly in fixed point (RFX-p), A in panels, on cooperative matrices
// of 8-bit integers (TM × TN × TK). rfx.go explains digits, panels.go the packing.
// Tile: a workgroup computes (V × COLS) for a panel or a segment of one. There is a sum for each sum of two digits'
// places.
// Data movement: a tile's 32 rows of B, as digits, are loaded into shared memory transposed: for each place and column
// 32 bytes, one for each vector, so that both operands are read by rows of bytes along the vectors. Column 8o + i of
// the workgroup's is at place i·(COLS/8) + o: an invocation loads eight neighbouring columns, and the writes of
// neighbours go to other banks. A's digits go through shared memory, too. The next tile is prefetched to registers.
// Bound by: gathers of rows of B, then shared memory.
//
// The panel has as many rows as fit the device's matrix operation:
//   SWAP = 1  Cᵀ = Bᵀ·Aᵀ: columns of B on TM, the panel's V rows on TN (16×8×32, 8×8×8);
//   SWAP = 0  C = A·B: the panel's rows on TM, columns of B on TN (8×16×32, 16×16×16).

#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#include "store.glsl"

layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
layout(constant_id = 1) const uint V = 8;
layout(constant_id = 2) const uint TM = 16;
layout(constant_id = 3) const uint TN = 8;
layout(constant_id = 4) const uint TK = 32;
layout(constant_id = 5) const uint SWAP = 1;
layout(constant_id = 6) const uint COLS = 128;
layout(constant_id = 7) const uint SUBS = 4;
layout(constant_id = 8) const uint SHARED = 1320; // uvec4 of shared memory: what the table computes

#define S ((BITS + 1) / 8) // digits
#define DIAGS (2 * S - 1) // sums of places
#define TILE 32 // vectors
#define PITCH 3 // uvec4 from one column's bytes, or one row's, to the next's
#define ITEM 5 // words of an item besides its rows: see panels.go
#define NOROW 0xffffffffu

// Operands are loaded faster from elements of 16 bytes. Those of k = 8 begin in the middle of that.
#if NARROW
#define UNITS 2
shared uvec2 mem[UNITS * SHARED];
#else
#define UNITS 1
shared uvec4 mem[SHARED];
#endif
#define EACH (4 / UNITS) // words of an element
uint get(uint i) { return mem[i / EACH][i % EACH]; }
void put(uint i, uint x) { mem[i / EACH][i % EACH] = x; }

const uint LOCAL = gl_WorkGroupSize.x;
const uint OCTETS = COLS / 8;
const uint LOADS = TILE / 4 * OCTETS / LOCAL; // of an invocation for a tile: four vectors by eight columns each
const uint TILE_COLS = SWAP * TM + (1 - SWAP) * TN;
const uint ACROSS = COLS / SUBS / TILE_COLS;
const uint LEFT = S * V * TILE / 16; // uvec4 of A's digits of a tile
const uint LEFTS = (LEFT + LOCAL - 1) / LOCAL;
const uint OUT = COLS + 4; // words from one row's sums to the next's

#define OPERAND_A coopmat<int8_t, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA>
#define OPERAND_B coopmat<int8_t, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB>
#define SUM coopmat<int, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator>
#define BY_ROWS gl_CooperativeMatrixLayoutRowMajor
#define BY_COLUMNS gl_CooperativeMatrixLayoutColumnMajor

// Digits of eight columns of a row of B: words 2d and 2d+1 are those of place d.
struct Row {
    uint w[2 * S];
};

// fetch loads the digits of a row of q from column col: pairs of places lie together, then a last one alone.
Row fetch(uint row, uint col) {
    uint pitch = ((S * p.ldq + 31) & ~63u) + 32;
    uvec2 line = at(at(uvec2(p.q), p.first, 4), row, pitch);
    Row r;
    [[unroll]] for (uint d = 0; d < S / 2; d++) {
        uvec4 v = Words4(line).v[(2 * col + d * 2 * p.ldq) / 16];
        [[unroll]] for (uint i = 0; i < 4; i++)
            r.w[4 * d + i] = v[i];
    }
#if S == 3
    uvec2 v = Words2(line).v[(col + 2 * p.ldq) / 8];
    r.w[4] = v.x;
    r.w[5] = v.y;
#endif
    return r;
}

// turn makes of a word of each of four rows, four columns wide, a word of each column.
uvec4 turn(uvec4 x) {
    uint lo = (x.x & 0x00ff00ffu) | (x.y & 0x00ff00ffu) << 8,
         hi = (x.x >> 8 & 0x00ff00ffu) | (x.y & 0xff00ff00u); // columns 0, 2 and 1, 3
    uint lo2 = (x.z & 0x00ff00ffu) | (x.w & 0x00ff00ffu) << 8, hi2 = (x.z >> 8 & 0x00ff00ffu) | (x.w & 0xff00ff00u);
    return uvec4((lo & 0xffffu) | lo2 << 16, (hi & 0xffffu) | hi2 << 16, lo >> 16 | (lo2 & 0xffff0000u),
                 hi >> 16 | (hi2 & 0xffff0000u));
}

uint place(uint column) { return (column & 7u) * OCTETS + column / 8; }

uvec4 extended(int x) { return uvec4(uint(x), uvec3(uint(x >> 31))); }

void main() {
    uint number = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width;
    if (number >= p.items) return;
    uint item = p.heavy + (ITEM + V) * number;
    uint columns = p.rows.v[item], first = p.rows.v[item + 1], tiles = p.rows.v[item + 2];
    uint base = gl_WorkGroupID.y * COLS;

    // Load i of the invocation: vectors 4·quad to 4·quad + 3 and columns from 8·octet.
    uvec4 next[LOADS]; // rows of B to fetch
    Row rows[LOADS][4];
    uvec4 left[LEFTS]; // digits of A
    SUM sums[ACROSS * DIAGS];
    [[unroll]] for (uint i = 0; i < ACROSS * DIAGS; i++)
        sums[i] = SUM(0);

    // Step s looks up the columns of tile s, fetches tile s-1, and multiplies tile s-2.
    for (uint s = 0; s < tiles + 2; s++) {
        if (s >= 2) {
            [[unroll]] for (uint i = 0; i < LOADS; i++) {
                uint t = i * LOCAL + gl_LocalInvocationIndex, quad = t % 8, octet = t / 8;
                [[unroll]] for (uint d = 0; d < S; d++)
                    [[unroll]] for (uint h = 0; h < 2; h++) {
                        uvec4 c = turn(uvec4(rows[i][0].w[2 * d + h], rows[i][1].w[2 * d + h], rows[i][2].w[2 * d + h],
                                             rows[i][3].w[2 * d + h]));
                        [[unroll]] for (uint j = 0; j < 4; j++)
                            put((d * COLS + place(8 * octet + 4 * h + j)) * (PITCH * 4) + quad, c[j]);
                    }
            }
            [[unroll]] for (uint i = 0; i < LEFTS; i++) {
                uint t = min(i * LOCAL + gl_LocalInvocationIndex, LEFT - 1);
                [[unroll]] for (uint e = 0; e < 4; e++)
                    put((S * COLS + t / 2) * (PITCH * 4) + t % 2 * 4 + e, left[i][e]);
            }
            barrier();
        }
        if (s >= 1 && s <= tiles) {
            [[unroll]] for (uint i = 0; i < LEFTS; i++)
                left[i] = Words4(at(uvec2(p.ints), first + s - 1, S * V * TILE))
                              .v[min(i * LOCAL + gl_LocalInvocationIndex, LEFT - 1)];
            [[unroll]] for (uint i = 0; i < LOADS; i++) {
                // Columns past the last are read from the last ones' place; they are never stored.
                uint col = min(base + (i * LOCAL + gl_LocalInvocationIndex) / 8 * 8, p.ldq - 8);
                [[unroll]] for (uint v = 0; v < 4; v++)
                    rows[i][v] = fetch(next[i][v], col);
            }
        }
        if (s < tiles) {
            [[unroll]] for (uint i = 0; i < LOADS; i++) {
                uint at = columns + s * TILE + (i * LOCAL + gl_LocalInvocationIndex) % 8 * 4;
                [[unroll]] for (uint v = 0; v < 4; v++)
                    next[i][v] = p.rows.v[at + v];
            }
        }
        if (s < 2) continue;
        for (uint k = 0; k < TILE; k += TK) {
            OPERAND_A x[S];
            OPERAND_B y[S];
            [[unroll]] for (uint d = 0; d < S; d++) {
                uint from = UNITS * (S * COLS + d * V) * PITCH + UNITS * k / 16;
                if (SWAP == 1) coopMatLoad(y[d], mem, from, UNITS * PITCH, BY_COLUMNS);
                else coopMatLoad(x[d], mem, from, UNITS * PITCH, BY_ROWS);
            }
            [[unroll]] for (uint c = 0; c < ACROSS; c++) {
                [[unroll]] for (uint d = 0; d < S; d++) {
                    uint from = UNITS * (d * COLS + (gl_SubgroupID * ACROSS + c) * TILE_COLS) * PITCH + UNITS * k / 16;
                    if (SWAP == 1) coopMatLoad(x[0], mem, from, UNITS * PITCH, BY_ROWS);
                    else coopMatLoad(y[0], mem, from, UNITS * PITCH, BY_COLUMNS);
                    [[unroll]] for (uint e = 0; e < S; e++)
                        sums[c * DIAGS + d + e] =
                            coopMatMulAdd(x[SWAP == 1 ? 0 : e], y[SWAP == 1 ? e : 0], sums[c * DIAGS + d + e]);
                }
            }
        }
        barrier();
    }

    // The sums, by sum of places, row of the panel and place.
    [[unroll]] for (uint d = 0; d < DIAGS; d++)
        [[unroll]] for (uint c = 0; c < ACROSS; c++) {
            uint to = (d * V * OUT + (gl_SubgroupID * ACROSS + c) * TILE_COLS) / EACH;
            if (SWAP == 1) coopMatStore(sums[c * DIAGS + d], mem, to, OUT / EACH, BY_COLUMNS);
            else coopMatStore(sums[c * DIAGS + d], mem, to, OUT / EACH, BY_ROWS);
        }
    barrier();
    uint part = p.rows.v[item + 3], count = p.rows.v[item + 4];
    for (uint t = gl_LocalInvocationIndex; t < V * COLS; t += LOCAL) {
        uint r = t / COLS, j = base + t % COLS, row = p.rows.v[item + ITEM + r];
        uvec4 sum = uvec4(0);
        [[unroll]] for (int d = DIAGS - 1; d >= 0; d--)
            sum = add128(sum << 8 | uvec4(0, sum.xyz) >> 24,
                         extended(int(get((d * V + r) * OUT + place(t % COLS)))));
        if (count > 0) {
            if (j < p.ldq) Out4(at(uvec2(p.part), part + r * count, 16 * p.ldq)).v[j] = sum;
        } else if (row != NOROW && j < p.n) {
            store(row, j, sum);
        }
    }
}
