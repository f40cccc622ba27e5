// Tiled-CSR × dense with windows of B in shared memory that tensor copies bring, for compute capability 9.0.

#define CHUNKS 1
#define STEP 16
#include "tiledcsr.cuh"
#include "../include/panel_hopper.cuh"
