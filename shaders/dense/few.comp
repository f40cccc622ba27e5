// Computes: C (rows × n) = alpha·A·B + beta·C, dense, few columns, f16, sums in f32, on cooperative matrices of a known
// lane layout (../include/lanes.glsl).
// Tile: a workgroup computes (16·DOWN × 8·TILES). Its subgroups split K: each takes every SUBS-th chunk of 64 of k.
// Their partial sums are added in order at the end.
// Data movement: each subgroup reads its chunks straight from memory to registers, and prefetches the next one. Lane 4g
// + t has octets t and t + 4 of rows g and g + 8 of each 16, which are k = 8t + 4e + i and 32 + 8t + 4e + i of four
// operations, and of these rows of B the columns from TILES·g on.
// Bound by: the bytes of A.

#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require

layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
layout(constant_id = 1) const uint SUBS = 8;
layout(constant_id = 2) const uint ROWS = 32;
layout(constant_id = 3) const uint COLS = 8; // 8, 16 or 32
layout(constant_id = 4) const uint RIGHT_ALONG = 0; // B is column-major

#define ELEM F16
#include "gemm.glsl"
#include "../include/store_halves.glsl"
#include "../include/lanes.glsl"

const uint CHUNK = 64;
const uint DOWN = ROWS / 16, TILES = COLS / 8;
const uint PITCH = COLS + 4; // floats from a row of a subgroup's sums to the next

shared float outs[SUBS * ROWS * PITCH];

SUM sums[DOWN * TILES];

layout(buffer_reference, std430, buffer_reference_align = 2) readonly buffer Singles { uint16_t v[]; };
layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Doubles { uint v[]; };

// Chunk is the lane's elements of a chunk.
struct Chunk {
    uvec4 a[4 * DOWN]; // octets t and t + 4 of rows g, then of g + 8
    uvec2 b[16]; // the lane's columns of B: at each k
    uvec4 c[2 * TILES]; // or, if B is column-major, of each column its octets
};

// fetch loads a chunk. Values of k past the last are read as the last: A has zeros there, or is cut. The table sees to
// it that B has less than 2^31 elements, and A less than 2^31 octets.
void fetch(out Chunk x, Operand l, Operand r, uint row, uint col, uint k) {
    uint g = gl_SubgroupInvocationID >> 2, t = gl_SubgroupInvocationID & 3, pitch = l.ld / 8;
    [[unroll]] for (uint i = 0; i < 2 * DOWN; i++) {
        uint from = min(row + 8 * i + g, l.lines - 1) * pitch;
        [[unroll]] for (uint o = 0; o < 2; o++)
            x.a[2 * i + o] = Octets(l.x).v[from + min(k / 8 + t + 4 * o, pitch - 1)];
    }
    if (RIGHT_ALONG != 0) {
        [[unroll]] for (uint j = 0; j < TILES; j++)
            [[unroll]] for (uint o = 0; o < 2; o++) x.c[2 * j + o] =
                Octets(r.x)
                    .v[min(col + TILES * g + j, r.lines - 1) * (r.ld / 8) + min(k / 8 + t + 4 * o, r.ld / 8 - 1)];
    } else {
        uint j = col + TILES * g;
        if (j >= r.ld) j = 0;
        [[unroll]] for (uint i = 0; i < 16; i++) {
            uint at_ = min(k + i / 8 * 32 + 8 * t + i % 8, p.cols - 1) * r.ld + j;
            if (TILES == 1) x.b[i] = uvec2(uint(Singles(r.x).v[at_]), 0);
            else if (TILES == 2) x.b[i] = uvec2(Doubles(r.x).v[at_ / 2], 0);
            else x.b[i] = Pairs(r.x).v[at_ / 4];
        }
    }
}

// cut makes the elements from number `left` on 0.
uvec4 cut(uvec4 v, int left) {
    [[unroll]] for (int e = 0; e < 4; e++)
        v[e] &= left >= 2 * e + 2 ? 0xffffffffu : left > 2 * e ? 0xffffu : 0;
    return v;
}

// multiply multiplies a chunk, which begins at k.
void multiply(Chunk x, uint k) {
    uint t = gl_SubgroupInvocationID & 3;
    if (k + CHUNK > p.cols) {
        [[unroll]] for (uint i = 0; i < 4 * DOWN; i++)
            x.a[i] = cut(x.a[i], int(p.cols) - int(k + 8 * t + i % 2 * 32));
        if (RIGHT_ALONG != 0) [[unroll]]
            for (uint i = 0; i < 2 * TILES; i++) x.c[i] = cut(x.c[i], int(p.cols) - int(k + 8 * t + i % 2 * 32));
    }
    [[unroll]] for (uint o = 0; o < 2; o++)
        [[unroll]] for (uint e = 0; e < 2; e++) {
            OPERAND_B y[TILES];
            [[unroll]] for (uint j = 0; j < TILES; j++) {
                if (RIGHT_ALONG != 0) y[j] = values8(uvec2(x.c[2 * j + o][2 * e], x.c[2 * j + o][2 * e + 1]));
                else [[unroll]]
                    for (uint i = 0; i < 4; i++) {
                        f16vec2 two = unpackFloat2x16(x.b[8 * o + 4 * e + i][j / 2]);
                        y[j][i] = j % 2 == 0 ? two.x : two.y;
                    }
            }
            [[unroll]] for (uint i = 0; i < DOWN; i++) {
                f16vec2 r0 = unpackFloat2x16(x.a[4 * i + o][2 * e]), r1 = unpackFloat2x16(x.a[4 * i + o][2 * e + 1]);
                f16vec2 r2 = unpackFloat2x16(x.a[4 * i + 2 + o][2 * e]),
                        r3 = unpackFloat2x16(x.a[4 * i + 2 + o][2 * e + 1]);
                OPERAND_A a;
                a[0] = r0.x;
                a[1] = r0.y;
                a[2] = r1.x;
                a[3] = r1.y;
                a[4] = r2.x;
                a[5] = r2.y;
                a[6] = r3.x;
                a[7] = r3.y;
                [[unroll]] for (uint j = 0; j < TILES; j++)
                    sums[i * TILES + j] = coopMatMulAdd(a, y[j], sums[i * TILES + j]);
            }
        }
}

void main() {
    uint row, col;
    if (!tileAt(row, col)) return;
    Operand x[2] = {left(), right()};
    [[unroll]] for (uint i = 0; i < DOWN * TILES; i++)
        sums[i] = SUM(0.0);
    const uint turn = SUBS * CHUNK;
    uint k = gl_SubgroupID * CHUNK;
    if (k < p.cols) {
        Chunk even, odd;
        fetch(even, x[0], x[1], row, col, k);
        while (true) {
            fetch(odd, x[0], x[1], row, col, k + turn);
            multiply(even, k);
            if ((k += turn) >= p.cols) break;
            fetch(even, x[0], x[1], row, col, k + turn);
            multiply(odd, k);
            if ((k += turn) >= p.cols) break;
        }
    }
    uint g = gl_SubgroupInvocationID >> 2, t = gl_SubgroupInvocationID & 3, mine = gl_SubgroupID * ROWS * PITCH;
    [[unroll]] for (uint i = 0; i < DOWN; i++)
        [[unroll]] for (uint j = 0; j < TILES; j++) [[unroll]] for (uint e = 0; e < 4; e++)
            outs[mine + (16 * i + e / 2 * 8 + g) * PITCH + TILES * (2 * t + e % 2) + j] = sums[i * TILES + j][e];
    barrier();
    for (uint n = gl_LocalInvocationIndex; n < ROWS * COLS / 4; n += 32 * SUBS) {
        uint r = n / (COLS / 4), c = n % (COLS / 4) * 4;
        if (row + r >= p.rows || col + c >= p.n) continue;
        vec4 v = vec4(0);
        for (uint s = 0; s < SUBS; s++) {
            uint from = s * ROWS * PITCH + r * PITCH + c;
            v += vec4(outs[from], outs[from + 1], outs[from + 2], outs[from + 3]);
        }
        v = repair(x, row + r, col + c, v);
        if (storeType == F16) storeHalves(row + r, col + c, v);
        else storeFloats(row + r, col + c, v);
    }
}
