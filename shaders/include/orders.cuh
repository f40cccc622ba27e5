// Orders of B and C, which bits of the parameter `store` tell (spec.Problem.OrderWord).

#pragma once

// by_columns_b and by_columns_c report whether B and C are column-major.
__device__ __forceinline__ bool by_columns_b(unsigned store) { return store >> 12 & 1; }
__device__ __forceinline__ bool by_columns_c(unsigned store) { return store >> 13 & 1; }

// place_in_b returns the number of B's element (k, col).
template <class P>
__device__ __forceinline__ unsigned long long place_in_b(const P &p, unsigned long long k, unsigned col) {
    return by_columns_b(p.store) ? (unsigned long long)col * p.ldb + k : k * p.ldb + col;
}
