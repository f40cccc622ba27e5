// Computes: C = alpha·A·B + beta·C, A (rows × cols) in CVSE, f16 or bf16, sums in f32.
// Tile: a CTA computes WARPS·PANELS panels (V × 64 each).
// Data movement: panel_staged.cuh: producer warps copy windows of B (WINDOW × 64) into shared memory, all panels gather
// from there.
// Bound by: shared-memory gathers. It serves panels that share most rows of B.

#define CHUNKS 1
#define STEP 16
#include "cvse.cuh"
#include "../include/panel_staged.cuh"
