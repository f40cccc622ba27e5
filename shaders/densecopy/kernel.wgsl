// Computes: dst = alpha·src + beta·dst with an epilogue, dense matrices of any 16- or 32-bit type, order and stride.
// Tile: a workgroup copies 1024 words of dst (densecopy.go).
// Data movement: straight through registers; a transposition goes through workgroup memory.
// Bound by: memory bandwidth.

{{.HALF}}
{{.EPILOGUE}}

// src's elements of the workgroup's tile where src is transposed: element e of line l is
// tile[(e - e0)·33 + l - l0].
var<workgroup> tile: array<u32, 2145>; // 65·33

// load returns element e of src's line l, as f32 bits.
fn load(l: u32, e: u32) -> u32 {
    let i = p.first + l * p.lds + e;
    if (p.stype == 0u) { return src[i]; }
    return widen((src[i / 2u] >> (16u * (i % 2u))) & 0xffffu, p.stype);
}

// value returns what goes to element e of dst's line l, before scaling. l is in the tile.
fn value(l: u32, e: u32, l0: u32, e0: i32) -> u32 {
    if (p.turned != 0u) { return tile[u32(i32(e) - e0) * 33u + l - l0]; }
    return load(l, e);
}

// scale returns the bits of what becomes of x and, where beta is not 0, y, which goes to element e of line l: x itself
// where that is all.
fn scale(x: u32, y: u32, l: u32, e: u32) -> u32 {
    var z = x;
    if (nonzero(p.beta)) {
        z = bitcast<u32>(p.alpha * bitcast<f32>(x) + p.beta * bitcast<f32>(y));
    } else if (p.alpha != 1.0) {
        z = bitcast<u32>(p.alpha * bitcast<f32>(x));
    }
    if (p.store > 3u) { z = bitcast<u32>(epilogue(bitcast<f32>(z), l, e)); }
    return z;
}

// pair writes word w of line l, of 16-bit elements.
fn pair(l: u32, w: u32, l0: u32, e0: i32) {
    let first = l * p.ldd;
    let e = i32(2u * w) - i32(first % 2u); // the word's first element, in line l
    let tight = p.ldd == p.len;
    if (e < 0 && tight && l > 0u) { return; } // the previous line's
    let length = i32(p.len);
    let lo = e >= 0 && e < length;
    let inside = e + 1 < length;
    let wraps = e + 1 == length && tight && l + 1u < p.lines; // its second element starts the next line
    let hi = inside || wraps;
    if (!lo && !inside) { return; }
    let at = first / 2u + w;
    let old = dst[at];
    var y0 = old & 0xffffu;
    var y1 = old >> 16u;
    let kind = p.store & 3u;
    if (lo) { y0 = narrow(scale(value(l, u32(e), l0, e0), widen(y0, kind), l, u32(e)), kind); }
    if (hi) {
        var x = 0u;
        var line = l;
        var column = u32(e + 1);
        if (wraps) {
            line = l + 1u;
            column = 0u;
        }
        if (inside) {
            x = value(l, u32(e + 1), l0, e0);
        } else if (p.turned != 0u) {
            x = load(0u, l + 1u);
        } else {
            x = load(l + 1u, 0u);
        }
        y1 = narrow(scale(x, widen(y1, kind), line, column), kind);
    }
    dst[at] = y0 | (y1 << 16u);
}

// single writes word w of line l, of 32-bit elements.
fn single(l: u32, w: u32, l0: u32, e0: i32) {
    if (w >= p.len) { return; }
    let at = l * p.ldd + w;
    dst[at] = scale(value(l, w, l0, e0), dst[at], l, w);
}

@compute @workgroup_size({{.LX}}, {{.LY}}, {{.LZ}})
fn main(@builtin(local_invocation_id) me: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let number = group.x + group.z * p.width;
    var per = 2u; // elements of a word
    if ((p.store & 3u) == 0u) { per = 1u; }
    let l0 = number / p.tiles * (1024u >> p.shift);
    let w0 = (number % p.tiles) << p.shift;
    let e0 = i32(w0 * per) - i32(per - 1u); // a word of 16-bit elements may start at the one before
    if (p.turned != 0u) {
        let l = l0 + me.x;
        for (var t = me.y; t < 32u * per + per - 1u; t += 4u) {
            let e = u32(e0 + i32(t));
            if (l < p.lines && e < p.len) { tile[t * 33u + me.x] = load(e, l); }
        }
    }
    workgroupBarrier();
    for (var t = me.y * 32u + me.x; t < 1024u; t += 128u) {
        let l = l0 + (t >> p.shift);
        let w = w0 + (t & ((1u << p.shift) - 1u));
        if (l >= p.lines) { return; }
        if (per == 1u) {
            single(l, w, l0, e0);
        } else {
            pair(l, w, l0, e0);
        }
    }
}
