// f64: alpha and beta, which are words behind a kernel's parameters (spec.ScalarBytes), elements of any type as f64,
// and the epilogue in f64. docs/bound.md says how activations are computed, and bounds their error. Conversions are in
// integer arithmetic, because built-in ones may round in any direction and flush subnormals of f32. If EPILOGUE is
// defined, at and the parameters bias and store are needed.

#define F64 3

// doubleOf returns f32 bits as f64.
double doubleOf(uint u) {
    uint sign = u & 0x80000000u, e = (u >> 23) & 255u, m = u & 0x7fffffu;
    if (e == 0u) {
        uvec2 w = unpackDouble2x32(double(m) * packDouble2x32(uvec2(0u, 0x36a00000u))); // 2^-149
        return packDouble2x32(uvec2(w.x, w.y | sign));
    }
    return packDouble2x32(uvec2(m << 29, sign | ((e == 255u ? 2047u : e + 896u) << 20) | (m >> 3)));
}

// singleOf returns the f32 bits nearest to x, ties to even. With odd it returns x cut to f32, with the last bit set if
// that is not exact: rounding the result to 16 bits is the same as rounding x. NaN stays NaN.
uint singleOf(double x, bool odd) {
    uvec2 w = unpackDouble2x32(x);
    uint sign = w.y & 0x80000000u, hi = w.y & 0x7fffffffu;
    if (hi > 0x7ff00000u || hi == 0x7ff00000u && w.x != 0u) return sign | 0x7fc00000u;
    if (hi == 0x7ff00000u) return sign | 0x7f800000u;
    int e = int(hi >> 20) - 896; // of f32
    if (e >= 255) return sign | (odd ? 0x7f7fffffu : 0x7f800000u);
    // m: the leading 1 and the 23 bits of f32. cut: whether the next bit is set, and whether any bit after it is.
    uint m = ((hi & 0xfffffu) << 3) | (w.x >> 29), cut = w.x << 3;
    bool first = (cut >> 31) != 0u, rest = (cut << 1) != 0u;
    if (e <= 0) {
        uint shift = uint(1 - e);
        if (shift > 25u) shift = 26u;
        m |= 0x800000u;
        uint lost = m & ((1u << shift) - 1u);
        rest = rest || first || (lost & ((1u << (shift - 1u)) - 1u)) != 0u;
        first = (lost >> (shift - 1u)) != 0u;
        if ((w.y << 1) == 0u && w.x == 0u) return sign;
        m >>= shift;
        e = 0;
    }
    uint u = (uint(e) << 23) + m;
    if (odd) return sign | u | uint(first || rest);
    return sign | (u + uint(first && (rest || (u & 1u) != 0u)));
}

#ifdef EPILOGUE

double alphaOf() { return packDouble2x32(uvec2(p.alpha_low, p.alpha_high)); }
double betaOf() { return packDouble2x32(uvec2(p.beta_low, p.beta_high)); }

// storeType is the type of C, as half.glsl and F64 number it.
#define storeType (p.store & 3u)

// activated64 returns the activation of this number (0 none, 1 ReLU, 2 GELU, 3 SiLU) of x. It tests the bits of numbers
// that are not finite, because a compiler may assume that floats are finite.
double activated64(double x, uint activation) {
    if (activation == 0u) return x;
    // Above a limit, GELU and SiLU are 0 for negative x, and x for positive x; ReLU always is.
    uvec2 bits = unpackDouble2x32(x);
    uint size = bits.y & 0x7fffffffu, limit = activation == 1u   ? 0u
                                              : activation == 2u ? 0x40240000u
                                                                 : 0x4055c000u; // 10, 87
    if (size >= limit) {
        bool nan = size > 0x7ff00000u || size == 0x7ff00000u && bits.x != 0u;
        return (bits.y >> 31) != 0u && !nan ? 0.0LF : x;
    }
    // x/(1 + exp(t)), with exp(t) = 2^n·exp(r), |r| ≤ ln(2)/2.
    double t = activation == 2u ? -x * (1.5957691216057308LF + 0.07135481627260025LF * (x * x)) : -x;
    int n = int(floor(float(t) * 1.44269504 + 0.5)); // one off at most
    double r = t - double(n) * 0.693145751953125LF - double(n) * 1.4286068203094172e-06LF;
    double y = 1.0LF / 6227020800.0LF;
    y = y * r + 1.0LF / 479001600.0LF;
    y = y * r + 1.0LF / 39916800.0LF;
    y = y * r + 1.0LF / 3628800.0LF;
    y = y * r + 1.0LF / 362880.0LF;
    y = y * r + 1.0LF / 40320.0LF;
    y = y * r + 1.0LF / 5040.0LF;
    y = y * r + 1.0LF / 720.0LF;
    y = y * r + 1.0LF / 120.0LF;
    y = y * r + 1.0LF / 24.0LF;
    y = y * r + 1.0LF / 6.0LF;
    y = y * r + 0.5LF;
    y = y * r + 1.0LF;
    y = y * r + 1.0LF;
    return x / (1.0LF + y * packDouble2x32(uvec2(0u, uint(n + 1023) << 20)));
}

layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Bias { double v; };

// epilogue64 returns the activation of x + bias for the output in this row and column.
double epilogue64(double x, uint row, uint col) {
    uint kind = p.store >> 2 & 3u;
    if (kind != 0u) x += Bias(at(uvec2(p.bias), kind == 1u ? row : col, 8u << (p.store >> 8 & 15u))).v;
    return activated64(x, p.store >> 4 & 15u);
}
#endif
