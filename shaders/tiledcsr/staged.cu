// Computes: C = alpha·A·B + beta·C, A (rows × cols) in Tiled-CSR, f16 or bf16, sums in f32.
// Tile: a CTA computes WARPS·PANELS groups (V × 64 each).
// Data movement: panel_staged.cuh: producer warps copy windows of B (WINDOW × 64) into shared memory, all groups gather
// from there.
// Bound by: shared-memory gathers. It serves groups that share most rows of B.

#define CHUNKS 1
#define STEP 16
#include "tiledcsr.cuh"
#include "../include/panel_staged.cuh"
