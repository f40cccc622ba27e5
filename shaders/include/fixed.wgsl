// RFX-p's arithmetic in 32-bit integers: ranges of elements, quantising, 128-bit sums, the one rounding.
// Package rfx defines it; names are the same. Floats are passed as their bits. A 128-bit integer is a
// vec4<u32>, lowest word first, in two's complement.

const WILD = 0x100000u; // of a range: there are elements that are not finite

// finite tells whether f32 bits are neither infinite nor NaN.
fn finite(x: u32) -> bool { return (x & 0x7f800000u) != 0x7f800000u; }

// exponent returns e of |x| = m·2^e, m < 2^24; significand returns m.
fn exponent(x: u32) -> i32 { return i32(max((x >> 23u) & 255u, 1u)) - 150; }
fn significand(x: u32) -> u32 { return (x & 0x7fffffu) | select(0u, 0x800000u, (x & 0x7f800000u) != 0u); }

// top returns the number of the highest bit set in x, which is not 0.
fn top(x: u32) -> i32 { return i32(firstLeadingBit(x)); }

// range_of returns the range of one element.
fn range_of(x: u32) -> u32 {
    if (!finite(x)) { return WILD; }
    let m = significand(x);
    if (m == 0u) { return 0u; }
    let n = top(m);
    let e = exponent(x) + n + select(0, 1, (m << u32(23 - n)) > 16703488u); // 2039·2^13
    let lowest = exponent(x) + top(m & (~m + 1u));
    return u32(e + 512) | (u32(512 - lowest) << 10u);
}

// join returns the range of two sets of elements together.
fn join(r: u32, s: u32) -> u32 {
    return max(r & 0x3ffu, s & 0x3ffu) | max(r & 0xffc00u, s & 0xffc00u) | ((r | s) & WILD);
}

// unit returns L for a range.
fn unit(r: u32, bits: u32) -> i32 {
    return select(i32(r & 0x3ffu) - 512, 0, (r & 0x3ffu) == 0u) - i32(bits) + 1;
}

// quantise returns RNE(x·2^-l) as 64 bits, lowest word first; 0 for an x that is not finite.
fn quantise(x: u32, l: i32) -> vec2<u32> {
    let m = significand(x);
    let s = l - exponent(x);
    if (!finite(x) || m == 0u || s > 25) { return vec2<u32>(0u, 0u); }
    var q = vec2<u32>(m, 0u);
    if (s > 0) {
        let rest = m << u32(32 - s); // below the unit
        q.x = m >> u32(s);
        if (rest > 0x80000000u || (rest == 0x80000000u && (q.x & 1u) != 0u)) { q.x = q.x + 1u; }
    } else if (s <= -32) {
        q = vec2<u32>(0u, m << u32(-s - 32));
    } else if (s < 0) {
        q = vec2<u32>(m << u32(-s), m >> u32(32 + s));
    }
    if ((x >> 31u) != 0u) { q = vec2<u32>(~q.x + 1u, ~q.y + select(0u, 1u, q.x == 0u)); }
    return q;
}

// digits returns q as two balanced digits of 24 bits, the lower first.
fn digits(q: vec2<u32>) -> vec2<i32> {
    let lo = bitcast<i32>(q.x << 8u) >> 8u;
    return vec2<i32>(lo, bitcast<i32>((q.y << 8u) | (q.x >> 24u)) + select(0, 1, lo < 0));
}

fn add128(a: vec4<u32>, b: vec4<u32>) -> vec4<u32> {
    let s = a + b;
    let c = select(vec4<u32>(0u), vec4<u32>(1u), s < a); // out of each word
    let y = s.y + c.x;
    let cy = c.y | select(0u, 1u, y < s.y);
    let z = s.z + cy;
    let cz = c.z | select(0u, 1u, z < s.z);
    return vec4<u32>(s.x, y, z, s.w + cz);
}

fn neg128(a: vec4<u32>) -> vec4<u32> { return add128(~a, vec4<u32>(1u, 0u, 0u, 0u)); }

// shift128 returns a·2^n, 0 ≤ n < 128.
fn shift128(x: vec4<u32>, bits: u32) -> vec4<u32> {
    var a = x;
    if (bits >= 64u) { a = vec4<u32>(0u, 0u, a.x, a.y); }
    if ((bits & 32u) != 0u) { a = vec4<u32>(0u, a.x, a.y, a.z); }
    let n = bits & 31u;
    if (n == 0u) { return a; }
    return (a << vec4<u32>(n)) | (vec4<u32>(0u, a.x, a.y, a.z) >> vec4<u32>(32u - n));
}

// shift_rounded returns RNE(x·2^-bits) for 0 ≤ x < 2^127. The result is below 2^32.
fn shift_rounded(x: vec4<u32>, bits: i32) -> u32 {
    if (bits <= 0) { return x.x << u32(-bits); }
    if (bits > 127) { return 0u; }
    var a = x;
    var below = 0u; // the 32 bits below the result,
    var rest = 0u; // and whether anything is below these
    if (bits >= 64) {
        rest = a.x;
        below = a.y;
        a = vec4<u32>(a.z, a.w, 0u, 0u);
    }
    if ((bits & 32) != 0) {
        rest |= below;
        below = a.x;
        a = vec4<u32>(a.y, a.z, a.w, 0u);
    }
    let n = u32(bits) & 31u;
    if (n != 0u) {
        rest |= below << (32u - n);
        below = (below >> n) | (a.x << (32u - n));
        a.x = (a.x >> n) | (a.y << (32u - n));
    }
    if (below > 0x80000000u || (below == 0x80000000u && (rest != 0u || (a.x & 1u) != 0u))) { return a.x + 1u; }
    return a.x;
}

// length128 returns the bits of an a ≥ 0.
fn length128(a: vec4<u32>) -> i32 {
    if (a.w != 0u) { return 97 + top(a.w); }
    if (a.z != 0u) { return 65 + top(a.z); }
    if (a.y != 0u) { return 33 + top(a.y); }
    if (a.x != 0u) { return 1 + top(a.x); }
    return 0;
}

// round128 returns x·2^scale as the nearest f32: ties to even, gradual underflow, overflow to an
// infinity, +0 for zero.
fn round128(x: vec4<u32>, scale: i32) -> u32 {
    let sign = x.w & 0x80000000u;
    var a = x;
    if (sign != 0u) { a = neg128(a); }
    let last = max(length128(a) - 24 + scale, -149); // the exponent of the result's last bit
    let m = shift_rounded(a, last - scale);
    if (m == 0u) { return 0u; }
    if (last > 104) { return sign | 0x7f800000u; }
    return sign | min((u32(last + 149) << 23u) + m, 0x7f800000u);
}

// Classes of results: 0 finite, 1 and 2 the infinities, 3 NaN. A sum's is the bitwise or of its terms'.
fn product_class(x: u32, y: u32) -> u32 {
    if (finite(x) && finite(y)) { return 0u; }
    let ax = x & 0x7fffffffu;
    let ay = y & 0x7fffffffu;
    if (max(ax, ay) > 0x7f800000u || min(ax, ay) == 0u) { return 3u; }
    return 1u + ((x ^ y) >> 31u);
}

fn class_value(c: u32) -> u32 {
    if (c == 1u) { return 0x7f800000u; }
    if (c == 2u) { return 0xff800000u; }
    return 0x7fc00000u;
}

// product returns x·y for finite x and y, in units of 2^(exponent(x) + exponent(y)).
fn product(x: u32, y: u32) -> vec4<u32> {
    let a = significand(x);
    let b = significand(y);
    // By halves of 12 bits: no product, and no sum of two, exceeds 32 bits.
    let mid = (a >> 12u) * (b & 0xfffu) + (a & 0xfffu) * (b >> 12u);
    let m = add128(vec4<u32>((a & 0xfffu) * (b & 0xfffu), 0u, 0u, 0u),
        add128(vec4<u32>(mid << 12u, mid >> 20u, 0u, 0u),
            shift128(vec4<u32>((a >> 12u) * (b >> 12u), 0u, 0u, 0u), 24u)));
    if (((x ^ y) >> 31u) != 0u) { return neg128(m); }
    return m;
}

// scale returns alpha·r + beta·c, rounded once. c counts as 0 where beta is.
fn scale(alpha: u32, r: u32, beta: u32, old: u32) -> u32 {
    var c = old;
    if ((beta & 0x7fffffffu) == 0u) { c = 0u; }
    let kind = product_class(alpha, r) | product_class(beta, c);
    if (kind != 0u) { return class_value(kind); }
    var x = product(alpha, r);
    var y = product(beta, c);
    var ex = exponent(alpha) + exponent(r);
    var ey = exponent(beta) + exponent(c);
    if (ex < ey) {
        let t = x;
        x = y;
        y = t;
        let e = ex;
        ex = ey;
        ey = e;
    }
    if (all(x == vec4<u32>(0u))) { return round128(y, ey); }
    let d = min(ex - ey, 78);
    if (d < ex - ey && any(y != vec4<u32>(0u))) { // its sign alone matters
        y = select(vec4<u32>(1u, 0u, 0u, 0u), vec4<u32>(0xffffffffu), (y.w >> 31u) != 0u);
    }
    return round128(add128(shift128(x, u32(d)), y), ex - d);
}

// plus returns x + y, rounded once.
fn plus(x: u32, y: u32) -> u32 { return scale(0x3f800000u, x, 0x3f800000u, y); }

// relu returns x where it is above 0 or NaN, else +0. NaN is that of class_value, whose sign is +.
fn relu(x: u32) -> u32 { return bitcast<u32>(max(bitcast<i32>(x), 0)); }
