// Tiled-CSR × dense on tensor cores (§IV-A): tiles go to shared memory by asynchronous copies, gathered rows of
// B straight to fragments.

#include "tiledcsr.cuh"
#include "../include/panel_gather.cuh"
