// RFX-p's arithmetic in integers: ranges of elements, quantising, the one rounding of a 128-bit sum.
// Package rfx defines it; names are the same. Floats are passed as their bits.

#pragma once

#define WILD (1u << 20) // of a range: there are elements that are not finite

typedef __int128 i128;

// finite tells whether f32 bits are neither infinite nor NaN.
__device__ __forceinline__ bool finite(unsigned x) { return (x & 0x7f800000u) != 0x7f800000u; }

// exponent returns e of |x| = m·2^e, m < 2^24; significand returns m.
__device__ __forceinline__ int exponent(unsigned x) { return (int)max((x >> 23) & 255u, 1u) - 150; }
__device__ __forceinline__ unsigned significand(unsigned x) {
    return (x & 0x7fffffu) | ((x & 0x7f800000u) != 0 ? 0x800000u : 0);
}

// range_of returns the range of one element.
__device__ __forceinline__ unsigned range_of(unsigned x) {
    if (!finite(x)) return WILD;
    unsigned m = significand(x);
    if (m == 0) return 0;
    int n = 31 - __clz(m);
    int e = exponent(x) + n + (m << (23 - n) > 2039u << 13);
    return (unsigned)(e + 512) | (unsigned)(512 - exponent(x) - (__ffs(m) - 1)) << 10;
}

// join returns the range of two sets of elements together.
__device__ __forceinline__ unsigned join(unsigned r, unsigned s) {
    return max(r & 0x3ffu, s & 0x3ffu) | max(r & 0xffc00u, s & 0xffc00u) | ((r | s) & WILD);
}

// unit returns L for a range.
__device__ __forceinline__ int unit(unsigned r, unsigned bits) {
    return ((r & 0x3ffu) == 0 ? 0 : (int)(r & 0x3ffu) - 512) - (int)bits + 1;
}

// quantise returns RNE(x·2^-l), 0 for an x that is not finite.
__device__ __forceinline__ long long quantise(unsigned x, int l) {
    unsigned m = significand(x);
    int s = l - exponent(x);
    if (!finite(x) || m == 0 || s > 25) return 0;
    long long q = (long long)m << max(-s, 0);
    if (s > 0) {
        unsigned rest = m << (32 - s); // below the unit
        q = m >> s;
        q += rest > 0x80000000u || (rest == 0x80000000u && (q & 1) != 0);
    }
    return x >> 31 ? -q : q;
}

// round128 returns a·2^scale as the nearest f32: ties to even, gradual underflow, overflow to an
// infinity, +0 for zero.
__device__ __noinline__ unsigned round128(i128 a, int scale) {
    unsigned sign = a < 0 ? 0x80000000u : 0;
    unsigned __int128 m = a < 0 ? -(unsigned __int128)a : (unsigned __int128)a;
    unsigned long long hi = m >> 64, lo = m;
    int length = hi != 0 ? 128 - __clzll(hi) : 64 - __clzll(lo);
    int last = max(length - 24 + scale, -149); // the exponent of the result's last bit
    int n = last - scale;
    unsigned q;
    if (n <= 0) {
        q = (unsigned)lo << -n;
    } else if (n > 127) {
        q = 0;
    } else {
        unsigned __int128 rest = m << (128 - n), half = (unsigned __int128)1 << 127;
        q = (unsigned)(m >> n);
        q += rest > half || (rest == half && (q & 1) != 0);
    }
    if (q == 0) return 0;
    return sign | (last > 104 ? 0x7f800000u : min(((unsigned)(last + 149) << 23) + q, 0x7f800000u));
}

// rounded is round128, by the conversion of a 64-bit integer where the result is a normal number: what lies
// below the integer is or-ed into its last bit, which is far below those that the result keeps.
__device__ __forceinline__ unsigned rounded(i128 a, int scale) {
    long long m = (long long)a, hi = (long long)(a >> 64);
    int up = scale;
    if (hi != m >> 63) {
        bool far = hi >> 31 != hi >> 63; // 2^95 and beyond
        m = far ? hi | (m != 0) : (long long)(a >> 32) | ((unsigned)m != 0);
        up += far ? 64 : 32;
    }
    if (m == 0) return 0;
    unsigned y = __float_as_uint(__ll2float_rn(m));
    int e = (int)(y >> 23 & 255) + up;
    return e > 0 && e < 255 ? y + ((unsigned)up << 23) : round128(a, scale);
}

// Classes of results: 0 finite, 1 and 2 the infinities, 3 NaN. A sum's is the bitwise or of its terms'.
__device__ __forceinline__ unsigned product_class(unsigned x, unsigned y) {
    if (finite(x) && finite(y)) return 0;
    unsigned ax = x & 0x7fffffffu, ay = y & 0x7fffffffu;
    if (max(ax, ay) > 0x7f800000u || min(ax, ay) == 0) return 3;
    return 1 + ((x ^ y) >> 31);
}

__device__ __forceinline__ unsigned class_value(unsigned c) {
    return c == 1 ? 0x7f800000u : c == 2 ? 0xff800000u : 0x7fc00000u;
}

// product returns x·y for finite x and y, in units of 2^(exponent(x) + exponent(y)).
__device__ __forceinline__ long long product(unsigned x, unsigned y) {
    long long m = (long long)significand(x) * significand(y);
    return (x ^ y) >> 31 ? -m : m;
}

// scale returns alpha·r + beta·c, rounded once. c counts as 0 where beta is.
__device__ __noinline__ unsigned scale(unsigned alpha, unsigned r, unsigned beta, unsigned c) {
    if ((beta & 0x7fffffffu) == 0) c = 0;
    unsigned kind = product_class(alpha, r) | product_class(beta, c);
    if (kind != 0) return class_value(kind);
    long long x = product(alpha, r), y = product(beta, c);
    int ex = exponent(alpha) + exponent(r), ey = exponent(beta) + exponent(c);
    if (ex < ey) {
        long long t = x;
        x = y, y = t;
        int e = ex;
        ex = ey, ey = e;
    }
    if (x == 0) return round128(y, ey);
    int d = min(ex - ey, 78);
    if (d < ex - ey) y = (y > 0) - (y < 0); // its sign alone matters
    return round128(((i128)x << d) + y, ex - d);
}

// plus returns x + y, rounded once; NaN is that of class_value. (By the adder, which IEEE 754 defines, subnormal
// numbers included. Neither x nor the sum is ever -0.)
__device__ __forceinline__ unsigned plus(unsigned x, unsigned y) {
    unsigned s = __float_as_uint(__fadd_rn(__uint_as_float(x), __uint_as_float(y)));
    return (s & 0x7fffffffu) > 0x7f800000u ? class_value(3) : s;
}

// relu returns x where it is above 0 or NaN, else +0. NaN is that of class_value, whose sign is +.
__device__ __forceinline__ unsigned relu(unsigned x) { return (unsigned)max((int)x, 0); }
