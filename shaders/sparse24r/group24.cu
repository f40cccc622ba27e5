// Computes: C = alpha·(Pairs + Remainder)·B + beta·C on the sparse tensor cores of compute capability 9.0: Pairs is
// 2:4, Remainder holds the other entries.
// Tile: nm/group24.cu's, whose source this includes.
// Data movement: nm/group24.cu's for Pairs. Before a tile is stored each warp gathers the rows of B of its remainder
// (remainder.cuh).
// Bound by: as nm/group24.cu, and gathers of rows of B for the remainder.

#include "remainder.cuh"
#include "../nm/group24.cu"
