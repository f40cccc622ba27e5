// Computes: C = alpha·A·B + beta·C, A (rows × cols) in CVSE, f32 on CUDA cores.
// Tile: a warp computes a panel (V × 128), a lane (V × 4).
// Data movement: panel_scalar.cuh: everything straight from L1 to registers.
// Bound by: FMA, for wide C; L1 else.

#include "cvse.cuh"
#include "../include/panel_scalar.cuh"
