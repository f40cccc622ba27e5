// Computes: C (rows × n) = alpha·A·B + beta·C, A (rows × cols) as lane streams, f32, f16 or bf16, sums in f32, through
// WebGPU.
// Tile: a workgroup computes (64·p.each × 64), an invocation (16 × 4), as scalar.comp.
// Data movement: 16 columns of A at a time are expanded to a dense tile in workgroup memory. Rows of B come straight
// from memory.
// Bound by: FMA.
// Template: ROWS (16, of an invocation), POSITIONS (16, of a word), ELEM.

{{.HALF}}
{{.NONFINITE}}

const LOCAL = {{.LX}}u;
const TEAMS = {{.TEAMS}}u;

var<workgroup> tile: array<f32, {{.TILE}}>;

{{if .QUANT}}
const QUANT = {{.QUANT}}u;
{{.QUANTISED}}
{{end}}
{{if eq .ELEM "0"}}
fn element(w: u32, i: u32) -> f32 { return bitcast<f32>(w); }
fn value(i: u32) -> f32 { return bitcast<f32>(values[i]); }
fn b_element(row: u32, j: u32) -> f32 { return bitcast<f32>(b[row * p.ldb + j]); }
fn b_quad(row: u32, j: u32) -> vec4<f32> {
    let i = row * p.ldb + j;
    return bitcast<vec4<f32>>(vec4<u32>(b[i], b[i + 1u], b[i + 2u], b[i + 3u]));
}
fn exact(i: u32) -> f32 { return value(i); }
{{else}}
{{template "PAIR" .}}
fn element(w: u32, i: u32) -> f32 { return bitcast<f32>(widen((w >> (16u * (i & 1u))) & 0xffffu, {{.ELEM}}u)); }
{{if .QUANT}}
fn value(i: u32) -> f32 { return level(values[i / 4u], i & 3u); } // without its scale
{{else}}
fn value(i: u32) -> f32 { return pair(values[i / 2u] >> (16u * (i & 1u))).x; }
{{end}}
fn b_element(row: u32, j: u32) -> f32 { return element(b[row * (p.ldb / 2u) + j / 2u], j); }
fn b_quad(row: u32, j: u32) -> vec4<f32> {
    let i = row * (p.ldb / 2u) + j / 2u;
    return vec4<f32>(pair(b[i]), pair(b[i + 1u]));
}
// exact is value for numbers that may be Inf or NaN.
fn exact(i: u32) -> f32 { return {{if .QUANT}}value(i){{else}}element(values[i / 2u], i){{end}}; }
{{end}}

// Where the arrays are in `index`: StreamPtr, SegmentRows, RemainderPtr, RemainderCol, Stored, and for a quantised
// matrix its scales, row after row.
fn streams() -> u32 { return p.groups * p.splits; }
fn remainder_at(row: u32) -> u32 { return index[2u * streams() + 1u + row]; }
fn remainder_col(i: u32) -> u32 { return index[2u * streams() + p.rows + 2u + i]; }
// remainder_values returns the number of the COO remainder's first value: they lie behind the streams' values.
fn remainder_values() -> u32 { return 64u * index[streams()]; }
fn stored(value: u32) -> bool {
    return ((remainder_col(remainder_at(p.rows) + (value >> 5u)) >> (value & 31u)) & 1u) != 0u;
}
// scale_of returns the scale of an element of A.
{{if .QUANT}}
fn scale_of(row: u32, col: u32) -> f32 {
    let first = remainder_at(p.rows) + 2u * index[streams()];
    return bitcast<f32>(remainder_col(first + row * ((p.cols + 127u) / 128u) + col / 128u));
}
{{else}}
fn scale_of(row: u32, col: u32) -> f32 { return 1.0; }
{{end}}
fn first_segment(split: u32) -> u32 { return p.segments * split / p.splits; }
fn mask_word(group: u32, step: u32, i: u32) -> u32 { return mask[(group * p.segments * p.steps + step) * 64u + i]; }

// entries returns the sum of row r of a group's entries times column j of B.
fn entries(group: u32, r: u32, j: u32) -> f32 {
    var sum = Terms(0.0, 0u);
    let mine = ((r >> 3u) & 1u) | ((r >> 4u) << 2u); // the row's positions, without their bit 1
    for (var split = 0u; split < p.splits; split = split + 1u) {
        for (var chain = 8u * (r & 7u); chain < 8u * (r & 7u) + 8u; chain = chain + 1u) {
            var at = 64u * index[group * p.splits + split] + chain;
            let end = first_segment(split + 1u) * p.steps;
            for (var s = first_segment(split) * p.steps; s < end; s = s + 1u) {
                for (var w = 0u; w < 2u; w = w + 1u) {
                    let word = mask_word(group, s, chain / 2u * 2u + w) >> (chain & 1u);
                    for (var i = 0u; i < 16u; i = i + 1u) {
                        if (((word >> (2u * i)) & 1u) == 0u) { continue; }
                        let k = s * 32u + 16u * w + 8u * ((i >> 1u) & 1u) + 4u * (chain & 1u) + ((chain / 2u) & 3u);
                        if ((i & 13u) == mine && stored(at)) {
                            sum = add_term(sum, scale_of(group * 64u + r, k) * exact(at), b_element(k, j));
                        }
                        at = at + 64u;
                    }
                }
            }
        }
    }
    let row = group * 64u + r;
    let end = remainder_at(row + 1u);
    for (var i = remainder_at(row); i < end; i = i + 1u) {
        let k = remainder_col(i);
        sum = add_term(sum, scale_of(row, k) * exact(remainder_values() + i), b_element(k, j));
    }
    return total(sum);
}

// store_quad writes the sums of row r of a group to columns j to j+3.
fn store_quad(group: u32, r: u32, j: u32, x: vec4<f32>) {
    var y = x;
    for (var i = 0u; i < 4u; i = i + 1u) {
        if (j + i >= p.n) { return; }
        if (special(y[i])) { y[i] = entries(group, r, j + i); }
        store(group * 64u + r, j + i, y[i]);
    }
}

// keep writes the value of a chain's position i to a team's tile, whose first row in A is `row` and first column `col`.
fn keep(to: u32, chain: u32, i: u32, x: f32, row: u32, col: u32) {
    let k = 8u * ((i >> 1u) & 1u) + 4u * (chain & 1u) + ((chain >> 1u) & 3u);
    let r = 16u * (i >> 2u) + 8u * (i & 1u) + (chain >> 3u);
    tile[to + 64u * k + 4u * ((r >> 2u) ^ (k & 7u)) + (r & 3u)] = x
        {{if .QUANT}} * scale_of(min(row + r, p.rows - 1u), min(col + k, p.cols - 1u)){{end}};
}

// remainder returns the sum of a share of row r's COO remainder, for columns j to j+3.
fn remainder(row: u32, share: u32, shares: u32, j: u32) -> vec4<f32> {
    var sum = vec4<f32>();
    let end = remainder_at(row + 1u);
    for (var i = remainder_at(row) + share; i < end; i = i + shares) {
        let col = remainder_col(i);
        sum = sum + scale_of(row, col) * value(remainder_values() + i) * b_quad(col, j);
    }
    return sum;
}

@compute @workgroup_size({{.LX}}, {{.LY}}, {{.LZ}})
fn main(@builtin(workgroup_id) at: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    let base = at.y * 64u;
    let first = (at.x + at.z * p.width) * p.each;
    if (first >= p.groups) { return; }
    let team = t / 64u;
    let me = t % 64u;
    let share = team / p.each;
    let shares = min(TEAMS / p.each, p.splits);
    let group = first + team % p.each;
    let works = share < shares && group < p.groups;

    var width = 1u;
    while (width < 16u && 4u * width < p.n - base) { width = width * 2u; }
    let slices = 16u / width;
    let slice = me % 16u / width;
    let rows = me / 16u * {{.ROWS}}u;
    let j = base + me % width * 4u;
    let column = min(j, p.ldb - 4u); // columns past the last are never stored
{{range $r := .ROWS}}
    var acc{{$r}} = vec4<f32>();{{end}}

    let most = (p.segments + p.splits - 1u) / p.splits * p.steps * 2u; // words of the longest split
    for (var round = 0u; round < p.splits; round = round + shares) {
        let split = round + share;
        var words = 0u;
        var begin = 0u;
        var next = me;
        var end = 0u; // the stream's last value
        if (works && split < p.splits) {
            let stream = group * p.splits + split;
            begin = first_segment(split) * p.steps;
            words = first_segment(split + 1u) * p.steps * 2u - 2u * begin;
            next = 64u * index[stream] + me;
            end = 64u * index[stream + 1u] - min(1u, 64u * index[stream + 1u]);
        }
        // While a word is multiplied, the values of the next word are loaded, and the mask of the one after it. All
        // positions are loaded, needed or not, so that no load waits for another.
        var bits = 0u;
        if (words > 0u) { bits = mask_word(group, begin, me / 2u * 2u) >> (me & 1u); }
{{range $i := .POSITIONS}}
        var x{{$i}} = select(0.0, value(min(next, end)), ((bits >> (2u * {{$i}}u)) & 1u) != 0u);
        next = next + 64u * ((bits >> (2u * {{$i}}u)) & 1u);{{end}}
        bits = 0u;
        if (words > 1u) { bits = mask_word(group, begin, me / 2u * 2u + 1u) >> (me & 1u); }
        for (var w = 0u; w < most; w = w + 1u) {
            workgroupBarrier();
            if (w < words) {
{{range $i := .POSITIONS}}
                keep(team * 1024u, me, {{$i}}u, x{{$i}}, group * 64u, begin * 32u + 16u * w);{{end}}
            }
            workgroupBarrier();
{{range $i := .POSITIONS}}
            x{{$i}} = select(0.0, value(min(next, end)), ((bits >> (2u * {{$i}}u)) & 1u) != 0u);
            next = next + 64u * ((bits >> (2u * {{$i}}u)) & 1u);{{end}}
            bits = 0u;
            if (w + 2u < words) {
                    bits = mask_word(group, begin + (w + 2u) / 2u, me / 2u * 2u + (w & 1u)) >> (me & 1u);
                }
            if (w < words) {
                for (var k = slice; k < 16u; k = k + slices) {
                    let y = b_quad(min(begin * 32u + 16u * w + k, p.cols - 1u), column);
                    let place = team * 1024u + 64u * k;
{{range $r := .ROWS}}
                    acc{{$r}} = acc{{$r}} +
                        tile[place + 4u * (((rows + {{$r}}u) / 4u) ^ (k & 7u)) + {{$r}}u % 4u] * y;{{end}}
                }
            }
        }
    }

    // Rows are stored one after the other, always from acc0, and the others move up: so the code is small.
    let row = group * 64u + rows;
    for (var r = 0u; r < {{.ROWS}}u; r = r + 1u) {
        var x = acc0;
{{$last := 0}}{{range $r := .ROWS}}{{if $r}}
        acc{{$last}} = acc{{$r}};{{end}}{{$last = $r}}{{end}}
        if (works && row + r < p.rows) { x = x + remainder(row + r, share * slices + slice, shares * slices, column); }
        if (shares * slices > 1u) {
            workgroupBarrier();
            for (var i = 0u; i < 4u; i = i + 1u) { tile[4u * t + i] = x[i]; }
            workgroupBarrier();
        }
        if (works && share == 0u && slice == 0u && row + r < p.rows) {
            for (var i = 1u; i < shares * slices; i = i + 1u) {
                let place = 4u * (t + i / slices * p.each * 64u + i % slices * width);
                x = x + vec4<f32>(tile[place], tile[place + 1u], tile[place + 2u], tile[place + 3u]);
            }
            store_quad(group, rows + r, j, x);
        }
    }
}
