// Tiled-CSR × dense on tensor cores in tf32.

#include "tiledcsr.cuh"
#include "../include/panel_tf32.cuh"
