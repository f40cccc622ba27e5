// Conversions between f32 bits and the 16-bit types in integer arithmetic, because built-in packing may round in any
// direction and flush subnormals. Rounding is to nearest even, overflow gives an infinity, NaN stays NaN. Element
// types: 0 f32, 1 f16, 2 bf16.

fn widen_f16(h: u32) -> u32 {
    let sign = (h & 0x8000u) << 16u;
    let e = (h >> 10u) & 31u;
    let m = h & 0x3ffu;
    if (e == 31u) { return sign | 0x7f800000u | (m << 13u); }
    if (e == 0u) { return sign | bitcast<u32>(f32(m) * 5.9604644775390625e-8); } // 2^-24
    return sign | (((h & 0x7fffu) << 13u) + 0x38000000u);
}

fn narrow_f16(u: u32) -> u32 {
    let sign = (u >> 16u) & 0x8000u;
    let m = u & 0x7fffffffu;
    if (m > 0x7f800000u) { return sign | 0x7e00u | ((m >> 13u) & 0x3ffu); } // NaN
    if (m >= 0x477ff000u) { return sign | 0x7c00u; }                        // 65520 and above
    if (m >= 0x38800000u) { return sign | ((m + 0xfffu + ((m >> 13u) & 1u) - 0x38000000u) >> 13u); }
    if (m < 0x33000000u) { return sign; } // below 2^-25
    let shift = 126u - (m >> 23u);
    let f = (m & 0x7fffffu) | 0x800000u;
    return sign | ((f + (1u << (shift - 1u)) - 1u + ((f >> shift) & 1u)) >> shift);
}

fn narrow_bf16(u: u32) -> u32 {
    if ((u & 0x7fffffffu) > 0x7f800000u) { return (u >> 16u) | 0x40u; } // NaN
    return (u + 0x7fffu + ((u >> 16u) & 1u)) >> 16u;
}

// widen returns the f32 bits of a 16-bit element, narrow the element nearest to f32 bits.
fn widen(h: u32, kind: u32) -> u32 {
    if (kind == 2u) { return h << 16u; }
    return widen_f16(h);
}

fn narrow(u: u32, kind: u32) -> u32 {
    if (kind == 2u) { return narrow_bf16(u); }
    return narrow_f16(u);
}

// nonzero reports whether x is not 0. It is true for NaN, for which WGSL does not define comparisons of floats.
fn nonzero(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) != 0u; }
