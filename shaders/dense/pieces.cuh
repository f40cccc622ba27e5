// How tiles of C are shared out, and added up where several blocks sum parts of one.
//
// The first p.whole tiles are summed by one block each. Each of the rest is cut along the sum into p.splits parts, whose
// blocks follow each other and run at the same time: all write their sums to the workspace, wait for each other, and each adds
// up some columns of the tile, in the order of the parts (parts.cuh).

#pragma once
#include "gemm.cuh"
#include "../include/parts.cuh"

// A piece of the work: a tile, or a part of its sum.
struct Piece {
    u32 tile, slot, part; // of a split tile: its number among these
    u32 first, last;      // steps of the sum
    bool split;
};

// piece_at returns piece i of tiles that have so many steps.
__device__ __forceinline__ Piece piece_at(u32 i, u32 steps, const Params &p) {
    if (i < p.whole || p.splits < 2) return {i, 0, 0, 0, steps, false};
    u32 slot = (i - p.whole) / p.splits, part = (i - p.whole) % p.splits;
    return {p.whole + slot, slot, part, (u32)((u64)steps * part / p.splits), (u32)((u64)steps * (part + 1) / p.splits), true};
}

// store_columns calls store with parameters with which it stores the columns of a tile from col on: of a narrow tile
// half of what is stored is none of them.
template <class F> __device__ __forceinline__ void store_columns(const Params &p, u32 col, F store) {
    if (COLS >= 16) store(p);
    else {
        Params own = p;
        own.n = min(own.n, col + COLS);
        store(own);
    }
}
