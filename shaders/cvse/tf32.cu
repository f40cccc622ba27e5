// CVSE × dense on tensor cores in tf32.

#include "cvse.cuh"
#include "../include/panel_tf32.cuh"
