// The epilogue: a bias and an activation, applied to alpha·A·B + beta·C where it is stored. The parameter `store` says
// which (spec.Problem.StoreWord). docs/bound.md says how activations are computed, and bounds their error. Needs at and
// the parameters bias and store.

layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer Bias { float v; };

// storeType is the type of C, as half.glsl numbers it.
#define storeType (p.store & 3u)

// activated returns the activation of this number (0 none, 1 ReLU, 2 GELU, 3 SiLU) of x. It tests the bits of numbers
// that are not finite, because a compiler may assume that floats are finite.
float activated(float x, uint activation) {
    if (activation == 0) return x;
    // Above a limit, GELU and SiLU are 0 for negative x, and x for positive x; ReLU always is.
    uint bits = floatBitsToUint(x), size = bits & 0x7fffffffu;
    uint limit = activation == 1 ? 0u : activation == 2 ? 0x41200000u : 0x42ae0000u; // 10, 87
    if (size >= limit) return uintBitsToFloat((bits >> 31) != 0 && size <= 0x7f800000u ? 0u : bits);
    // x/(1 + exp(t)), with exp(t) = 2^n·exp(r), |r| ≤ ln(2)/2.
    float t = activation == 2 ? -x * (1.59576912 + 0.0713548163 * (x * x)) : -x;
    float n = floor(t * 1.44269504 + 0.5);
    float r = t - n * 0.693359375 + n * 0.000212194440;
    float y = 1.0 / 5040.0;
    y = y * r + 1.0 / 720.0;
    y = y * r + 1.0 / 120.0;
    y = y * r + 1.0 / 24.0;
    y = y * r + 1.0 / 6.0;
    y = y * r + 0.5;
    y = y * r + 1.0;
    y = y * r + 1.0;
    return x / (1.0 + y * uintBitsToFloat(uint(int(n) + 127) << 23));
}

// epilogue returns the activation of x + bias for the output in this row and column.
float epilogue(float x, uint row, uint col) {
    uint kind = p.store >> 2 & 3u;
    if (kind != 0) x += Bias(at(uvec2(p.bias), kind == 1 ? row : col, 4u << (p.store >> 8 & 15u))).v;
    return activated(x, p.store >> 4 & 15u);
}
