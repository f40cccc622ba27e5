// Computes: C (rows × n) = alpha·A·B + beta·C, dense, f32, f16 or bf16, sums in f32, through WebGPU.
// Tile: a workgroup of 128 invocations computes (64 × 64), an invocation (8 × 4), as kernel.comp.
// Data movement: steps of 16 of k are loaded into workgroup memory in f32.
// Bound by: FMA.
// Template: ELEM. Each sum is a variable of its own, because an array would be in memory.

{{.HALF}}
{{.NONFINITE}}

const STEP = 16u;
const PITCH = 68u; // elements from one k to the next

const TILE = 1088u; // elements of a step of an operand

var<workgroup> tiles: array<f32, 2176>; // a step of L, then of R

// Operand is L as its rows, or R as its columns. Line i is row or column i, and has p.cols elements.
struct Operand {
    second: bool, // it is B
    ld: u32,
    lines: u32,
    along: bool, // K-major: elements of a line are neighbours in memory; else MN-major ("across")
}

fn left() -> Operand {
    if ((p.order & 2u) != 0u) { return Operand(true, p.ldb, p.rows, (p.order & 1u) != 0u); }
    return Operand(false, p.lda, p.rows, true);
}

fn right() -> Operand {
    if ((p.order & 2u) != 0u) { return Operand(false, p.lda, p.n, true); }
    return Operand(true, p.ldb, p.n, (p.order & 1u) != 0u);
}

fn place_of(x: Operand, i: u32, k: u32) -> u32 {
    if (x.along) { return i * x.ld + k; }
    return k * x.ld + i;
}

fn word(x: Operand, i: u32) -> u32 {
    if (x.second) { return b[i]; }
    return a[i];
}

{{if eq .ELEM "0"}}
const PER = 1u; // elements of a word
fn element(x: Operand, i: u32) -> f32 { return bitcast<f32>(word(x, i)); }
{{else}}
const PER = 2u;
fn element(x: Operand, i: u32) -> f32 {
    return bitcast<f32>(widen((word(x, i / 2u) >> (16u * (i & 1u))) & 0xffffu, {{.ELEM}}u));
}
{{end}}

{{if .QUANT}}
const QUANT = {{.QUANT}}u;
{{.QUANTISED}}
// A quantised A: its rows of codes have a multiple of 16 bytes, and the scales are behind them.
fn code_words() -> u32 { return (p.cols + 15u) / 16u * 4u; }
fn codes_of(row: u32, k: u32) -> u32 { return a[row * code_words() + k / 4u]; } // that of column k in byte k % 4
fn scale_of(row: u32, k: u32) -> f32 {
    return bitcast<f32>(a[p.rows * code_words() + row * ((p.cols + 127u) / 128u) + k / 128u]);
}
fn left_of(x: Operand, i: u32, k: u32) -> f32 { return scale_of(i, k) * level(codes_of(i, k), k % 4u); }

// load_codes does what load_stage does for quantised rows. Codes past the last column become 0.
fn load_codes(tile: u32, x: Operand, i: u32, k: u32, t: u32) {
    for (var at = t; at < 64u * STEP / 4u; at = at + {{.LX}}u) {
        let line = at % 64u;
        let place = at / 64u * 4u;
        var codes = 0u;
        var s = 0.0;
        if (i + line < x.lines && k + place < p.cols) {
            codes = codes_of(i + line, k + place);
            s = scale_of(i + line, k + place);
        }
        for (var e = 0u; e < 4u; e = e + 1u) { tiles[tile + (place + e) * PITCH + line] = s * level(codes, e); }
    }
}
{{else}}
fn left_of(x: Operand, i: u32, k: u32) -> f32 { return element(x, place_of(x, i, k)); }
{{end}}
// pair returns the elements of a word.
fn pair(w: u32) -> vec2<f32> {
{{if eq .ELEM "0"}}
    return vec2<f32>(bitcast<f32>(w), 0.0);
{{else if eq .ELEM "2"}}
    return bitcast<vec2<f32>>(vec2<u32>(w << 16u, w & 0xffff0000u));
{{else}}
    return unpack2x16float(w);
{{end}}
}

// load_stage copies k to k + STEP of lines i to i + 64 to shared memory, where they lie across: for each k, the
// elements of 64 lines are neighbours. Elements past the operand's end become 0.
fn load_stage(tile: u32, x: Operand, i: u32, k: u32, t: u32) {
    for (var at = t; at < 64u * STEP / PER; at = at + {{.LX}}u) {
        var line = at / (STEP / PER);
        var place = at % (STEP / PER) * PER;
        if (!x.along) {
            line = at % (64u / PER) * PER;
            place = at / (64u / PER);
        }
        var v = vec2<f32>();
        if (i + line < x.lines && k + place < p.cols) { v = pair(word(x, place_of(x, i + line, k + place) / PER)); }
        let to = tile + place * PITCH + line;
        tiles[to] = v.x;
{{if ne .ELEM "0"}}
        if (x.along) {
            if (k + place + 1u >= p.cols) { v.y = 0.0; } // it can be read, but need not be 0
            tiles[to + PITCH] = v.y;
        } else {
            tiles[to + 1u] = v.y;
        }
{{end}}
    }
}

// entries returns an output computed again from the entries of A alone, one after the other: the finite repair.
fn entries(row: u32, col: u32) -> f32 {
    var sum = Terms(0.0, 0u);
    let l = left();
    let r = right();
    let bits = select(row, col, (p.order & 2u) != 0u) * p.words; // of the row of A: those of entries
    for (var k = 0u; k < p.cols; k = k + 1u) {
        if (p.words != 0u && ((stored[bits + k / 32u] >> (k % 32u)) & 1u) == 0u) { continue; }
        sum = add_term(sum, left_of(l, row, k), element(r, place_of(r, col, k)));
    }
    return total(sum);
}

fn store_quad(row: u32, col: u32, x: vec4<f32>) {
    if (row >= p.rows) { return; }
    var y = x;
    for (var i = 0u; i < 4u; i = i + 1u) {
        if (col + i >= p.n) { return; }
        if (special(y[i])) { y[i] = entries(row, col + i); }
        store(row, col + i, y[i]);
    }
}

@compute @workgroup_size({{.LX}}, {{.LY}}, {{.LZ}})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    let tile = group.x + group.z * p.width;
    let row = tile / p.across * 64u;
    let col = tile % p.across * 64u;
    if (row >= p.rows) { return; }
    let l = left();
    let r = right();
    let down = t / 16u * 8u;
    let across = t % 16u * 4u;
{{range $r := .HIGH}}
    var acc{{$r}} = vec4<f32>();{{end}}
    for (var k = 0u; k < p.cols; k = k + STEP) {
        workgroupBarrier();
        {{if .QUANT}}load_codes{{else}}load_stage{{end}}(0u, l, row, k, t);
        load_stage(TILE, r, col, k, t);
        workgroupBarrier();
        for (var e = 0u; e < STEP; e = e + 1u) {
            let y = TILE + e * PITCH + across;
            let x = e * PITCH + down;
            let w = vec4<f32>(tiles[y], tiles[y + 1u], tiles[y + 2u], tiles[y + 3u]);
{{range $r := .HIGH}}
            acc{{$r}} = acc{{$r}} + tiles[x + {{$r}}u] * w;{{end}}
        }
    }
{{range $r := .HIGH}}
    store_quad(row + down + {{$r}}u, col + across, acc{{$r}});{{end}}
}
