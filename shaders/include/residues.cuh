// Residues modulo small coprime numbers: see package rfx (formats), residues.go, whose Moduli these are.

#pragma once

typedef unsigned int u32;
typedef unsigned char u8;

#define MOST_MODULI 16

__host__ __device__ constexpr u32 modulus(int i) {
    constexpr u32 m[MOST_MODULI] = {256, 255, 253, 251, 247, 241, 239, 233, 229, 227, 223, 217, 211, 199, 197, 193};
    return m[i];
}

// balanced returns x modulo m in [-128, 127], so that it fits a signed byte.
__host__ __device__ constexpr int balanced(u32 x, u32 m) { return (int)((x + m / 2) % m) - (int)(m / 2); }

// digit_weights returns 256^d modulo m for four digits from place `first` on, balanced, as bytes of a word.
__host__ __device__ constexpr u32 digit_weights(u32 m, int first) {
    u32 power = 1, w = 0;
    for (int d = 0; d < first + 4; d++) {
        if (d >= first) w |= (u32)(balanced(power, m) & 255) << 8 * (d - first);
        power = power * 256 % m;
    }
    return w;
}

// multiple returns a multiple of m that is at least `least`.
__host__ __device__ constexpr u32 multiple(u32 m, u32 least) { return (least + m - 1) / m * m; }

// The quotient of x < 2^31 and m is the upper word of x times this, shifted right by 7 more: 2^39/m rounded up has an
// error below 1, which x cannot raise to 1/m.
__host__ __device__ constexpr u32 reciprocal(u32 m) { return (u32)(((1ull << 39) + m - 1) / m); }
__device__ __forceinline__ u32 modulo(u32 x, u32 m, u32 reciprocal) { return x - (__umulhi(x, reciprocal) >> 7) * m; }
