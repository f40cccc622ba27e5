// Work tiles: tiles of C, the last of them perhaps split along K. If there are clusters, a tile is a cluster's.
//
// Each of the first p.whole tiles is one work tile. Each of the others becomes p.splits work tiles with consecutive
// numbers, which run at the same time. Each writes its partial sums to the workspace, waits for the others, and adds
// all partial sums of some columns of the tile, in the order of K (split_k.cuh).

#pragma once
#include "gemm.cuh"
#include "../include/split_k.cuh"

// WorkTile is a tile, or one split of its sum over K.
struct WorkTile {
    u32 tile, slot, split; // slot: the tile's number among those that are split
    u32 first, last; // the steps along K are first to last - 1
    bool is_split;
};

// work_tile_at returns work tile i. The sum of a whole tile has `steps` steps.
__device__ __forceinline__ WorkTile work_tile_at(u32 i, u32 steps, const Params &p) {
    if (i < p.whole || p.splits < 2) return {i, 0, 0, 0, steps, false};
    u32 slot = (i - p.whole) / p.splits, split = (i - p.whole) % p.splits;
    return {p.whole + slot,
            slot,
            split,
            (u32)((u64)steps * split / p.splits),
            (u32)((u64)steps * (split + 1) / p.splits),
            true};
}

// store_columns calls store with parameters that limit it to the columns of the tile from column col on. That matters
// for COLS = 8 alone: store functions handle 16 columns at a time, and the last 8 belong to the next tile.
template <class F> __device__ __forceinline__ void store_columns(const Params &p, u32 col, F store) {
    if (COLS >= 16) store(p);
    else {
        Params own = p;
        own.n = min(own.n, col + COLS);
        store(own);
    }
}
