// C = A·B in tiles of one cooperative matrix per workgroup, row-major, sizes multiples of the tile.
// AB is the operands' type, CD the result's. Constants 0…3: workgroup (= subgroup) size, tile M, N, K.
#version 460
#pragma use_vulkan_memory_model
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint TM = 16;
layout(constant_id = 2) const uint TN = 16;
layout(constant_id = 3) const uint TK = 16;
layout(buffer_reference, std430, buffer_reference_align = 16) buffer In { AB v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Out { CD v[]; };
layout(push_constant, std430) uniform Push { In a; In b; Out c; uint n, k; } p;
void main() {
    uint row = gl_WorkGroupID.y * TM, col = gl_WorkGroupID.x * TN;
    coopmat<CD, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator> acc =
        coopmat<CD, gl_ScopeSubgroup, TM, TN, gl_MatrixUseAccumulator>(CD(0));
    for (uint k = 0; k < p.k; k += TK) {
        coopmat<AB, gl_ScopeSubgroup, TM, TK, gl_MatrixUseA> a;
        coopmat<AB, gl_ScopeSubgroup, TK, TN, gl_MatrixUseB> b;
        coopMatLoad(a, p.a.v, row * p.k + k, p.k, gl_CooperativeMatrixLayoutRowMajor);
        coopMatLoad(b, p.b.v, k * p.n + col, p.n, gl_CooperativeMatrixLayoutRowMajor);
        acc = coopMatMulAdd(a, b, acc);
    }
    coopMatStore(acc, p.c.v, row * p.n + col, p.n, gl_CooperativeMatrixLayoutRowMajor);
}
