// CVSE × dense on tensor cores.

#include "cvse.cuh"
#include "../include/panel_gather.cuh"
