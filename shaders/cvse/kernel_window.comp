// Computes: C = alpha·A·B + beta·C, A (rows × cols) in CVSE, f16, sums in f32, on cooperative matrices of a known lane
// layout.
// Tile: a workgroup computes 2·WARPS panels (8 × 64 each).
// Data movement: panel_window.glsl: windows of B (WINDOW × 64) in shared memory, all panels gather from there.
// Bound by: shared-memory gathers. It serves panels that share most rows of B.

#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require

layout(constant_id = 1) const uint V = 8;
layout(constant_id = 5) const uint WINDOW = 256;

#define ELEM F16
#define HALVES_OF_C
#define CUT
#include "cvse.glsl"
#include "../include/panel_window.glsl"
