// Computes: B (cols × n) in RFX-p's fixed point as residues, or as digits, q (quantise.go), from the ranges of parts of
// its columns that phase 0 of kernel.wgsl found.
// Tile: a workgroup has 16 columns of 128 rows of B, an invocation 16 rows of a column.
// Data movement: elements go through registers.
// Bound by: integer arithmetic.

{{.HALF}}
{{.FIXED}}
{{.RESIDUES}}

const DEPTH = 128u; // rows of B in a block
const CHUNKS = 8u; // of 16 rows of a block; two are a slice, in which a column's bytes lie side by side
const COLS = 16u;

var<workgroup> found: array<u32, {{.LX}}>;

// load returns the f32 bits of row k's element j, zero outside B.
fn load(k: u32, j: u32) -> u32 {
    if (k >= p.k || j >= p.n) { return 0u; }
    let i = k * p.ldb + j;
    if (p.elem == 0u) { return b[i]; }
    return widen((b[i / 2u] >> (16u * (i % 2u))) & 0xffffu, p.elem);
}

// balanced returns 2^n modulo m in [-m/2, m/2], n being 16 or 32.
fn balanced(n: u32, m: u32) -> i32 {
    var power = 65536u % m;
    if (n == 32u) { power = power * power % m; }
    return i32(power) - select(0, i32(m), power > m / 2u);
}

// residue returns that of q in [-128, 127] as a byte. Of q's parts of 16 bits all but the lowest are multiplied by
// residues, so that the sum is less than 2^24.
fn residue(q: vec2<u32>, m: u32) -> u32 {
    var x = i32(q.x & 0xffffu);
    if (p.bits == 47u) {
        x += i32(q.x >> 16u) * balanced(16u, m) + bitcast<i32>(q.y) * balanced(32u, m);
    } else {
        x += (bitcast<i32>(q.x) >> 16u) * balanced(16u, m);
    }
    let bias = (16777216u + m - 1u) / m * m;
    return ((bitcast<u32>(x) + bias + m / 2u) % m - m / 2u) & 255u;
}

// digit returns number i of the balanced digits of 8 bits of q, as a byte. Adding a half to each byte, and taking it away
// again, makes balanced digits of a number's bytes.
fn digit(q: vec2<u32>, i: u32) -> u32 {
    let lo = q.x + 0x80808080u;
    let hi = q.y + 0x8080u + select(0u, 1u, lo < q.x);
    return ((select(hi, lo, i < 4u) >> (8u * (i % 4u))) & 255u) ^ 128u;
}

@compute @workgroup_size({{.LX}}, {{.LY}}, {{.LZ}})
fn main(@builtin(local_invocation_index) t: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let chunk = t % CHUNKS;
    let column = t / CHUNKS;
    let j = group.y * COLS + column;
    let block = group.x;
    let blocks = (p.k + DEPTH - 1u) / DEPTH;
    let inside = j < p.ldq;
    var r = 0u;
    if (inside) {
        for (var c = chunk; c < p.chunks; c += CHUNKS) { r = join(r, q[(c + 1u) * p.ldq + j]); }
    }
    found[t] = r;
    workgroupBarrier();
    for (var c = 0u; c < CHUNKS; c++) { r = join(r, found[column * CHUNKS + c]); }
    if (!inside) { return; }
    if (block == 0u && chunk == 0u) { q[j] = r; }
    if (block >= blocks) { return; }
    let l = unit(r, p.bits);
    var x: array<vec2<u32>, 16>;
    for (var i = 0u; i < 16u; i++) { x[i] = quantise(load(block * DEPTH + chunk * 16u + i, j), l); }
    let first = (p.chunks + 1u) * p.ldq;
    let planes = select(p.across, (p.bits + 1u) / 8u, p.across == 0u);
    for (var m = 0u; m < planes; m++) {
        let to = first + (((m * blocks + block) * (CHUNKS / 2u) + chunk / 2u) * p.ldq + j) * 8u + chunk % 2u * 4u;
        for (var w = 0u; w < 4u; w++) {
            var word = 0u;
            for (var i = 0u; i < 4u; i++) {
                let y = x[4u * w + i];
                var byte = 0u;
                if (p.across == 0u) { byte = digit(y, m); } else { byte = residue(y, modulus(m)); }
                word |= byte << (8u * i);
            }
            q[to + w] = word;
        }
    }
}
