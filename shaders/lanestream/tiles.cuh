// Tiles of 8 columns of B and C, of which there are COLS, in shared memory.

#pragma once
#include "../include/launches.cuh"
#include "lanestream.cuh"

#define TILES (COLS / 8)
#define PITCH (COLS + 4)                 // of a row of sums in shared memory
#define SUMS (GROUP_ROWS * PITCH * 4)    // bytes of a group's sums

// swizzled returns where chunk c (of 8 columns) of row k lies in its row.
__device__ __forceinline__ u32 swizzled(u32 k, u32 c) {
    return TILES == 1 ? 0 : TILES == 2 ? (c ^ (k >> 2 & 1)) * 16 : (c ^ (k >> 1 & 3)) * 16;
}

// cluster_leave waits for the cluster's blocks, without an order of writes.
__device__ __forceinline__ void cluster_leave() { asm volatile("barrier.cluster.arrive.relaxed.aligned; barrier.cluster.wait.aligned;" ::: "memory"); }
