// Computes: new values of a prepared A in RFX-p's fixed point (requantise.go). Phase 0 finds the rows' ranges, phase 1
// writes the integers.
// Tile: phase 0 some invocations for each row, phase 1 four entries an invocation.
// Data movement: straight through registers. Phase 1 finds an entry's row by bisection.
// Bound by: memory bandwidth.

{{.HALF}}
{{.FIXED}}

var<workgroup> found: array<u32, {{.LX}}>;

// load returns the f32 bits of entry e.
fn load(e: u32) -> u32 {
    if (p.elem == 0u) { return values[e]; }
    return widen((values[e / 2u] >> (16u * (e % 2u))) & 0xffffu, p.elem);
}

// row_of returns the row of entry e.
fn row_of(e: u32) -> u32 {
    var lo = 0u; // the row is in [lo, hi)
    var hi = p.count;
    while (hi - lo > 1u) {
        let mid = lo + (hi - lo) / 2u;
        if (rows[2u * mid] <= e) { lo = mid; } else { hi = mid; }
    }
    return lo;
}

@compute @workgroup_size({{.LX}}, {{.LY}}, {{.LZ}})
fn main(@builtin(local_invocation_index) me: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let number = group.x + group.z * p.width;
    if (p.phase == 0u) {
        let lane = me & (p.lanes - 1u);
        let row = number * p.per + me / p.lanes;
        var r = 0u;
        if (row < p.count) {
            for (var e = rows[2u * row] + lane; e < rows[2u * row + 2u]; e += p.lanes) {
        r = join(r, range_of(load(e)));
    }
        }
        found[me] = r;
        for (var s = p.lanes / 2u; s > 0u; s = s / 2u) {
            workgroupBarrier();
            if (lane < s) { found[me] = join(found[me], found[me + s]); }
        }
        if (lane == 0u && row < p.count) { rows[2u * row + 1u] = found[me]; }
        return;
    }
    let four = number * p.per + me;
    if (four >= p.fours) { return; }
    var q: array<vec2<u32>, 4>;
    var row = 0u;
    var end = 0u; // the row of the entries before end
    for (var k = 0u; k < 4u; k++) {
        q[k] = vec2<u32>(0u, 0u);
        var e = 4u * four + k;
        if (p.tile > 0u) { e = slots[e] - 1u; }
        if (e >= p.n) { continue; }
        if (e >= end || e < rows[2u * row]) {
            row = row_of(e);
            end = rows[2u * row + 2u];
        }
        q[k] = quantise(load(e), unit(rows[2u * row + 1u], p.bits));
    }
    if (p.tile > 0u) { // digits of 8 bits: see package rfx
        let bytes = (p.bits + 1u) / 8u;
        let lower = 0x808080u >> (8u * (4u - bytes));
        let to = four / p.tile * bytes * p.tile + four % p.tile;
        for (var j = 0u; j < bytes; j++) {
            var word = 0u;
            for (var k = 0u; k < 4u; k++) {
                word = word | (((((q[k].x + lower) ^ lower) >> (8u * j)) & 0xffu) << (8u * k));
            }
            ints[to + j * p.tile] = word;
        }
        return;
    }
    if (p.bits == 15u) {
        ints[2u * four] = (q[0].x & 0xffffu) | (q[1].x << 16u);
        ints[2u * four + 1u] = (q[2].x & 0xffffu) | (q[3].x << 16u);
    } else if (p.bits != 47u) {
        for (var k = 0u; k < 4u; k++) { ints[4u * four + k] = q[k].x; }
    } else {
        for (var k = 0u; k < 4u; k++) {
            let d = digits(q[k]);
            ints[8u * four + 2u * k] = bitcast<u32>(d.x);
            ints[8u * four + 2u * k + 1u] = bitcast<u32>(d.y);
        }
    }
}
