// Elements of x and y.

#pragma once

typedef unsigned int u32;

// element returns the f32 bits of element i of m.
__device__ __forceinline__ u32 element(const void *m, size_t i, u32 elem) {
    if (elem == F32) return ((const u32 *)m)[i];
    u32 h = ((const unsigned short *)m)[i];
    return elem == BF16 ? h << 16 : __float_as_uint(widen_lo<F16>(h));
}

// four returns the f32 bits of four elements from i on, a multiple of four.
__device__ __forceinline__ uint4 four(const void *m, size_t i, u32 elem) {
    if (elem == F32) return __ldg((const uint4 *)m + i / 4);
    uint2 h = __ldg((const uint2 *)m + i / 4);
    if (elem == BF16) return make_uint4(h.x << 16, h.x & 0xffff0000u, h.y << 16, h.y & 0xffff0000u);
    return make_uint4(__float_as_uint(widen_lo<F16>(h.x)), __float_as_uint(widen_hi<F16>(h.x)),
                      __float_as_uint(widen_lo<F16>(h.y)), __float_as_uint(widen_hi<F16>(h.y)));
}
