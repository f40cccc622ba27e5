// Vectors that lanes load, and their words.

#pragma once

typedef unsigned int u32;

__device__ __forceinline__ u32 word(const uint4 &v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }

// load returns what is at b, or zeros. (Predicated by hand: around branches the compiler would wait for each load before the
// next.)
__device__ __forceinline__ uint4 load(const uint4 *b, bool in) {
    uint4 x;
    asm volatile("{.reg .pred in; setp.ne.u32 in, %5, 0;\n\t"
                 "mov.u32 %0, 0; mov.u32 %1, 0; mov.u32 %2, 0; mov.u32 %3, 0;\n\t"
                 "@in ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];}"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "l"(b), "r"((u32)in));
    return x;
}
__device__ __forceinline__ uint2 load(const uint2 *b, bool in) {
    uint2 x;
    asm volatile("{.reg .pred in; setp.ne.u32 in, %3, 0;\n\t"
                 "mov.u32 %0, 0; mov.u32 %1, 0;\n\t"
                 "@in ld.global.nc.v2.u32 {%0, %1}, [%2];}"
                 : "=r"(x.x), "=r"(x.y)
                 : "l"(b), "r"((u32)in));
    return x;
}
__device__ __forceinline__ float4 load(const float4 *b, bool in) {
    float4 x;
    asm volatile("{.reg .pred in; setp.ne.u32 in, %5, 0;\n\t"
                 "mov.f32 %0, 0f00000000; mov.f32 %1, 0f00000000; mov.f32 %2, 0f00000000; mov.f32 %3, 0f00000000;\n\t"
                 "@in ld.global.nc.v4.f32 {%0, %1, %2, %3}, [%4];}"
                 : "=f"(x.x), "=f"(x.y), "=f"(x.z), "=f"(x.w)
                 : "l"(b), "r"((u32)in));
    return x;
}
__device__ __forceinline__ double2 load(const double2 *b, bool in) {
    double2 x;
    asm volatile("{.reg .pred in; setp.ne.u32 in, %3, 0;\n\t"
                 "mov.f64 %0, 0d0000000000000000; mov.f64 %1, 0d0000000000000000;\n\t"
                 "@in ld.global.nc.v2.f64 {%0, %1}, [%2];}"
                 : "=d"(x.x), "=d"(x.y)
                 : "l"(b), "r"((u32)in));
    return x;
}
