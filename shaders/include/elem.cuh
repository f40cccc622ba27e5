// The element type. Needs ELEM (half.cuh).

#pragma once
#include "half.cuh"

#if ELEM == F32
typedef float Elem;
__device__ __forceinline__ float to_float(float x) { return x; }
#else
typedef unsigned short Elem;
__device__ __forceinline__ float to_float(unsigned short x) { return widen_lo<ELEM>(x); }
#endif
