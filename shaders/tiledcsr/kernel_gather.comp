// Computes: C = alpha·A·B + beta·C, A (rows × cols) in Tiled-CSR, f16, sums in f32, on cooperative matrices.
// Tile: a subgroup computes a group (V × COLS).
// Data movement: panel_gather.glsl: rows of B are gathered into shared memory, the next two steps to registers.
// Bound by: gathers of rows of B.

#version 460
#pragma use_vulkan_memory_model
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require

layout(constant_id = 1) const uint V = 16;

#define ELEM F16
#define HALVES_OF_C
#include "tiledcsr.glsl"
#include "../include/panel_gather.glsl"
