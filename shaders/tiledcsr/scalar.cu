// Computes: C = alpha·A·B + beta·C, A (rows × cols) in Tiled-CSR, f32 on CUDA cores.
// Tile: a warp computes a group (V × 128), a lane (V × 4).
// Data movement: panel_scalar.cuh: everything straight from L1 to registers.
// Bound by: FMA, for wide C; L1 else.

#include "tiledcsr.cuh"
#include "../include/panel_scalar.cuh"
