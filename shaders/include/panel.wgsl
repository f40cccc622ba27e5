// Panels × dense through WebGPU: the same work as panel_scalar.glsl. A kernel's own file defines locate and row_of.
//
// Tile: a workgroup computes a panel (V × 4·LX), an invocation (V × 4). Neighbouring invocations have neighbouring
// words of B.
// Data movement: values and column numbers of STAGE columns go through workgroup memory. Rows of B come straight from
// memory.
// Bound by: FMA if C has many columns, else gathers of rows of B.
// Template: V, STAGE, QUADS = V/4, VALUES = STAGE·QUADS, ELEM. Each sum is a variable of its own, because an array
// would be in memory.

{{.HALF}}
{{.NONFINITE}}

const V = {{.V}}u;
const STAGE = {{.STAGE}}u;
const QUADS = {{.QUADS}}u;
const LOCAL = {{.LX}}u;
const COLS = {{.COLS}}u;
const NO_SLOT = 0xffffffffu;

// Work is a workgroup's task: columns first to last - 1 of a panel, numbered over all panels; rows, from which the
// kernel finds the panel's rows of C; the slot of the workspace for partial sums (NO_SLOT: the sums go to C); and its
// first column of C, which is p.n if it has nothing to do.
struct Work { first: u32, last: u32, rows: u32, slot: u32, base: u32 }

// panel_of returns the work of a record of the work list, of those of the launch's phase.
fn panel_of(number: u32, base: u32) -> Work {
    let at = (p.start + number) * 4u;
    return Work(work[at], work[at + 1u], work[at + 2u], work[at + 3u], base);
}

var<workgroup> stage_values: array<vec4<f32>, {{.VALUES}}>;
var<workgroup> stage_cols: array<u32, {{.STAGE}}>;
var<workgroup> sums: array<vec4<f32>, {{.LX}}>;

{{if eq .ELEM "0"}}
fn element(w: u32, i: u32) -> f32 { return bitcast<f32>(w); }
{{template "VALUES_32" .}}
{{else}}
{{template "PAIR" .}}
{{template "VALUES_16" .}}
{{end}}

// entries returns an output computed from the entries alone: the sum over row r's entries, among vectors first to last
// - 1, times column j of B.
fn entries(first: u32, last: u32, r: u32, j: u32) -> f32 {
    var sum = Terms(0.0, 0u);
    for (var q = first; q < last; q = q + 1u) {
        // 32 vectors have V words of mask bits.
        let bit = (q % 32u) * V + r;
        if (((mask[(q / 32u) * V + bit / 32u] >> (bit % 32u)) & 1u) == 0u) { continue; }
        let x = value(q * V + r);
        let y = b_element(colind[q], j);
        sum = add_term(sum, x, y);
    }
    return total(sum);
}

// finish writes the sum x of row r of a whole panel, whose vectors are first to last, to column j of C.
fn finish(first: u32, last: u32, rows: u32, r: u32, j: u32, x: f32) {
    let row = row_of(rows, r);
    if (row >= p.rows || j >= p.n) { return; }
    var y = x;
    if (special(y)) { y = entries(first, last, r, j); }
    store(row, j, y);
}

// keep_quad writes the sums of row r: to C, or partial sums to their slot, whose rows have ld columns.
fn keep_quad(first: u32, last: u32, rows: u32, slot: u32, r: u32, j: vec4<u32>, x: vec4<f32>) {
    let ld = (p.n + 7u) / 8u * 8u;
    var y = x;
    var at = j;
    for (var i = 0; i < 4; i = i + 1) {
        if (slot == NO_SLOT) {
            finish(first, last, rows, r, at[i], y[i]);
        } else if (at[i] < p.n) {
            part[(slot * V + r) * ld + at[i]] = y[i];
        }
    }
}

// add_parts is phase 1: an invocation adds the partial sums of four columns of a row of a heavy panel.
fn add_parts(group: vec3<u32>, t: u32) {
    let number = group.x + group.z * p.width;
    let quads = (p.n + 7u) / 8u * 2u;
    let r = (group.y * LOCAL + t) / quads;
    let j = (group.y * LOCAL + t) % quads * 4u;
    if (number >= p.panels || r >= V) { return; }
    let heavy = panel_of(number, 0u);
    let end = panel_of(number + 1u, 0u).slot;
    for (var i = j; i < min(j + 4u, p.n); i = i + 1u) {
        var x = 0.0;
        for (var s = heavy.slot; s < end; s = s + 1u) { x = x + part[(s * V + r) * (4u * quads) + i]; }
        finish(heavy.first, heavy.last, heavy.rows, r, i, x);
    }
}

@compute @workgroup_size({{.LX}}, {{.LY}}, {{.LZ}})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    if (p.phase == 1u) {
        add_parts(group, t);
        return;
    }
    let mine = locate(group);
    let first = mine.first;
    let last = mine.last;
    let base = mine.base;
    if (base >= p.n) { return; }
{{template "COLUMNS" .}}
{{range $r := .V}}
    var acc{{$r}} = vec4<f32>();{{end}}

    for (var s = first; s < last; s = s + STAGE) {
        let m = min(STAGE, last - s);
        workgroupBarrier();
        for (var i = t; i < m * QUADS; i = i + LOCAL) { stage_values[i] = value_quad(s * QUADS + i); }
        for (var i = t; i < m; i = i + LOCAL) { stage_cols[i] = colind[s + i]; }
        workgroupBarrier();
        for (var q = slice; q < m; q = q + slices) {
            let row = stage_cols[q] * stride;
{{template "FOUR" .}}
{{range $r := .V}}
            acc{{$r}} = acc{{$r}} + stage_values[q * QUADS + {{$r}}u / 4u][{{$r}}u % 4u] * x;{{end}}
        }
    }
{{range $r := .V}}
{{template "JOIN" $r}}
    if (slice == 0u) { keep_quad(first, last, mine.rows, mine.slot, {{$r}}u, j, acc{{$r}}); }
{{end}}
}
