// With OVERLAP launches overlap (launches.cuh); else these functions do nothing.

#pragma once
#ifdef OVERLAP
#include "launches.cuh"
#else
__device__ __forceinline__ void launches_before() {}
__device__ __forceinline__ void launches_after() {}
#endif
