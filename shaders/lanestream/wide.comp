// Computes: C (rows × n) = alpha·A·B + beta·C for many columns, A (rows × cols) as lane streams, f16, sums in f32, on
// cooperative matrices of a known lane layout (../include/lanes.glsl).
// Tile: a workgroup of four subgroups computes (128 × 128). Subgroup 2d + a computes (64 × 64): group d of the two, and
// columns from 64·a on. The streams of a group are multiplied one after the other.
// Data movement: shared memory holds, for each group, the segments of values that a step may read from, and a step's 32
// rows of B for all subgroups. The next ones are prefetched to registers, so that two workgroups have room on a
// multiprocessor. Lane 4g + q reads columns 8g to 8g + 7 of rows q, q + 4, q + 8 and q + 12 of each 16, so that column
// g of operation t is column 8g + t of the subgroup's. Octet c of row r is stored at c ^ 2·(r mod 4), which spreads
// reads over the banks.
// Bound by: instructions that expand the masks, then shared memory.

#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shared_memory_block : require

layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
layout(constant_id = 1) const uint ROOM = 34; // rows of values that shared memory has room for, for each group
layout(constant_id = 2) const uint SEGMENT = 17; // rows of values of a segment, at most
// Rows of 128 bytes of shared memory: of two groups and 64 of B, or 16 for each subgroup's sums.
layout(constant_id = 3) const uint ROWS = 136;

#define ELEM F16
#include "lanestream.glsl"
#include "../include/store_halves.glsl"
#include "../include/lanes.glsl"

const uint LOCAL = 128;
const uint STAGE = STEP_COLS * 16; // octets of a step of B
shared Words_ { uint v[ROWS * 32]; }
words;
shared Octets_ { uvec4 v[ROWS * 8]; }
octets; // the same memory
#include "chains.glsl"

const uint B_AT = 2 * ROOM * 8; // the first octet of B
const uint A_LOADS = (SEGMENT + 7) / 8; // octets of a segment that each of 64 invocations loads
const uint B_LOADS = STAGE / LOCAL;

SUM sums[32]; // sums[8·i + t]: the i-th 16 rows, operation t

uvec4 lookahead[A_LOADS]; // the invocation's octets of the next segment
struct Rows {
    uvec4 v[B_LOADS];
};

uint segmentRows; // rows of values of a segment
uint octet, last; // the invocation's first octet of the stream's values; the last octet of all values
uint room; // the group's first octet in shared memory

// fetch starts loading segment j. All invocations load, needed or not, because the compiler waits for loads at the end
// of a branch.
void fetch(uint j) {
    uint from = octet + j * segmentRows * 8;
    [[unroll]] for (uint i = 0; i < A_LOADS; i++)
        lookahead[i] = Octets(uvec2(p.values)).v[min(from + i * 64, last)];
}

// keep writes the segment that was loaded behind `others` segments of the group.
void keep(uint others) {
    uint t = gl_LocalInvocationIndex % 64, n = segmentRows * 8, to = room + others * n + t;
    [[unroll]] for (uint i = 0; i < A_LOADS; i++)
        if (i * 64 + t < n) octets.v[to + i * 64] = lookahead[i];
}

// move drops the first segment: it moves the others to the front, and writes the one that was loaded behind them.
// Invocations also read past the last segment, where B is.
void move() {
    uint t = gl_LocalInvocationIndex % 64, n = segmentRows * 8, to = room + t;
    for (uint k = 1; k < p.window; k++) {
        uvec4 x[A_LOADS];
        [[unroll]] for (uint i = 0; i < A_LOADS; i++)
            x[i] = octets.v[to + n + i * 64];
        [[unroll]] for (uint i = 0; i < A_LOADS; i++)
            if (i * 64 + t < n) octets.v[to + i * 64] = x[i];
        to += n;
    }
    keep(p.window - 1);
}

// fetchB starts loading 32 rows of B. Rows past the last are read as the last one: A has zeros there.
Rows fetchB(uvec2 b, uint row) {
    Rows x;
    [[unroll]] for (uint i = 0; i < B_LOADS; i++)
        x.v[i] = Octets(at(b, min(row + i * (LOCAL / 16) + gl_LocalInvocationIndex / 16, p.cols - 1), 2 * p.ldb)).v[0];
    return x;
}

// keepB writes them to shared memory.
void keepB(Rows x) {
    [[unroll]] for (uint i = 0; i < B_LOADS; i++) {
        uint r = i * (LOCAL / 16) + gl_LocalInvocationIndex / 16;
        octets.v[B_AT + r * 16 + (gl_LocalInvocationIndex % 16 ^ 2 * (r & 3u))] = x.v[i];
    }
}

// word multiplies 16 columns of A. `from` has the numbers of the next words of the lane's two chains, b0 to b3 are its
// rows of B.
void word(uint mask, inout uvec2 from, uvec4 b0, uvec4 b1, uvec4 b2, uvec4 b3) {
    OPERAND_B y[8];
    [[unroll]] for (uint t = 0; t < 8; t += 2) {
        f16vec2 r0 = unpackFloat2x16(b0[t / 2]), r1 = unpackFloat2x16(b1[t / 2]), r2 = unpackFloat2x16(b2[t / 2]),
                r3 = unpackFloat2x16(b3[t / 2]);
        y[t] = columnOf(r0.x, r1.x, r2.x, r3.x);
        y[t + 1] = columnOf(r0.y, r1.y, r2.y, r3.y);
    }
    [[unroll]] for (uint i = 0; i < 4; i++) {
        OPERAND_A x = tileOfA(mask, i, from);
        [[unroll]] for (uint t = 0; t < 8; t++)
            sums[8 * i + t] = coopMatMulAdd(x, y[t], sums[8 * i + t]);
    }
}

// multiply adds the product of one stream.
void multiply(uint group, uint split, uvec2 b, uint across) {
    uint stream = group * p.splits + split, first = firstSegment(split) * p.steps,
         steps = firstSegment(split + 1) * p.steps - first;
    uint lane = gl_SubgroupInvocationID, g = lane >> 2, q = lane & 3u;
    if (steps == 0) return;
    octet = rowAt(stream) * 8 + gl_LocalInvocationIndex % 64, last = max(rowAt(streams()) * 8, 1) - 1;
    segmentRows = segmentRowsAt(stream);
    barrier();
    for (uint j = 0; j < p.window; j++) {
        fetch(j);
        keep(j);
    }
    fetch(p.window);
    Rows rowsB = fetchB(b, first * STEP_COLS);
    uvec2 masks = maskAt(group, first), bits = Pairs(masks).v[lane], from = uvec2(4 * room + lane);
    for (uint s = 0, n = 0, j = p.window; s < steps; s++) {
        keepB(rowsB);
        barrier();
        uvec2 m = bits;
        bits = Pairs(masks).v[min(s + 1, steps - 1) * 32 + lane];
        rowsB = fetchB(b, (first + s + 1) * STEP_COLS);
        uint at_ = B_AT + q * 16 + (8 * across + g ^ 2 * q);
        [[dont_unroll]] for (uint w = 0; w < 2; w++) {
            word(m.x, from, octets.v[at_], octets.v[at_ + 64], octets.v[at_ + 128], octets.v[at_ + 192]);
            m.x = m.y;
            at_ += 256;
        }
        barrier();
        if (++n == p.steps) { // the segment ends
            n = 0;
            move();
            fetch(++j);
            from -= segmentRows * 32;
        }
    }
}

void main() {
    uint pairs = (p.groups + 1) / 2, blocks = pairs * ((p.n + 127) / 128),
         block = gl_WorkGroupID.x + gl_WorkGroupID.z * p.width;
    if (block >= blocks) return;
    uint base = block % ((p.n + 127) / 128) * 128, lane = gl_SubgroupInvocationID, g = lane >> 2, q = lane & 3u;
    uint down = gl_SubgroupID / 2, across = gl_SubgroupID % 2, number = block / ((p.n + 127) / 128) * 2 + down,
         group = min(number, p.groups - 1);
    // Columns past the leading dimension are read from its end instead; they are never stored.
    uvec2 b = at(uvec2(p.b), min(base / 8 + gl_LocalInvocationIndex % 16, p.ldb / 8 - 1), 16);
    room = down * ROOM * 8;
    [[unroll]] for (uint i = 0; i < 32; i++)
        sums[i] = SUM(0.0);
    for (uint split = 0; split < p.splits; split++) multiply(group, split, b, across);
    barrier();

    // In operation t a lane has rows g and g + 8 of 16: in elements 2·h and 2·h + 1, for row g + 8·h, columns 16·q + t
    // and 16·q + 8 + t. The sums go through shared memory, 16 rows at a time, so that the code is small.
    const uint pitch = 68;
    uint mine = gl_SubgroupID * 16 * pitch;
    [[dont_unroll]] for (uint i = 0; i < 4; i++) {
        [[unroll]] for (uint h = 0; h < 2; h++)
            [[unroll]] for (uint t = 0; t < 8; t++) {
                words.v[mine + (8 * h + g) * pitch + 16 * q + t] = floatBitsToUint(sums[t][2 * h]);
                words.v[mine + (8 * h + g) * pitch + 16 * q + 8 + t] = floatBitsToUint(sums[t][2 * h + 1]);
            }
        [[unroll]] for (uint t = 0; t < 24; t++)
            sums[t] = sums[t + 8];
        subgroupMemoryBarrierShared();
        subgroupBarrier();
        [[dont_unroll]] for (uint h = 0; h < 2; h++) {
            uint r = 16 * i + 8 * h + g, row = group * GROUP_ROWS + r, j = base + 64 * across + 16 * q;
            if (number >= p.groups || row >= p.rows || j >= p.n) continue;
            [[dont_unroll]] for (uint c = 0; c < 16 && j + c < p.n; c += 8) {
                float x[8];
                [[unroll]] for (uint e = 0; e < 8; e++)
                    x[e] = uintBitsToFloat(words.v[mine + (8 * h + g) * pitch + 16 * q + c + e]);
                addRemainder(row, 0, 1, j + c, x);
                vec4 y = vec4(x[0], x[1], x[2], x[3]);
                [[dont_unroll]] for (uint e = c; e < c + 8 && j + e < p.n; e += 4) {
                    y = repair(group, r, j + e, y);
                    if (storeType == F16) storeHalves(row, j + e, y);
                    else storeFloats(row, j + e, y);
                    y = vec4(x[4], x[5], x[6], x[7]);
                }
            }
        }
        subgroupMemoryBarrierShared();
        subgroupBarrier();
    }
}
