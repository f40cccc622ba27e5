// Panels × dense on cooperative matrices of a known lane layout (lanes.glsl), f16, sums in f32. A kernel's own file
// defines locate and rowOf.
//
// Tile: a subgroup computes a panel (V × 64·CHUNKS). A step is 16 vectors; lane 4g + t has four of them, 4t to 4t + 3.
// Panels have multiples of 16 vectors.
// Data movement: a lane reads its vectors' rows of B straight from memory. A's values are stored in the order in which
// lanes hold them: lane l of step s has 4·V/8 f16 values from (32·s + l)·4·V/8 on; vector i of its four in row 8h + g
// is value 4h + i.
// Bound by: gathers of rows of B.

layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
layout(constant_id = 2) const uint CHUNKS = 1;
layout(constant_id = 3) const uint SHARED = 136; // uvec4 of shared memory: V rows of 64·CHUNKS columns of C

#include "lanes.glsl"

shared vec4 mem[SHARED];

const uint WIDE = 64 * CHUNKS;
const uint HALVES = V / 8;
const uint ROWS = 4 * CHUNKS; // octets of B that a lane loads for a step

uint octetOf[CHUNKS]; // where in a row of B the lane's octets are
SUM sums[HALVES * CHUNKS * 4];

struct Step {
    uvec4 rows[ROWS];
    uvec2 values[HALVES];
};

void fetch(out Step x, Panel a, uint step, uvec4 k) {
    [[unroll]] for (uint i = 0; i < 4; i++)
        [[unroll]] for (uint c = 0; c < CHUNKS; c++) x.rows[i * CHUNKS + c] = Octets(rowOfB(k[i])).v[octetOf[c]];
    [[unroll]] for (uint h = 0; h < HALVES; h++)
        x.values[h] = Pairs(a.values).v[(step * 32 + gl_SubgroupInvocationID) * HALVES + h];
}

uvec4 columns(Panel a, uint step) { return Octets(a.cols).v[step * 4 + (gl_SubgroupInvocationID & 3)]; }

void multiply(Step s) {
    OPERAND_B y[HALVES];
    [[unroll]] for (uint h = 0; h < HALVES; h++)
        y[h] = values8(s.values[h]);
    [[unroll]] for (uint c = 0; c < CHUNKS; c++)
        [[unroll]] for (uint j = 0; j < 4; j++) {
            OPERAND_A x =
                columns16(s.rows[c][j], s.rows[CHUNKS + c][j], s.rows[2 * CHUNKS + c][j], s.rows[3 * CHUNKS + c][j]);
            [[unroll]] for (uint h = 0; h < HALVES; h++) {
                uint n = (h * CHUNKS + c) * 4 + j;
                sums[n] = coopMatMulAdd(x, y[h], sums[n]);
            }
        }
}

void main() {
    if (p.phase == 1) {
        addParts(gl_WorkGroupSize.x);
        return;
    }
    Panel a;
    uint base, lane = gl_SubgroupInvocationID, g = lane >> 2, t = lane & 3;
    if (!locate(WIDE, a, base)) return;
    // Columns past the leading dimension are read from its end instead; they are never stored.
    [[unroll]] for (uint c = 0; c < CHUNKS; c++)
        octetOf[c] = min(base + 64 * c + 8 * g, p.ldb - 8) >> 3;
    [[unroll]] for (uint i = 0; i < HALVES * CHUNKS * 4; i++)
        sums[i] = SUM(0.0);

    // Two steps are in flight, and the columns of the one after them. Past the panel's end the last step is fetched
    // again.
    uint steps = a.count / 16;
    if (steps > 0) {
        Step x, y;
        uint last = steps - 1;
        fetch(x, a, 0, columns(a, 0));
        uvec4 k = columns(a, min(1, last));
        for (uint s = 0; s < steps; s += 2) {
            fetch(y, a, min(s + 1, last), k);
            k = columns(a, min(s + 2, last));
            multiply(x);
            if (s == last) break;
            fetch(x, a, min(s + 2, last), k);
            k = columns(a, min(s + 3, last));
            multiply(y);
        }
    }

    // The sums go through shared memory, row by row of C.
    const uint quads = WIDE / 4, pitch = quads + 1;
    [[unroll]] for (uint h = 0; h < HALVES; h++)
        [[unroll]] for (uint c = 0; c < CHUNKS; c++) [[unroll]] for (uint e = 0; e < 2; e++)
            [[unroll]] for (uint i = 0; i < 2; i++) {
            uint n = (h * CHUNKS + c) * 4 + 2 * i;
            mem[(8 * h + 2 * t + e) * pitch + 16 * c + 2 * g + i] = quadOf(sums[n], sums[n + 1], e);
        }
    barrier();
    for (uint i = lane; i < V * quads; i += 32) {
        uint r = i / quads;
        keep(a, r, base + 4 * (i % quads), mem[r * pitch + i % quads]);
    }
}
