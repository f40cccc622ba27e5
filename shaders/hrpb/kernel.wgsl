// Computes: C = alpha·A·B + beta·C, A (rows × cols) in HRPB, f32, f16 or bf16, sums in f32, through WebGPU.
// Tile: a workgroup computes (16 × 4·LX) for a run of a panel's blocks, an invocation (16 × 4), as kernel.comp.
// Data movement: a block's values are unpacked into workgroup memory (16 × BLOCK). Rows of B come straight from memory;
// words of B are neighbours across invocations.
// Bound by: FMA.
// Template: BLOCK (active columns of a block), SLOTS = 16·BLOCK, ELEM. Sums have names of their own, since an array
// would lie in memory.

{{.HALF}}
{{.NONFINITE}}

const BLOCK = {{.BLOCK}}u;
const ROWS = 16u;
const LOCAL = {{.LX}}u;
const PATTERNS = {{.PATTERNS}}u; // words of a block's patterns
const NO_SLOT = 0xffffffffu;

var<workgroup> values: array<f32, {{.SLOTS}}>; // 16 rows of each active column
var<workgroup> cols: array<u32, {{.BLOCK}}>;
var<workgroup> partial: array<vec4<f32>, {{.LX}}>;

{{if eq .ELEM "0"}}
// element returns element i of the values that start at word `at`.
fn element(at: u32, i: u32) -> f32 { return bitcast<f32>(packed[at + i]); }
fn b_element(row: u32, j: u32) -> f32 { return bitcast<f32>(b[row * p.ldb + j]); }
{{else}}
{{template "PAIR" .}}
fn half(w: u32, i: u32) -> f32 { return bitcast<f32>(widen((w >> (16u * (i & 1u))) & 0xffffu, {{.ELEM}}u)); }
// element returns element i of the values that start at word `at`.
fn element(at: u32, i: u32) -> f32 { return half(packed[at + i / 2u], i); }
fn b_element(row: u32, j: u32) -> f32 { return half(b[row * (p.ldb / 2u) + j / 2u], j); }
{{end}}

// entries returns the sum of row r's entries, in blocks first to last, times column j of B.
fn entries(first: u32, last: u32, r: u32, j: u32) -> f32 {
    var sum = Terms(0.0, 0u);
    for (var q = first; q < last; q = q + 1u) {
        let block = sizes[q] * 4u;
        var before = 0u; // entries of the words before
        for (var i = 0u; i < PATTERNS; i = i + 1u) {
            let word = packed[block + i];
            let shift = (r & 7u) * 4u;
            var mine = 0u;
            if ((i & 1u) == r / 8u) { mine = (word >> shift) & 15u; }
            var k = before + countOneBits(word & ((1u << shift) - 1u));
            for (var c = 0u; c < 4u && mine != 0u; c = c + 1u) {
                if (((mine >> c) & 1u) == 0u) { continue; }
                let x = element(block + PATTERNS, k);
                let y = b_element(columns[q * BLOCK + i / 2u * 4u + c], j);
                k = k + 1u;
                sum = add_term(sum, x, y);
            }
            before = before + countOneBits(word);
        }
    }
    return total(sum);
}

// finish writes the sum x of row r of a panel, whose blocks are first to last, to column j of C. One that
// is not finite is replaced.
fn finish(panel: u32, first: u32, last: u32, r: u32, j: u32, x: f32) {
    var row = panel * ROWS + r;
    if (row >= p.rows || j >= p.n) { return; }
    if (p.places != 0u) { row = work[p.places + row]; }
    var y = x;
    if (special(y)) { y = entries(first, last, r, j); }
    store(row, j, y);
}

// add_slots is phase 1: the sums of a split panel.
fn add_slots(item: u32, base: u32, t: u32) {
    let at = (p.parts + item) * 4u;
    let first = work[at + 1u];
    let last = work[at + 2u];
    let slots = (last - first + p.longest - 1u) / p.longest;
    for (var i = t; i < ROWS * 4u * LOCAL; i = i + LOCAL) {
        let r = i / (4u * LOCAL);
        let j = base + i % (4u * LOCAL);
        if (j >= p.n) { continue; }
        var x = 0.0;
        for (var s = 0u; s < slots; s = s + 1u) { x = x + part[((work[at + 3u] + s) * ROWS + r) * p.ldp + j]; }
        finish(work[at], first, last, r, j, x);
    }
}

// keep_quad writes the sums of row r of a part: to C, or to its slot.
fn keep_quad(item: u32, r: u32, j: vec4<u32>, x: vec4<f32>) {
    let slot = work[item * 4u + 3u];
    var y = x;
    var at = j;
    for (var i = 0; i < 4; i = i + 1) {
        if (slot == NO_SLOT) {
            finish(work[item * 4u], work[item * 4u + 1u], work[item * 4u + 2u], r, at[i], y[i]);
        } else if (at[i] < p.n) {
            part[(slot * ROWS + r) * p.ldp + at[i]] = y[i];
        }
    }
}

// load_stage unpacks block q.
fn load_stage(q: u32, t: u32) {
    let block = sizes[q] * 4u;
    for (var i = t; i < BLOCK * ROWS; i = i + LOCAL) {
        let col = i / ROWS;
        let bit = i % ROWS * 4u + col % 4u;
        let word = col / 4u * 2u + bit / 32u;
        var k = 0u;
        for (var w = 0u; w < word; w = w + 1u) { k = k + countOneBits(packed[block + w]); }
        let pattern = packed[block + word];
        let mine = 1u << (bit & 31u);
        var x = 0.0;
        if ((pattern & mine) != 0u) { x = element(block + PATTERNS, k + countOneBits(pattern & (mine - 1u))); }
        values[i] = x;
    }
    if (t < BLOCK) { cols[t] = columns[q * BLOCK + t]; }
}

@compute @workgroup_size({{.LX}}, {{.LY}}, {{.LZ}})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    let item = group.x + group.z * p.width;
    if (item >= p.items) { return; }
    let base = group.y * 4u * LOCAL;
    if (p.phase == 1u) {
        add_slots(item, base, t);
        return;
    }
    let last = work[item * 4u + 2u];
{{template "COLUMNS" .}}
{{range $r := .ROWS}}
    var acc{{$r}} = vec4<f32>();{{end}}

    for (var q = work[item * 4u + 1u]; q < last; q = q + 1u) {
        workgroupBarrier();
        load_stage(q, t);
        workgroupBarrier();
        for (var i = slice; i < BLOCK; i = i + slices) {
            if (i > 0u && cols[i] == cols[i - 1u]) { break; } // padding
            let row = cols[i] * stride;
{{template "FOUR" .}}
{{range $r := .ROWS}}
            acc{{$r}} = acc{{$r}} + values[i * ROWS + {{$r}}u] * x;{{end}}
        }
    }
{{range $r := .ROWS}}
    if (slices > 1u) {
        workgroupBarrier();
        partial[t] = acc{{$r}};
        workgroupBarrier();
        if (slice == 0u) {
            for (var i = 1u; i < slices; i = i + 1u) { acc{{$r}} = acc{{$r}} + partial[i * width + lane]; }
        }
    }
    if (slice == 0u) { keep_quad(item, {{$r}}u, j, acc{{$r}}); }
{{end}}
}
