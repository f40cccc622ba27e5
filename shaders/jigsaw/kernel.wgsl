// Computes: C = alpha·A·B + beta·C, A (rows × cols) in Jigsaw's format, f32, f16 or bf16, sums in f32, through WebGPU.
// Tile: a workgroup computes a strip (ROWS × 4·LX), an invocation (ROWS × 4), as kernel.comp.
// Data movement: STAGE steps at a time are expanded in workgroup memory. Rows of B come straight from memory; words of
// B are neighbours across invocations.
// Bound by: FMA.
// Template: ROWS, STAGE, VECTORS = STAGE·32, VALUES = VECTORS·ROWS, ELEM. Sums have names of their own, since an array
// would lie in memory.

{{.HALF}}
{{.NONFINITE}}

const ROWS = {{.ROWS}}u;
const STAGE = {{.STAGE}}u;
const LOCAL = {{.LX}}u;

var<workgroup> stage_values: array<f32, {{.VALUES}}>;
var<workgroup> stage_cols: array<u32, {{.VECTORS}}>;
var<workgroup> sums: array<vec4<f32>, {{.LX}}>;

{{if eq .ELEM "0"}}
{{template "VALUES_32" .}}
{{else}}
{{template "PAIR" .}}
{{template "VALUES_16" .}}
{{end}}

// places returns where in quad q of tile t of step n the two entries of row g and of row g + 8 are, 2 bits each:
// those of row g in the lowest four bits, of row g + 8 16 bits above.
fn places(n: u32, t: u32, g: u32, q: u32) -> u32 {
    return (metadata[32u * (n / 2u) + 4u * g + 2u * (n & 1u) + t] >> (4u * q)) & 0xf000fu;
}

// entries returns the sum of row r's entries, in steps first to last, times column j of B.
fn entries(first: u32, last: u32, r: u32, j: u32) -> f32 {
    var sum = Terms(0.0, 0u);
    for (var i = 16u * first; i < 16u * last; i = i + 1u) { // step i/16, quad i/4%4, tile i/2%2, entry i%2
        let n = i / 16u;
        let q = (i / 4u) & 3u;
        let t = (i / 2u) & 1u;
        let slot = 256u * n + 8u * (4u * (r & 7u) + q) + 4u * t + 2u * (r / 8u) + (i & 1u);
        if (((mask[slot / 32u] >> (slot & 31u)) & 1u) == 0u) { continue; }
        let k = 16u * t + 4u * q + ((places(n, t, r & 7u, q) >> (16u * (r / 8u) + 2u * (i & 1u))) & 3u);
        let x = value(slot);
        let y = b_element(colidx[32u * n + k], j);
        sum = add_term(sum, x, y);
    }
    return total(sum);
}

// store_quad writes the sums of row r of a strip, whose steps are first to last.
fn store_quad(first: u32, last: u32, number: u32, r: u32, j: vec4<u32>, x: vec4<f32>) {
    let row = number * ROWS + r;
    if (row >= p.rows) { return; }
    var y = x;
    var at = j;
    for (var i = 0; i < 4; i = i + 1) {
        if (at[i] >= p.n) { continue; }
        if (special(y[i])) { y[i] = entries(first, last, r, at[i]); }
        store(row, at[i], y[i]);
    }
}

// expand writes m steps from number n on to workgroup memory, each place once.
fn expand(n: u32, m: u32, local: u32) {
    for (var i = local; i < m * 64u; i = i + LOCAL) {
        let s = n + i / 64u;
        let lane = (i / 2u) & 31u;
        let t = i & 1u;
        let g = lane / 4u;
        let q = lane & 3u;
        let x = value_quad(64u * s + 2u * lane + t);
        let at = places(s, t, g, q);
        let to = ((i / 64u) * 32u + 16u * t + 4u * q) * ROWS + g;
        for (var k = 0u; k < 4u; k = k + 1u) {
            var upper = 0.0;
            if (k == (at & 3u)) { upper = x.x; }
            if (k == ((at >> 2u) & 3u)) { upper = x.y; }
            var lower = 0.0;
            if (k == ((at >> 16u) & 3u)) { lower = x.z; }
            if (k == ((at >> 18u) & 3u)) { lower = x.w; }
            stage_values[to + k * ROWS] = upper;
            stage_values[to + k * ROWS + 8u] = lower;
        }
    }
    for (var i = local; i < m * 32u; i = i + LOCAL) { stage_cols[i] = colidx[32u * n + i]; }
}

@compute @workgroup_size({{.LX}}, {{.LY}}, {{.LZ}})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    let slot = group.x + group.z * p.width;
    if (slot >= p.blocks) { return; }
    let number = index[2u * (p.blocks + 1u) + slot];
    let first = index[p.blocks + 1u + number];
    let last = index[p.blocks + 2u + number];
    let base = group.y * 4u * LOCAL;
{{template "COLUMNS" .}}
{{range $r := .ROWS}}
    var acc{{$r}} = vec4<f32>();{{end}}

    for (var s = first; s < last; s = s + STAGE) {
        let m = min(STAGE, last - s);
        workgroupBarrier();
        expand(s, m, t);
        workgroupBarrier();
        for (var k = slice; k < 32u * m; k = k + slices) {
            let row = stage_cols[k] * stride;
{{template "FOUR" .}}
{{range $r := .ROWS}}
            acc{{$r}} = acc{{$r}} + stage_values[k * ROWS + {{$r}}u] * x;{{end}}
        }
    }
{{range $r := .ROWS}}
{{template "JOIN" $r}}
    if (slice == 0u) { store_quad(first, last, number, {{$r}}u, j, acc{{$r}}); }
{{end}}
}
