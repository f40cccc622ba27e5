// Tiled-CSR × dense on tensor cores with B staged in shared memory, for groups that share most rows of B.

#define CHUNKS 1
#define STEP 16
#include "tiledcsr.cuh"
#include "../include/panel_staged.cuh"
