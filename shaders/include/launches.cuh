// Launches that overlap (programmatic dependent launch), from compute capability 9.0 on: see backend.Binary.Early.

#pragma once

// launches_before waits until the launches before this one are done, and what they wrote can be read.
__device__ __forceinline__ void launches_before() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
// launches_after lets the next launch begin where there is room. See backend.Binary.Early for when it may be called.
__device__ __forceinline__ void launches_after() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
