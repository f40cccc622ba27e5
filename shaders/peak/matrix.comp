// Computes: nothing of use: it measures what a Vulkan device's cooperative matrices attain, f16·f16→f32 or s8·s8→s32
// (peak.go).
// Tile: one subgroup a workgroup, p.rounds rounds.
// Data movement: none; operands stay in registers.
// Bound by: the matrix units.

#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_cooperative_matrix : require
#ifdef S8
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#define ELEM_T int8_t
#define SUM_T int
#else
#define ELEM_T float16_t
#define SUM_T float
#endif
#include "params.glsl"

layout(local_size_x_id = 0, local_size_y = 1, local_size_z = 1) in;
layout(constant_id = 1) const uint M = 16;
layout(constant_id = 2) const uint N = 16;
layout(constant_id = 3) const uint K = 16;

void main() {
    coopmat<ELEM_T, gl_ScopeSubgroup, M, K, gl_MatrixUseA> a =
        coopmat<ELEM_T, gl_ScopeSubgroup, M, K, gl_MatrixUseA>(p.src.v[0]);
    coopmat<ELEM_T, gl_ScopeSubgroup, K, N, gl_MatrixUseB> b =
        coopmat<ELEM_T, gl_ScopeSubgroup, K, N, gl_MatrixUseB>(p.src.v[1]);
    coopmat<SUM_T, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator> d[8];
    [[unroll]] for (int i = 0; i < 8; i++)
        d[i] = coopmat<SUM_T, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator>(SUM_T(i));
    for (uint r = 0; r < p.rounds; r++) {
        [[unroll]] for (int i = 0; i < 8; i++)
            d[i] = coopMatMulAdd(a, b, d[i]);
    }
    SUM_T s = SUM_T(0);
    [[unroll]] for (int i = 0; i < 8; i++) {
        for (int e = 0; e < d[i].length(); e++) s += d[i][e];
    }
    p.dst.v[gl_GlobalInvocationID.x] = ELEM_T(s);
}
