// Computes: s = pattern ⊙ (x·yᵀ) reproducibly in fixed point (RFX-p), scaled by a number for each entry if asked; x and
// y row-major (sddmmrfx.go). Phases 0 and 1 find the ranges of the rows of x and y.
// Tile: eight invocations a row in phases 0 and 1, an entry in phase 2.
// Data movement: elements straight to registers, where they become integers; sums meet in workgroup memory.
// Bound by: integer arithmetic.

{{.HALF}}
{{.FIXED}}

const lanes = 8u;

var<workgroup> found: array<u32, {{.LX}}>; // ranges or classes
var<workgroup> sums: array<vec4<u32>, {{.LX}}>;

// element_x and element_y return the f32 bits of element i.
fn element_x(i: u32) -> u32 {
    if (p.elem == 0u) { return x[i]; }
    return widen((x[i / 2u] >> (16u * (i % 2u))) & 0xffffu, p.elem);
}
fn element_y(i: u32) -> u32 {
    if (p.elem == 0u) { return y[i]; }
    return widen((y[i / 2u] >> (16u * (i % 2u))) & 0xffffu, p.elem);
}

// extended returns a·b, the lower word first. By halves of 16 bits.
fn extended(a: u32, b: u32) -> vec2<u32> {
    let ll = (a & 0xffffu) * (b & 0xffffu);
    let lh = (a & 0xffffu) * (b >> 16u);
    let hl = (a >> 16u) * (b & 0xffffu);
    let mid = (ll >> 16u) + (lh & 0xffffu) + (hl & 0xffffu);
    return vec2<u32>((ll & 0xffffu) | (mid << 16u), (a >> 16u) * (b >> 16u) + (lh >> 16u) + (hl >> 16u) + (mid >> 16u));
}

// magnitude returns the absolute value of 64 bits.
fn magnitude(a: vec2<u32>) -> vec2<u32> {
    if ((a.y >> 31u) == 0u) { return a; }
    return vec2<u32>(~a.x + 1u, ~a.y + select(0u, 1u, a.x == 0u));
}

// product128 returns a·b for numbers of 48 bits.
fn product128(a: vec2<u32>, b: vec2<u32>) -> vec4<u32> {
    let v = magnitude(a);
    let w = magnitude(b);
    let low = extended(v.x, w.x);
    let mid = extended(v.x, w.y);
    let other = extended(v.y, w.x);
    let m = add128(vec4<u32>(low, v.y * w.y, 0u), add128(vec4<u32>(0u, mid, 0u), vec4<u32>(0u, other, 0u)));
    if (((a.y ^ b.y) >> 31u) != 0u) { return neg128(m); }
    return m;
}

@compute @workgroup_size({{.LX}}, {{.LY}}, {{.LZ}})
fn main(@builtin(local_invocation_index) me: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let part = me % lanes;
    let item = (group.x + group.z * p.width) * ({{.LX}}u / lanes) + me / lanes;
    let inside = item < p.items;
    var bits = 0u;
    var sum = vec4<u32>(0u);
    var l = 0;
    if (inside && p.phase == 0u) {
        for (var k = part; k < p.k; k += lanes) { bits = join(bits, range_of(element_x(item * p.ldx + k))); }
    } else if (inside && p.phase == 1u) {
        for (var k = part; k < p.k; k += lanes) { bits = join(bits, range_of(element_y(item * p.ldy + k))); }
    } else if (inside) {
        let i = rows[item];
        let j = cols[item];
        let rx = ranges[i];
        let ry = ranges[p.base + j];
        let wild = ((rx | ry) & WILD) != 0u;
        let lx = unit(rx, p.bits);
        let ly = unit(ry, p.bits);
        l = lx + ly;
        for (var k = part; k < p.k; k += lanes) {
            let a = element_x(i * p.ldx + k);
            let b = element_y(j * p.ldy + k);
            sum = add128(sum, product128(quantise(a, lx), quantise(b, ly)));
            if (wild) { bits |= product_class(a, b); }
        }
    }
    found[me] = bits;
    sums[me] = sum;
    workgroupBarrier();
    if (!inside || part != 0u) { return; }
    for (var d = 1u; d < lanes; d++) {
        if (p.phase == 2u) {
            bits |= found[me + d];
        } else {
            bits = join(bits, found[me + d]);
        }
        sum = add128(sum, sums[me + d]);
    }
    if (p.phase != 2u) {
        ranges[item + select(p.base, 0u, p.phase == 0u)] = bits;
        return;
    }
    var result = round128(sum, l);
    if (bits != 0u) { result = class_value(bits); }
    if (p.scaled != 0u) { result = scale(factors[item], result, 0u, 0u); }
    s[item] = result;
}
