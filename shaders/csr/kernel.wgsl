// Computes: C (rows × n) = alpha·A·B + beta·C, A (rows × cols) in CSR, B (cols × n) row-major, f32, f16 or bf16, sums
// in f32.
// Tile: a row segment × a tile of columns, as kernel.comp. An invocation has four words of a row of B, p.across words
// apart, so that neighbours load neighbouring words. lo has the sums of the words' first elements, hi of their second.
// Data movement: A's entries and rows of B go straight from memory to registers.
// Bound by: gathers of rows of B.
// Template: ELEM (0 f32, 1 f16, 2 bf16).

var<workgroup> sums_lo: array<vec4<f32>, {{.LX}}>;
{{if ne .ELEM "0"}}var<workgroup> sums_hi: array<vec4<f32>, {{.LX}}>;{{end}}
var<private> lo: vec4<f32>;
var<private> hi: vec4<f32>;

// columns is the number of columns of a word.
{{if eq .ELEM "0"}}const columns = 1u;{{else}}const columns = 2u;{{end}}

// value returns entry e's value.
fn value(e: u32) -> f32 {
{{- if eq .ELEM "0"}}
    return bitcast<f32>(values[e]);
{{- else}}
    let h = (values[e / 2u] >> (16u * (e % 2u))) & 0xffffu;
{{- if eq .ELEM "1"}}
    return unpack2x16float(h).x;
{{- else}}
    return bitcast<f32>(h << 16u);
{{- end}}{{end}}
}

// offsets returns where the lane's words are, relative to its first. Words past the last column are read as the first;
// their sums are not stored.
fn offsets(word: u32) -> vec4<u32> {
    let d = vec4<u32>(0u, 1u, 2u, 3u) * p.across;
    return select(vec4<u32>(0u), d, (d + vec4<u32>(word)) * columns < vec4<u32>(p.n));
}

// fetch returns the lane's words of the row of B that entry e multiplies.
fn fetch(e: u32, word: u32, d: vec4<u32>) -> vec4<u32> {
    let w = vec4<u32>(word + colidx[e] * (p.ldb / columns)) + d;
    return vec4<u32>(b[w.x], b[w.y], b[w.z], b[w.w]);
}

// accumulate adds v times the elements in q.
fn accumulate(v: f32, q: vec4<u32>) {
{{- if eq .ELEM "0"}}
    lo += v * bitcast<vec4<f32>>(q);
{{- else if eq .ELEM "1"}}
    let x = unpack2x16float(q.x);
    let y = unpack2x16float(q.y);
    let z = unpack2x16float(q.z);
    let w = unpack2x16float(q.w);
    lo += v * vec4<f32>(x.x, y.x, z.x, w.x);
    hi += v * vec4<f32>(x.y, y.y, z.y, w.y);
{{- else}}
    lo += v * bitcast<vec4<f32>>(q << vec4<u32>(16u));
    hi += v * bitcast<vec4<f32>>(q & vec4<u32>(0xffff0000u));
{{- end}}
}

// entries adds the products of a lane group's share of the entries begin to end - 1: every along-th four.
fn entries(begin: u32, end: u32, group: u32, word: u32) {
    let d = offsets(word);
    for (var k = begin + 4u * group; k < end; k += 4u * p.along) {
        if (k + 4u > end) { // the last few
            for (var e = k; e < end; e++) { accumulate(value(e), fetch(e, word, d)); }
            return;
        }
        let q0 = fetch(k, word, d); // all loads before the first sum
        let q1 = fetch(k + 1u, word, d);
        let q2 = fetch(k + 2u, word, d);
        let q3 = fetch(k + 3u, word, d);
        accumulate(value(k), q0);
        accumulate(value(k + 1u), q1);
        accumulate(value(k + 2u), q2);
        accumulate(value(k + 3u), q3);
    }
}

// slots adds the lane group's share of the partial sums in rows first to last - 1 of the workspace.
fn slots(first: u32, last: u32, group: u32, word: u32) {
    for (var r = first + group; r < last; r += p.along) {
        for (var i = 0u; i < 4u; i++) {
            let col = (word + i * p.across) * columns;
            if (col < p.n) { lo[i] += part[r * p.ldp + col]; }
{{- if ne .ELEM "0"}}
            if (col + 1u < p.n) { hi[i] += part[r * p.ldp + col + 1u]; }
{{- end}}
        }
    }
}

// reduce adds the sums of the item's lane groups; the first group gets the total.
fn reduce(i: u32, group: u32) {
    sums_lo[i] = lo;
{{- if ne .ELEM "0"}}
    sums_hi[i] = hi;
{{- end}}
    for (var d = p.along / 2u; d > 0u; d /= 2u) {
        workgroupBarrier();
        if (group < d) {
            lo += sums_lo[i + d * p.across];
            sums_lo[i] = lo;
{{- if ne .ELEM "0"}}
            hi += sums_hi[i + d * p.across];
            sums_hi[i] = hi;
{{- end}}
        }
    }
}

// nonzero reports whether x is not 0. It is true for NaN, for which WGSL does not define comparisons of floats.
fn nonzero(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) != 0u; }

{{.EPILOGUE}}

// put writes one output: to the workspace a partial sum, to C alpha·sum + beta·c, with the epilogue.
fn put(segment: bool, row: u32, col: u32, sum: f32) {
    if (col >= p.n) { return; }
    if (segment) {
        part[row * p.ldp + col] = sum;
        return;
    }
    let at = row * p.ldc + col;
    var y = p.alpha * sum;
    if (nonzero(p.beta)) { y += p.beta * c[at]; }
    if (p.store != 0u) { y = epilogue(y, row, col); }
    c[at] = y;
}

@compute @workgroup_size({{.LX}}, {{.LY}}, {{.LZ}})
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) at: vec3<u32>) {
    let lane = i % p.across;
    let group = i / p.across % p.along;
    let item = (at.x + at.z * p.width) * p.per + i / (p.across * p.along);
    let word = at.y * 4u * p.across + lane; // the lane's first

    var busy = item < p.items && word * columns < p.n;
    let segment = p.phase == 0u && item < p.segments;
    var row = item;
    if (busy && p.phase == 1u) {
        let r = 2u * p.segments + 3u * item;
        row = heavy[r];
        slots(heavy[r + 1u], heavy[r + 2u], group, word);
    } else if (busy && segment) {
        entries(heavy[2u * item], heavy[2u * item + 1u], group, word);
    } else if (busy) {
        row = item - p.segments;
        let begin = rowptr[row];
        let end = rowptr[row + 1u];
        busy = end - begin <= p.longest; // a heavy row is computed in segments
        if (busy) { entries(begin, end, group, word); }
    }
    if (p.along > 1u) { reduce(i, group); }
    if (!busy || group != 0u) { return; }
    // (Without a loop, because drivers would keep the sums in memory for it.)
    let col = word * columns;
    let next = p.across * columns;
    put(segment, row, col, lo.x);
    put(segment, row, col + next, lo.y);
    put(segment, row, col + 2u * next, lo.z);
    put(segment, row, col + 3u * next, lo.w);
{{- if ne .ELEM "0"}}
    put(segment, row, col + 1u, hi.x);
    put(segment, row, col + next + 1u, hi.y);
    put(segment, row, col + 2u * next + 1u, hi.z);
    put(segment, row, col + 3u * next + 1u, hi.w);
{{- end}}
}
