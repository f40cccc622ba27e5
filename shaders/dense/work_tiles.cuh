// How tiles of C become work tiles, with split-K for the last of them.
//
// The first p.whole tiles are summed by one CTA each. Each of the others is split along K into p.splits work tiles,
// which follow each other and run at the same time: all write their partial sums to the workspace, wait for each other,
// and each adds some columns of the tile, in the order of K (split_k.cuh).

#pragma once
#include "gemm.cuh"
#include "../include/split_k.cuh"

// A piece of the work: a tile, or a part of its sum.
struct WorkTile {
    u32 tile, slot, split; // of a split tile: its number among these
    u32 first, last; // steps of the sum
    bool is_split;
};

// work_tile_at returns work tile i; tiles have `steps` steps.
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

// store_columns calls store with parameters with which it stores the columns of a tile from col on: of a narrow tile
// half of the stored elements are none of them.
template <class F> __device__ __forceinline__ void store_columns(const Params &p, u32 col, F store) {
    if (COLS >= 16) store(p);
    else {
        Params own = p;
        own.n = min(own.n, col + COLS);
        store(own);
    }
}
