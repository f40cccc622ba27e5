// Do the elements of 16×8×16 matrices lie in lanes as those of PTX's mma.m16n8k16 do? Matrices of numbers that say
// where they are are loaded, and each lane looks at what it has. Invocation i writes 1 to v[i] if it is as
// backend.Caps.Lanes says, else 0.

#version 460
#pragma use_vulkan_memory_model
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require

layout(local_size_x = 32) in;
layout(buffer_reference, std430, buffer_reference_align = 16) buffer Words { uint v[]; };
layout(push_constant, std430) uniform Push { Words result; } p;

shared float16_t halves[256];
shared float floats[128];

void main() {
    for (uint i = gl_LocalInvocationIndex; i < 256; i += 32) {
        halves[i] = float16_t(float(i));
        if (i < 128) floats[i] = float(i);
    }
    barrier();
    coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> a;
    coopmat<float16_t, gl_ScopeSubgroup, 16, 8, gl_MatrixUseB> b;
    coopmat<float, gl_ScopeSubgroup, 16, 8, gl_MatrixUseAccumulator> c;
    coopMatLoad(a, halves, 0, 16, gl_CooperativeMatrixLayoutRowMajor);
    coopMatLoad(b, halves, 0, 8, gl_CooperativeMatrixLayoutRowMajor);
    coopMatLoad(c, floats, 0, 8, gl_CooperativeMatrixLayoutRowMajor);
    bool same = a.length() == 8 && b.length() == 4 && c.length() == 4 && gl_SubgroupSize == 32;
    uint g = gl_SubgroupInvocationID / 4, t = gl_SubgroupInvocationID % 4;
    for (uint i = 0; i < 4 && same; i++) {
        uint k = 2 * t + i % 2 + 8 * (i / 2); // of the lane's four places along k, the ith
        same = uint(a[i]) == 16 * g + k && uint(a[4 + i]) == 16 * (g + 8) + k && uint(b[i]) == 8 * k + g &&
               uint(c[i]) == 8 * (g + 8 * (i / 2)) + 2 * t + i % 2;
    }
    p.result.v[gl_LocalInvocationIndex] = same ? 1 : 0;
}
