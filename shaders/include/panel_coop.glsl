// Panels × dense on cooperative matrices, f16, sums in f32. A kernel's own file defines locate and rowOf.
//
// Tile: a workgroup computes a panel (V × COLS), each of SUBS subgroups (V × COLS/SUBS), STAGE vectors at a time. If C
// has at most half as many columns, half of the subgroups suffice for them. Then the others take further vectors of a
// stage that is twice as long (and so on). The sums of these slices of the vectors are added in order at the end.
// Data movement: rows of B of a stage are gathered into shared memory with 128-bit loads. Their values are stored next
// to them as a dense matrix. The next stage is prefetched to registers, and the column numbers of the one after it.
// Bound by: gathers of rows of B, then shared memory.
//
// Two mappings fit the panel to the device's matrix operation TM × TN × TK (SSpMM §III-B), and read the same staged
// data, once by rows and once by columns:
//   SWAP = 1  Cᵀ = Bᵀ·Aᵀ: columns of B on TM, the panel's rows on TN (16×8×16, 8×8×8);
//   SWAP = 0  C = A·B: the panel's rows on TM, columns of B on TN (16×16×16, 8×16×16).

layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
layout(constant_id = 2) const uint TM = 16;
layout(constant_id = 3) const uint TN = 8;
layout(constant_id = 4) const uint TK = 16;
layout(constant_id = 5) const uint SWAP = 1;
layout(constant_id = 6) const uint COLS = 256; // a power of two, as is SUBS
layout(constant_id = 7) const uint SUBS = 4;
layout(constant_id = 8) const uint STAGE = 16; // a multiple of TK
layout(constant_id = 9) const uint SHARED = 1152; // uvec4 of shared memory; the table computes it

// Two stages of B's rows and of values; at the end the tile of C in f32. A row has one uvec4 of padding, which spreads
// columns over the banks.
shared uvec4 mem[SHARED];

const uint LOCAL = gl_WorkGroupSize.x;
const uint A_ROW = V / 8; // uvec4 of a vector's values
const uint B_LOADS = STAGE * (COLS / 8) / LOCAL; // uvec4 of B that each invocation loads for a stage
const uint A_LOADS = (STAGE * SUBS * A_ROW + LOCAL - 1) / LOCAL; // uvec4 of values that each loads, at most

// A subgroup's matrix operations: across the columns of C, and down the panel's rows.
const uint TILE_COLS = SWAP * TM + (1 - SWAP) * TN;
const uint TILE_ROWS = SWAP * TN + (1 - SWAP) * TM;
const uint ACROSS = COLS / SUBS / TILE_COLS;
const uint DOWN = V / TILE_ROWS;

#define OPERAND_A coopmat<float16_t, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA>
#define OPERAND_B coopmat<float16_t, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB>
#define SUM coopmat<float, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator>
#define BY_ROWS gl_CooperativeMatrixLayoutRowMajor
#define BY_COLUMNS gl_CooperativeMatrixLayoutColumnMajor

const uint NONE = 0xffffffffu;

void main() {
    if (p.phase == 1) {
        addParts(gl_WorkGroupSize.x);
        return;
    }
    Panel a;
    uint base;
    if (!locate(COLS, a, base)) return;

    // The tile of C has cols columns; the vectors are cut into `slices` slices.
    uint slices = 1, cols = COLS;
    while (slices < SUBS && cols / 2 >= p.n - base) slices *= 2, cols /= 2;
    uint slice = gl_SubgroupID * slices / SUBS, part = gl_SubgroupID % (SUBS / slices);
    bool busy = base + part * (COLS / SUBS) < p.n; // the subgroup has columns of C
    uint length = STAGE * slices; // vectors of a stage
    uint octets = cols / 8, pitch = octets + 1; // uvec4 of a row of B, and from one to the next
    uint size = length * (pitch + A_ROW); // uvec4 of a stage
    uint log = findLSB(octets);

    uint column[B_LOADS]; // rows of B to fetch next; NONE past the panel's end and past C's last column
    uvec4 rows[B_LOADS]; // what was fetched of them
    uvec4 values[A_LOADS];
    SUM sums[ACROSS * DOWN];
    [[unroll]] for (uint i = 0; i < B_LOADS; i++)
        column[i] = NONE;
    [[unroll]] for (uint i = 0; i < ACROSS * DOWN; i++)
        sums[i] = SUM(0.0);

    // Step s looks up the columns of stage s, fetches stage s-1, and multiplies stage s-2.
    uint steps = (a.count + length - 1) / length + 2;
    for (uint s = 0; s < steps; s++) {
        uint stage = (s & 1u) * size;
        if (s >= 2) {
            [[unroll]] for (uint i = 0; i < B_LOADS; i++) {
                uint t = i * LOCAL + gl_LocalInvocationIndex;
                mem[stage + (t >> log) * pitch + (t & octets - 1)] = rows[i];
            }
            [[unroll]] for (uint i = 0; i < A_LOADS; i++) {
                uint t = i * LOCAL + gl_LocalInvocationIndex;
                if (t < length * A_ROW) mem[stage + length * pitch + t] = values[i];
            }
            barrier();
        }
        [[unroll]] for (uint i = 0; i < B_LOADS; i++) {
            uint t = i * LOCAL + gl_LocalInvocationIndex;
            rows[i] = uvec4(0);
            if (column[i] != NONE) rows[i] = Octets(rowOfB(column[i])).v[base / 8 + (t & octets - 1)];
            uint q = s * length + (t >> log);
            column[i] = NONE;
            if (q < a.count && base + (t & octets - 1) * 8 < p.n) column[i] = Words(a.cols).v[q];
        }
        [[unroll]] for (uint i = 0; i < A_LOADS; i++) {
            uint t = i * LOCAL + gl_LocalInvocationIndex, from = (s - 1) * length * A_ROW + t;
            values[i] = uvec4(0);
            if (s >= 1 && t < length * A_ROW && from < a.count * A_ROW) values[i] = Octets(a.values).v[from];
        }
        if (s < 2 || !busy) continue;
        for (uint k = 0; k < STAGE; k += TK) {
            uint b = stage + (slice * STAGE + k) * pitch + part * (COLS / SUBS / 8);
            uint v = stage + length * pitch + (slice * STAGE + k) * A_ROW;
            OPERAND_A x;
            OPERAND_B y;
            [[unroll]] for (uint r = 0; r < DOWN; r++) {
                if (SWAP == 1) coopMatLoad(y, mem, v + r * TN / 8, A_ROW, BY_ROWS);
                else coopMatLoad(x, mem, v + r * TM / 8, A_ROW, BY_COLUMNS);
                [[unroll]] for (uint c = 0; c < ACROSS; c++) {
                    if (SWAP == 1) coopMatLoad(x, mem, b + c * TM / 8, pitch, BY_COLUMNS);
                    else coopMatLoad(y, mem, b + c * TN / 8, pitch, BY_ROWS);
                    sums[c * DOWN + r] = coopMatMulAdd(x, y, sums[c * DOWN + r]);
                }
            }
        }
    }

    // The sums of all slices are added and stored, row by row of C.
    uint quads = cols / 4;
    barrier();
    [[unroll]] for (uint r = 0; r < DOWN; r++)
        [[unroll]] for (uint c = 0; c < ACROSS; c++) {
            uint to = (slice * V + r * TILE_ROWS) * (quads + 1) + (part * ACROSS + c) * TILE_COLS / 4;
            if (SWAP == 1) coopMatStore(sums[c * DOWN + r], mem, to, quads + 1, BY_COLUMNS);
            else coopMatStore(sums[c * DOWN + r], mem, to, quads + 1, BY_ROWS);
        }
    barrier();
    for (uint t = gl_LocalInvocationIndex; t < V * quads; t += LOCAL) {
        uint r = t >> log + 1, i = t & quads - 1;
        vec4 x = vec4(0);
        for (uint k = 0; k < slices; k++) x += uintBitsToFloat(mem[(k * V + r) * (quads + 1) + i]);
        keep(a, r, base + 4 * i, x);
    }
}
