// How a sum becomes an element of C: the one rounding, alpha, beta and the epilogue. BITS is p. It comes after
// fixed.wgsl.

// elem is the type of values and b.
fn elem() -> u32 { return p.shape >> 24u; }

// element_a and element_b return f32 bits: of entry k, and of element (row, j) of B.
fn element_a(k: u32) -> u32 {
    if (elem() == 0u) { return values[k]; }
    return widen((values[k / 2u] >> (16u * (k % 2u))) & 0xffffu, elem());
}
fn element_b(row: u32, j: u32) -> u32 {
    let i = row * p.ldb + j;
    if (elem() == 0u) { return b[i]; }
    return widen((b[i / 2u] >> (16u * (i % 2u))) & 0xffffu, elem());
}

const SCALED = 0x10000u; // of the parameter store, see rfx.go

// epilogue returns relu(y + bias), or what of it the parameter `store` asks for (spec.Problem.StoreWord), for an output
// in that row and column.
fn epilogue(x: u32, row: u32, j: u32) -> u32 {
    let kind = (p.store >> 2u) & 3u;
    let shift = (p.store >> 8u) & 15u;
    var y = x;
    if (kind == 1u) { y = plus(y, bias[row << shift]); }
    if (kind == 2u) { y = plus(y, bias[j << shift]); }
    if (((p.store >> 4u) & 15u) != 0u) { y = relu(y); }
    return y;
}

// store_rounded writes element (row, j) of C, given the rounded sum and the ranges of the row and of the column.
fn store_rounded(row: u32, j: u32, rounded: u32, ra: u32, rb: u32) {
    var y = rounded;
    if (((ra | rb) & WILD) != 0u) {
        var kind = 0u;
        for (var k = rows[2u * row]; k < rows[2u * row + 2u]; k++) {
            kind |= product_class(element_a(k), element_b(rows[p.columns + k], j));
        }
        if (kind != 0u) { y = class_value(kind); }
    }
    let at = row * p.ldc + j;
    if ((p.store & SCALED) != 0u) {
        var old = 0u;
        if ((p.beta & 0x7fffffffu) != 0u) { old = c[at]; }
        y = scale(p.alpha, y, p.beta, old);
    }
    if (p.store != 0u) { y = epilogue(y, row, j); }
    c[at] = y;
}

// store writes element (row, j) of C, given the sum.
fn store(row: u32, j: u32, sum: vec4<u32>) {
    if (j >= p.n) { return; }
    let ra = rows[2u * row + 1u];
    let rb = q[j];
    store_rounded(row, j, round128(sum, unit(ra, BITS) + unit(rb, BITS)), ra, rb);
}
