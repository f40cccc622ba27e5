// Computes: C = alpha·A·B + beta·C, A (rows × cols) in Tiled-CSR: groups of V rows that share columns, f16 or bf16,
// sums in f32.
// Tile: a warp computes a group (V × 64·CHUNKS). The warps of a CTA have the same group and neighbouring columns of C.
// Data movement: panel_gather.cuh (§IV-A): tiles of A by cp.async, rows of B straight from L1 to fragments.
// Bound by: L1, which delivers each row of B once a group.

#include "tiledcsr.cuh"
#include "../include/panel_gather.cuh"
