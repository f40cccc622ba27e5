// Finite repair: sums over a row's entries alone, for outputs that are not finite; and storing C. Needs half.wgsl,
// epilogue.wgsl and the parameters ldc, alpha and beta.

fn special(x: f32) -> bool { return (bitcast<u32>(x) & 0x7f800000u) == 0x7f800000u; }

// Terms is a sum of products. Products with operands that are not finite are only noted: they decide the result, so
// that the order of the sum does not matter. Bits tell them apart, because a compiler may assume that floats are
// finite.
struct Terms {
    sum: f32,  // of the finite products
    seen: u32, // bits: 1 positive infinity, 2 negative infinity, 4 NaN
}

fn add_term(t: Terms, x: f32, y: f32) -> Terms {
    if (!special(x) && !special(y)) { return Terms(t.sum + x * y, t.seen); }
    let a = bitcast<u32>(x);
    let b = bitcast<u32>(y);
    let lesser = min(a & 0x7fffffffu, b & 0x7fffffffu);
    let greater = max(a & 0x7fffffffu, b & 0x7fffffffu);
    if (greater > 0x7f800000u || lesser == 0u) { return Terms(t.sum, t.seen | 4u); }
    if (((a ^ b) >> 31u) != 0u) { return Terms(t.sum, t.seen | 2u); }
    return Terms(t.sum, t.seen | 1u);
}

fn total(t: Terms) -> f32 {
    var bits = 0x7fc00000u;
    if (t.seen == 0u) { return t.sum; }
    if (t.seen == 1u) { bits = 0x7f800000u; }
    if (t.seen == 2u) { bits = 0xff800000u; }
    return bitcast<f32>(bits);
}

// store writes alpha·x + beta·C, with the epilogue, to an element of C.
fn store(row: u32, j: u32, x: f32) {
    let at = row * p.ldc + j;
    var y = p.alpha * x;
    if (nonzero(p.beta)) { y = y + p.beta * c[at]; }
    if (p.store != 0u) { y = epilogue(y, row, j); }
    c[at] = y;
}
