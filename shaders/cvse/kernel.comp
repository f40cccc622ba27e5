// Computes: C = alpha·A·B + beta·C, A (rows × cols) in CVSE, f32, f16 or bf16, sums in f32, on scalar units.
// Tile: a workgroup computes a panel (V × 4·LOCAL), an invocation (V × 4).
// Data movement: panel_scalar.glsl: values and columns through shared memory, rows of B straight from memory.
// Bound by: FMA, for wide C; gathers of rows of B else.

#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require

layout(constant_id = 1) const uint V = 8;

#include "cvse.glsl"
#include "../include/panel_scalar.glsl"
