// What the WGSL kernels share: elements, slots, sums over a row's entries alone, writing C. Needs ELEM, the type of A
// and B (half.wgsl).
//
// Parameters: a panel has p.tall rows and p.groups groups, which keep p.keep of p.every units each, 2^p.wide columns
// wide.

// pair returns two neighbouring 16-bit elements.
fn pair(w: u32) -> vec2<f32> {
    if (ELEM == 2u) { return bitcast<vec2<f32>>(vec2<u32>(w << 16u, w & 0xffff0000u)); }
    return unpack2x16float(w);
}

fn element(w: u32, i: u32) -> f32 { return bitcast<f32>(widen((w >> (16u * (i & 1u))) & 0xffffu, ELEM)); }

// value returns an element of the values, value_quad four from a multiple of four.
fn value(i: u32) -> f32 {
    if (ELEM == 0u) { return bitcast<f32>(values[i]); }
    return element(values[i / 2u], i);
}
fn value_quad(i: u32) -> vec4<f32> {
    if (ELEM == 0u) { return bitcast<vec4<f32>>(vec4<u32>(values[i], values[i + 1u], values[i + 2u], values[i + 3u])); }
    return vec4<f32>(pair(values[i / 2u]), pair(values[i / 2u + 1u]));
}

// b_element returns an element of B, b_quad four from column j, a multiple of four.
fn b_element(row: u32, j: u32) -> f32 {
    if (ELEM == 0u) { return bitcast<f32>(b[row * p.ldb + j]); }
    return element(b[row * (p.ldb / 2u) + j / 2u], j);
}
fn b_quad(row: u32, j: u32) -> vec4<f32> {
    if (ELEM == 0u) {
        let i = row * p.ldb + j;
        return bitcast<vec4<f32>>(vec4<u32>(b[i], b[i + 1u], b[i + 2u], b[i + 3u]));
    }
    let i = row * (p.ldb / 2u) + j / 2u;
    return vec4<f32>(pair(b[i]), pair(b[i + 1u]));
}

// A panel's places, mask and values: where they start in their arrays, in words and elements.
struct Panel {
    count: u32, // condensed columns
    bits: u32,  // of a place
    places: u32,
    mask: u32,
    values: u32,
}

fn panel_of(number: u32) -> Panel {
    var a: Panel;
    let slots = p.groups * p.keep;
    a.count = slots << p.wide;
    a.bits = 1u + firstLeadingBit(p.every - 1u);
    a.places = number * ((slots * a.bits + 31u) / 32u);
    a.mask = number * ((a.count * p.tall + 31u) / 32u);
    a.values = number * a.count * p.tall;
    return a;
}

// column_of returns the matrix's column of condensed column k. In the last group it may lie past the matrix.
fn column_of(a: Panel, k: u32) -> u32 {
    let slot = k >> p.wide;
    let bit = slot * a.bits;
    let low = bit & 31u;
    var place = places[a.places + (bit >> 5u)] >> low;
    if (low + a.bits > 32u) { place = place | (places[a.places + (bit >> 5u) + 1u] << (32u - low)); }
    place = place & ((1u << a.bits) - 1u);
    return ((slot / p.keep * p.every + place) << p.wide) + (k & ((1u << p.wide) - 1u));
}

// entries returns the sum of the entries of row r of a panel times column j of B.
fn entries(a: Panel, r: u32, j: u32) -> f32 {
    var sum = Terms(0.0, 0u);
    for (var k = 0u; k < a.count; k = k + 1u) {
        let v = k * p.tall + r;
        if (((mask[a.mask + (v >> 5u)] >> (v & 31u)) & 1u) == 0u) { continue; }
        let x = value(a.values + v);
        let y = b_element(column_of(a, k), j);
        sum = add_term(sum, x, y);
    }
    return total(sum);
}

// store_quad writes the sums of row r of a panel, row of the matrix, to columns j to j+3.
fn store_quad(a: Panel, r: u32, row: u32, j: u32, x: vec4<f32>) {
    var y = x;
    for (var i = 0u; i < 4u; i = i + 1u) {
        if (j + i >= p.n) { return; }
        if (special(y[i])) { y[i] = entries(a, r, j + i); }
        store(row, j + i, y[i]);
    }
}
