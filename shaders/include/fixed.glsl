// RFX-p's arithmetic in 32-bit integers: ranges of elements, quantising, 128-bit sums, the one rounding.
// Package rfx defines it; names are the same. Floats are passed as their bits. A 128-bit integer is a
// uvec4, lowest word first, in two's complement.

#define WILD (1u << 20) // of a range: there are elements that are not finite

// finite tells whether f32 bits are neither infinite nor NaN.
bool finite(uint x) { return (x & 0x7f800000u) != 0x7f800000u; }

// exponent returns e of |x| = m·2^e, m < 2^24; significand returns m.
int exponent(uint x) { return int(max((x >> 23) & 255u, 1u)) - 150; }
uint significand(uint x) { return (x & 0x7fffffu) | ((x & 0x7f800000u) != 0u ? 0x800000u : 0u); }

// range_of returns the range of one element.
uint range_of(uint x) {
    if (!finite(x)) return WILD;
    uint m = significand(x);
    if (m == 0u) return 0u;
    int n = findMSB(m);
    int e = exponent(x) + n + ((m << (23 - n)) > (2039u << 13) ? 1 : 0);
    return uint(e + 512) | (uint(512 - exponent(x) - findLSB(m)) << 10);
}

// join returns the range of two sets of elements together.
uint join(uint r, uint s) { return max(r & 0x3ffu, s & 0x3ffu) | max(r & 0xffc00u, s & 0xffc00u) | ((r | s) & WILD); }

// unit returns L for a range.
int unit(uint r, uint bits) { return ((r & 0x3ffu) == 0u ? 0 : int(r & 0x3ffu) - 512) - int(bits) + 1; }

// quantise returns RNE(x·2^-l) as 64 bits, lowest word first; 0 for an x that is not finite.
uvec2 quantise(uint x, int l) {
    uint m = significand(x);
    int s = l - exponent(x);
    if (!finite(x) || m == 0u || s > 25) return uvec2(0);
    uvec2 q = uvec2(m, 0);
    if (s > 0) {
        uint rest = m << (32 - s); // below the unit
        q.x = m >> s;
        if (rest > 0x80000000u || (rest == 0x80000000u && (q.x & 1u) != 0u)) q.x++;
    } else if (s <= -32) {
        q = uvec2(0, m << (-s - 32));
    } else if (s < 0) {
        q = uvec2(m << -s, m >> (32 + s));
    }
    if ((x >> 31) != 0u) q = uvec2(-q.x, ~q.y + (q.x == 0u ? 1u : 0u));
    return q;
}

// digits returns q as two balanced digits of 24 bits, the lower first.
ivec2 digits(uvec2 q) {
    int lo = int(q.x << 8) >> 8;
    return ivec2(lo, int((q.y << 8) | (q.x >> 24)) + (lo < 0 ? 1 : 0));
}

uvec4 add128(uvec4 a, uvec4 b) {
    uint c, d;
    a.x = uaddCarry(a.x, b.x, c);
    for (int i = 1; i < 4; i++) {
        a[i] = uaddCarry(a[i], b[i], d);
        a[i] = uaddCarry(a[i], c, c);
        c |= d;
    }
    return a;
}

uvec4 neg128(uvec4 a) { return add128(~a, uvec4(1, 0, 0, 0)); }

// shift128 returns a·2^n, 0 ≤ n < 128.
uvec4 shift128(uvec4 a, uint n) {
    if (n >= 64u) a = uvec4(0, 0, a.xy);
    if ((n & 32u) != 0u) a = uvec4(0, a.xyz);
    n &= 31u;
    return n == 0u ? a : (a << n) | (uvec4(0, a.xyz) >> (32u - n));
}

// shift_rounded returns RNE(a·2^-n) for 0 ≤ a < 2^127. The result is below 2^32.
uint shift_rounded(uvec4 a, int n) {
    if (n <= 0) return a.x << -n;
    if (n > 127) return 0u;
    uint below = 0u, rest = 0u; // the 32 bits below the result, and whether anything is below these
    if (n >= 64) {
        rest = a.x;
        below = a.y;
        a = uvec4(a.zw, 0, 0);
    }
    if ((n & 32) != 0) {
        rest |= below;
        below = a.x;
        a = uvec4(a.yzw, 0);
    }
    n &= 31;
    if (n != 0) {
        rest |= below << (32 - n);
        below = (below >> n) | (a.x << (32 - n));
        a.x = (a.x >> n) | (a.y << (32 - n));
    }
    bool up = below > 0x80000000u || (below == 0x80000000u && (rest != 0u || (a.x & 1u) != 0u));
    return a.x + (up ? 1u : 0u);
}

// length128 returns the bits of an a ≥ 0.
int length128(uvec4 a) {
    if (a.w != 0u) return 97 + findMSB(a.w);
    if (a.z != 0u) return 65 + findMSB(a.z);
    return a.y != 0u ? 33 + findMSB(a.y) : 1 + findMSB(a.x);
}

// round128 returns a·2^scale as the nearest f32: ties to even, gradual underflow, overflow to an
// infinity, +0 for zero.
uint round128(uvec4 a, int scale) {
    uint sign = a.w & 0x80000000u;
    if (sign != 0u) a = neg128(a);
    int last = max(length128(a) - 24 + scale, -149); // the exponent of the result's last bit
    uint m = shift_rounded(a, last - scale);
    if (m == 0u) return 0u;
    return sign | (last > 104 ? 0x7f800000u : min((uint(last + 149) << 23) + m, 0x7f800000u));
}

// Classes of results: 0 finite, 1 and 2 the infinities, 3 NaN. A sum's is the bitwise or of its terms'.
uint product_class(uint x, uint y) {
    if (finite(x) && finite(y)) return 0u;
    uint ax = x & 0x7fffffffu, ay = y & 0x7fffffffu;
    if (max(ax, ay) > 0x7f800000u || min(ax, ay) == 0u) return 3u;
    return 1u + ((x ^ y) >> 31);
}

uint class_value(uint c) { return c == 1u ? 0x7f800000u : c == 2u ? 0xff800000u : 0x7fc00000u; }

// product returns x·y for finite x and y, in units of 2^(exponent(x) + exponent(y)).
uvec4 product(uint x, uint y) {
    uint hi, lo;
    umulExtended(significand(x), significand(y), hi, lo);
    uvec4 m = uvec4(lo, hi, 0, 0);
    return ((x ^ y) >> 31) != 0u ? neg128(m) : m;
}

// scale returns alpha·r + beta·c, rounded once. c counts as 0 where beta is.
uint scale(uint alpha, uint r, uint beta, uint c) {
    if ((beta & 0x7fffffffu) == 0u) c = 0u;
    uint kind = product_class(alpha, r) | product_class(beta, c);
    if (kind != 0u) return class_value(kind);
    uvec4 x = product(alpha, r), y = product(beta, c);
    int ex = exponent(alpha) + exponent(r), ey = exponent(beta) + exponent(c);
    if (ex < ey) {
        uvec4 t = x;
        x = y;
        y = t;
        int e = ex;
        ex = ey;
        ey = e;
    }
    if (x == uvec4(0)) return round128(y, ey);
    int d = min(ex - ey, 78);
    if (d < ex - ey && y != uvec4(0)) y = (y.w >> 31) != 0u ? uvec4(~0u) : uvec4(1, 0, 0, 0); // its sign alone matters
    return round128(add128(shift128(x, uint(d)), y), ex - d);
}

// plus returns x + y, rounded once.
uint plus(uint x, uint y) { return scale(0x3f800000u, x, 0x3f800000u, y); }

// relu returns x where it is above 0 or NaN, else +0. NaN is that of class_value, whose sign is +.
uint relu(uint x) { return uint(max(int(x), 0)); }
