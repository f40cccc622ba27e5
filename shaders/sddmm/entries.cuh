// What the kernels share: reading the pattern, and the end of a row.

#pragma once

typedef unsigned int u32;
#define ALL 0xffffffffu

// entries reads N words of a list from one on, a multiple of N; past the end of the list the last ones. The list is
// followed by words of entries that there are in x and y, up to a multiple of four words.
template <int N> __device__ __forceinline__ void entries(u32 (&w)[N], const u32 *list, u32 from, u32 count) {
    from = min(from, (count - 1) / N * N);
    if (N == 4) {
        uint4 v = __ldg((const uint4 *)(list + from));
        w[0] = v.x, w[1 % N] = v.y, w[2 % N] = v.z, w[3 % N] = v.w;
    } else {
#pragma unroll
        for (int i = 0; i < N; i++) w[i] = __ldg(list + from + i);
    }
}

// leading returns 16 bytes of WIDTH elements with zeros in place of all but the first n.
template <int WIDTH> __device__ __forceinline__ uint4 leading(uint4 v, u32 n) {
    u32 w[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (u32 i = 0; i < 4; i++) {
        u32 bytes = n * (16 / WIDTH); // that stay
        if (4 * i >= bytes) w[i] = 0;
        else if (4 * i + 2 == bytes) w[i] &= 0xffff;
    }
    return make_uint4(w[0], w[1], w[2], w[3]);
}
