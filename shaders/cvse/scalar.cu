// CVSE × dense in f32 without tensor cores.

#include "cvse.cuh"
#include "../include/panel_scalar.cuh"
