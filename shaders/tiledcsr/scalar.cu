// Tiled-CSR × dense in f32 without tensor cores.

#include "tiledcsr.cuh"
#include "../include/panel_scalar.cuh"
