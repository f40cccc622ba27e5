// Computes: C = alpha·A·B + beta·C, A (rows × cols) in Tiled-CSR, in tf32 on tensor cores.
// Tile: a warp computes a group (8 × 32·CHUNKS).
// Data movement: panel_tf32.cuh: values and rows of B straight from L1 to fragments.
// Bound by: L1, which delivers each row of B once a group.

#include "tiledcsr.cuh"
#include "../include/panel_tf32.cuh"
