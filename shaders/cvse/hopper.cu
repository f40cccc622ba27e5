// Computes: C = alpha·A·B + beta·C, A (rows × cols) in CVSE, f16 or bf16, sums in f32, on compute capability 9.0.
// Tile: a warp computes LISTS panels (ROWS × COLS).
// Data movement: panel_hopper.cuh: multicast TMA copies of windows of B (WINDOW × COLS) into a stage buffer, ldmatrix
// from there.
// Bound by: L2 to shared memory. It serves panels that share most rows of B.

#define CHUNKS 1
#define STEP 16
#include "cvse.cuh"
#include "../include/panel_hopper.cuh"
