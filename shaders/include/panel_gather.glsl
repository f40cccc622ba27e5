// Panels × dense on cooperative matrices of any shape, f16, sums in f32, by one subgroup, which gathers rows of B by
// 128-bit loads. A kernel's own file defines locate and rowOf.
//
// Tile: a subgroup computes a panel (V × COLS). Panels have multiples of 16 vectors.
// Data movement: a step is 16 vectors: their values and their rows of B go to shared memory, in lines that are 16 bytes
// longer than they need be, which spreads them over the banks. A step's operands are loaded to registers at once, so
// that the next step can be written there while they are multiplied. Two steps are prefetched to registers.
// Bound by: gathers of rows of B.

layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
layout(constant_id = 2) const uint TM = 16;
layout(constant_id = 3) const uint TN = 16;
layout(constant_id = 4) const uint TK = 16;
layout(constant_id = 5) const uint COLS = 128;
layout(constant_id = 6) const uint SHARED = 320; // uvec4 of shared memory: a step, or V rows of COLS/2 columns of C

shared uvec4 mem[SHARED];

const uint STEP = 16; // vectors
const uint LOCAL = gl_WorkGroupSize.x;
const uint A_ROW = V / 8, B_ROW = COLS / 8; // uvec4 of a vector's values, of a row of B
const uint A_LINE = A_ROW + 1, B_LINE = B_ROW + 1;
const uint A_LOADS = STEP * A_ROW / LOCAL, B_LOADS = STEP * B_ROW / LOCAL; // uvec4 that a lane loads for a step
const uint DOWN = V / TM, ACROSS = COLS / TN, DEEP = STEP / TK;

#define OPERAND_A coopmat<float16_t, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA>
#define OPERAND_B coopmat<float16_t, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB>
#define SUM coopmat<float, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator>

OPERAND_A lefts[DEEP * DOWN];
OPERAND_B rights[DEEP * ACROSS];
SUM sums[DOWN * ACROSS];

struct Fetched {
    uvec4 a[A_LOADS], b[B_LOADS];
};

uint lane, last, octet; // the panel's last step; the lane's first column of C, in octets
uvec4 columns[B_LOADS / 4]; // of the next step to fetch: those of the lane's rows of B, which follow each other

uint firstRow() { return lane / B_ROW * B_LOADS; }

void fetchColumns(Panel a, uint s) {
    [[unroll]] for (uint i = 0; i < B_LOADS / 4; i++)
        columns[i] = Octets(a.cols).v[min(s, last) * (STEP / 4) + firstRow() / 4 + i];
}

// fetch loads step s, whose columns are there, and the columns of the step after it. Past the panel's end the last step
// is loaded again.
void fetch(out Fetched x, Panel a, uint s) {
    [[unroll]] for (uint i = 0; i < A_LOADS; i++)
        x.a[i] = Octets(a.values).v[min(s, last) * (STEP * A_ROW) + i * LOCAL + lane];
    [[unroll]] for (uint i = 0; i < B_LOADS; i++) x.b[i] = Octets(rowOfB(columns[i / 4][i % 4])).v[octet];
    fetchColumns(a, s + 1);
}

void put(Fetched x) {
    [[unroll]] for (uint i = 0; i < A_LOADS; i++) {
        uint t = i * LOCAL + lane;
        mem[t / A_ROW * A_LINE + t % A_ROW] = x.a[i];
    }
    [[unroll]] for (uint i = 0; i < B_LOADS; i++)
        mem[STEP * A_LINE + (firstRow() + i) * B_LINE + lane % B_ROW] = x.b[i];
}

void load() {
    [[unroll]] for (uint e = 0; e < DEEP; e++) {
        [[unroll]] for (uint i = 0; i < DOWN; i++)
            coopMatLoad(lefts[e * DOWN + i], mem, e * TK * A_LINE + i * TM / 8, A_LINE,
                        gl_CooperativeMatrixLayoutColumnMajor);
        [[unroll]] for (uint j = 0; j < ACROSS; j++)
            coopMatLoad(rights[e * ACROSS + j], mem, STEP * A_LINE + e * TK * B_LINE + j * TN / 8, B_LINE,
                        gl_CooperativeMatrixLayoutRowMajor);
    }
}

void multiply() {
    [[unroll]] for (uint e = 0; e < DEEP; e++)
        [[unroll]] for (uint i = 0; i < DOWN; i++)
            [[unroll]] for (uint j = 0; j < ACROSS; j++)
                sums[i * ACROSS + j] =
                    coopMatMulAdd(lefts[e * DOWN + i], rights[e * ACROSS + j], sums[i * ACROSS + j]);
}

// turn multiplies step s from shared memory. It writes x, step s + 1, there and starts loading step s + 3.
void turn(inout Fetched x, Panel a, uint s) {
    load();
    barrier();
    put(x);
    fetch(x, a, s + 3);
    multiply();
    barrier();
}

void main() {
    if (p.phase == 1) {
        addParts(LOCAL);
        return;
    }
    Panel a;
    uint base;
    if (!locate(COLS, a, base)) return;
    lane = gl_LocalInvocationIndex;
    // Columns past the leading dimension are read from its end instead; they are never stored.
    octet = min(base / 8 + lane % B_ROW, p.ldb / 8 - 1);
    [[unroll]] for (uint i = 0; i < DOWN * ACROSS; i++) sums[i] = SUM(0.0);
    if (a.count > 0) {
        Fetched x, y;
        last = a.count / STEP - 1;
        fetchColumns(a, 0);
        fetch(x, a, 0);
        fetch(y, a, 1);
        put(x);
        fetch(x, a, 2);
        barrier();
        for (uint s = 0; s <= last; s += 2) {
            turn(y, a, s);
            if (s == last) break;
            turn(x, a, s + 1);
        }
    }
    // The sums go through shared memory, half of the columns at a time.
    const uint quads = COLS / 8, pitch = quads + 1;
    [[unroll]] for (uint h = 0; h < 2; h++) {
        barrier();
        [[unroll]] for (uint i = 0; i < DOWN; i++)
            [[unroll]] for (uint j = 0; j < ACROSS / 2; j++)
                coopMatStore(sums[i * ACROSS + h * (ACROSS / 2) + j], mem, i * TM * pitch + j * TN / 4, pitch,
                             gl_CooperativeMatrixLayoutRowMajor);
        barrier();
        [[dont_unroll]] for (uint t = lane; t < V * quads; t += LOCAL)
            keep(a, t / quads, base + h * (COLS / 2) + t % quads * 4,
                 uintBitsToFloat(mem[t / quads * pitch + t % quads]));
    }
}
