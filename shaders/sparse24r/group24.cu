// The kernel of shaders/nm for 2:4 on the sparse tensor cores of compute capability 9.0, which adds the remainder to what it
// stores.

#include "remainder.cuh"
#include "../nm/group24.cu"
