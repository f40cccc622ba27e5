// Computes: C (rows × n) = alpha·A·B + beta·C reproducibly (RFX-p, p = BITS), from the residues of its sums that
// residues.wgsl left in `part`, by the Chinese remainder theorem (package rfx of formats, residues.go); with DIGITS = 1
// from sums of products of digits.
// Tile: an invocation has an output.
// Data movement: straight from memory to registers.
// Bound by: integer arithmetic: LIMBS multiply-adds for each residue, and one rounding of 128 bits.
// Constants: BITS, LIMBS, DIGITS.

{{.HALF}}
{{.FIXED}}

const BITS = {{.BITS}}u;
const LIMBS = {{.LIMBS}}u;

{{.STORE}}

// horner returns sum·2^bits + x, x being extended by its sign.
fn horner(sum: vec4<u32>, bits: u32, x: u32, sign: u32) -> vec4<u32> {
    return add128(shift128(sum, bits), vec4<u32>(x, sign, sign, sign));
}

{{- if eq .DIGITS 1}}

fn sum_of(row: u32, j: u32) -> vec4<u32> {
    var sum = vec4<u32>(0u);
    for (var d = 3u; d > 0u; d--) {
        let x = part[((d - 1u) * p.items + row) * p.ldq + j];
        sum = horner(sum, 8u, x, select(0u, 0xffffffffu, (x >> 31u) != 0u));
    }
    return sum;
}
{{- else}}

// sum_of returns a sum, given its residues. Its limbs are reduced by a multiple of the product of the moduli, which a
// quotient in f32 tells, as sums are far from half of that product.
fn sum_of(row: u32, j: u32) -> vec4<u32> {
    let weights = p.heavy + (p.segments + 1u) / 2u * 4u + 4u; // behind the fractions
    var s: array<u32, LIMBS>;
    for (var m = 0u; m < p.segments; m++) {
        let r = (part[((m * p.items + row) * p.ldq + j) / 4u] >> (8u * (j % 4u))) & 255u;
        for (var i = 0u; i < LIMBS; i++) { s[i] += r * rows[weights + m * LIMBS + i]; }
    }
    let product = weights + p.segments * LIMBS;
    let top = (f32(s[LIMBS - 1u]) * 1048576.0 + f32(s[LIMBS - 2u])) * 1048576.0 + f32(s[LIMBS - 3u]);
    let times = u32(top * bitcast<f32>(rows[product + LIMBS]) + 0.5);
    var sum = vec4<u32>(0u);
    for (var n = LIMBS; n > 0u; n--) {
        let less = times * rows[product + n - 1u];
        sum = horner(sum, 20u, s[n - 1u] - less, select(0u, 0xffffffffu, s[n - 1u] < less));
    }
    return sum;
}
{{- end}}

@compute @workgroup_size({{.LX}}, {{.LY}}, {{.LZ}})
fn main(@builtin(local_invocation_index) t: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let i = (group.x + group.z * p.width) * {{.LX}}u + t;
    let row = i / p.ldq;
    let j = i % p.ldq;
    if (row >= p.items || j >= p.n) { return; }
    store(row, j, sum_of(row, j));
}
