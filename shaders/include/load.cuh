// Vector loads of lanes.

#pragma once

typedef unsigned int u32;

__device__ __forceinline__ u32 word(const uint4 &v, int i) { return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w; }

// load returns the vector at b, or zeros. The macros define it for vectors of two and of four elements whose PTX type
// is TYPE. (It is predicated by hand: with branches the compiler would wait for each load before the next.)
#define LOAD_2(VECTOR, TYPE, TO, ZERO) \
    __device__ __forceinline__ VECTOR load(const VECTOR *b, bool in) { \
        VECTOR x; \
        asm volatile("{.reg .pred in; setp.ne.u32 in, %3, 0;\n\t" \
                     "mov." TYPE " %0, " ZERO "; mov." TYPE " %1, " ZERO ";\n\t" \
                     "@in ld.global.nc.v2." TYPE " {%0, %1}, [%2];}" \
                     : TO(x.x), TO(x.y) \
                     : "l"(b), "r"((u32)in)); \
        return x; \
    }
#define LOAD_4(VECTOR, TYPE, TO, ZERO) \
    __device__ __forceinline__ VECTOR load(const VECTOR *b, bool in) { \
        VECTOR x; \
        asm volatile("{.reg .pred in; setp.ne.u32 in, %5, 0;\n\t" \
                     "mov." TYPE " %0, " ZERO "; mov." TYPE " %1, " ZERO "; " \
                     "mov." TYPE " %2, " ZERO "; mov." TYPE " %3, " ZERO ";\n\t" \
                     "@in ld.global.nc.v4." TYPE " {%0, %1, %2, %3}, [%4];}" \
                     : TO(x.x), TO(x.y), TO(x.z), TO(x.w) \
                     : "l"(b), "r"((u32)in)); \
        return x; \
    }
LOAD_4(uint4, "u32", "=r", "0")
LOAD_2(uint2, "u32", "=r", "0")
LOAD_4(float4, "f32", "=f", "0f00000000")
LOAD_2(double2, "f64", "=d", "0d0000000000000000")
#undef LOAD_2
#undef LOAD_4
