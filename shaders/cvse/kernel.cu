// Computes: C = alpha·A·B + beta·C, A (rows × cols) in CVSE: panels of V rows that share columns, f16 or bf16, sums in
// f32.
// Tile: a warp computes a panel (V × 64·CHUNKS). The warps of a CTA have neighbouring panels and the same columns of C.
// Data movement: panel_gather.cuh: values by cp.async, rows of B straight from L1 to fragments.
// Bound by: L1, which delivers each row of B once a panel.

#include "cvse.cuh"
#include "../include/panel_gather.cuh"
