// CVSE × dense on tensor cores with B staged in shared memory, for panels that share most rows of B.

#define CHUNKS 1
#define STEP 16
#include "cvse.cuh"
#include "../include/panel_staged.cuh"
