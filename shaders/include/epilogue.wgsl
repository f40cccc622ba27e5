// The epilogue: a bias and an activation, applied to alpha·A·B + beta·C where it is stored. The parameter `store` says
// which (spec.Problem.StoreWord). docs/bound.md says how activations are computed, and bounds their error. Needs the
// argument bias and the parameter store.

// activated returns the activation of this number (0 none, 1 ReLU, 2 GELU, 3 SiLU) of x. It tests the bits of numbers
// that are not finite, because a compiler may assume that floats are finite.
fn activated(x: f32, activation: u32) -> f32 {
    if (activation == 0u) { return x; }
    // Above a limit, GELU and SiLU are 0 for negative x, and x for positive x; ReLU always is.
    let bits = bitcast<u32>(x);
    let size = bits & 0x7fffffffu;
    var limit = 0u;
    if (activation == 2u) { limit = 0x41200000u; } // 10
    if (activation == 3u) { limit = 0x42ae0000u; } // 87
    if (size >= limit) {
        if ((bits >> 31u) != 0u && size <= 0x7f800000u) { return 0.0; }
        return x;
    }
    // x/(1 + exp(t)), with exp(t) = 2^n·exp(r), |r| ≤ ln(2)/2.
    var t = -x;
    if (activation == 2u) { t = -x * (1.59576912 + 0.0713548163 * (x * x)); }
    let n = floor(t * 1.44269504 + 0.5);
    let r = t - n * 0.693359375 + n * 0.000212194440;
    var y = 1.0 / 5040.0;
    y = y * r + 1.0 / 720.0;
    y = y * r + 1.0 / 120.0;
    y = y * r + 1.0 / 24.0;
    y = y * r + 1.0 / 6.0;
    y = y * r + 0.5;
    y = y * r + 1.0;
    y = y * r + 1.0;
    return x / (1.0 + y * bitcast<f32>(u32(i32(n) + 127) << 23u));
}

// epilogue returns the activation of x + bias for the output in this row and column.
fn epilogue(x: f32, row: u32, col: u32) -> f32 {
    let kind = (p.store >> 2u) & 3u;
    let shift = (p.store >> 8u) & 15u;
    var y = x;
    if (kind == 1u) { y += bias[row << shift]; }
    if (kind == 2u) { y += bias[col << shift]; }
    return activated(y, (p.store >> 4u) & 15u);
}
