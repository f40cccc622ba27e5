// A test whether all sums of a warp are finite.

#pragma once

// all_finite reports whether the sums of all lanes are finite. All lanes of the warp call it.
template <int N> __device__ __forceinline__ bool all_finite(const float (&x)[N][4]) {
    float zeros[4] = {};
#pragma unroll
    for (int i = 0; i < N; i++)
#pragma unroll
        for (int e = 0; e < 4; e++) zeros[e] = fmaf(x[i][e], 0.0f, zeros[e]);
    return __all_sync(0xffffffff, zeros[0] + zeros[1] + (zeros[2] + zeros[3]) == 0);
}
