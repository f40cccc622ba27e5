// Tiled-CSR × dense on scalar units.

#version 460
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require

layout(constant_id = 1) const uint V = 8;

#include "tiledcsr.glsl"
#include "../include/panel_scalar.glsl"
