// Conversions between f32 (as bits) and the 16-bit types in integer arithmetic, because built-in packing may round in
// any direction and flush subnormals. Rounding is to nearest even, overflow gives an infinity, NaN stays NaN.

// Element types, as the tables number them in parameters and defines.
#define F32 0
#define F16 1
#define BF16 2

uint widen_f16(uint h) {
    uint sign = (h & 0x8000u) << 16, e = (h >> 10) & 31u, m = h & 0x3ffu;
    if (e == 31u) return sign | 0x7f800000u | (m << 13);
    if (e == 0u) return sign | floatBitsToUint(float(m) * 5.9604644775390625e-8); // 2^-24
    return sign | (((h & 0x7fffu) << 13) + 0x38000000u);
}

uint narrow_f16(uint u) {
    uint sign = (u >> 16) & 0x8000u, m = u & 0x7fffffffu;
    if (m > 0x7f800000u) return sign | 0x7e00u | ((m >> 13) & 0x3ffu); // NaN
    if (m >= 0x477ff000u) return sign | 0x7c00u; // 65520 and above
    if (m >= 0x38800000u) return sign | ((m + 0xfffu + ((m >> 13) & 1u) - 0x38000000u) >> 13);
    if (m < 0x33000000u) return sign; // below 2^-25
    uint shift = 126u - (m >> 23), f = (m & 0x7fffffu) | 0x800000u;
    return sign | ((f + (1u << (shift - 1u)) - 1u + ((f >> shift) & 1u)) >> shift);
}

uint narrow_bf16(uint u) {
    if ((u & 0x7fffffffu) > 0x7f800000u) return (u >> 16) | 0x40u; // NaN
    return (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
}

// widen returns the f32 bits of a 16-bit element. narrow returns the element nearest to f32 bits.
uint widen(uint h, uint type) { return type == BF16 ? h << 16 : widen_f16(h); }
uint narrow(uint u, uint type) { return type == BF16 ? narrow_bf16(u) : narrow_f16(u); }
