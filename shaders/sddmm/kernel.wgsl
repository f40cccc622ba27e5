// Computes: s = pattern ⊙ (x·yᵀ), scaled by a number for each entry if asked; x and y row-major; sums in f32.
// Tile: 128 consecutive entries a workgroup, eight for each eight invocations, one entry after another. An invocation
// has every eighth run of four words of the rows.
// Data movement: rows by words, four at a time. Partial sums go through shared memory, from which each invocation adds
// up those of one entry.
// Bound by: gathers of rows of y.
// Template: ELEM (0 f32, 1 f16, 2 bf16).

{{if eq .ELEM "0"}}const columns = 1u;{{else}}const columns = 2u;{{end}} // elements of a word
const lanes = 8u;
const apart = 129u; // partial sums of one entry and the next, in other banks

var<workgroup> partial: array<f32, 1032>;

// products returns the sum of the products of the first n elements of a word.
fn products(a: u32, b: u32, n: u32) -> f32 {
{{- if eq .ELEM "0"}}
    return bitcast<f32>(a) * bitcast<f32>(b);
{{- else}}
{{- if eq .ELEM "1"}}
    let v = unpack2x16float(a);
    let w = unpack2x16float(b);
{{- else}}
    let v = vec2<f32>(bitcast<f32>(a << 16u), bitcast<f32>(a & 0xffff0000u));
    let w = vec2<f32>(bitcast<f32>(b << 16u), bitcast<f32>(b & 0xffff0000u));
{{- end}}
    var sum = v.x * w.x;
    if (n > 1u) { sum += v.y * w.y; }
    return sum;
{{- end}}
}

// entry_sum returns the invocation's partial sum of the entry.
fn entry_sum(entry: u32, part: u32) -> f32 {
    let from_x = rows[entry] * (p.ldx / columns);
    let from_y = cols[entry] * (p.ldy / columns);
    var sum = 0.0;
    for (var k = 4u * part; k * columns < p.k; k += 4u * lanes) {
        for (var w = k; w < k + 4u; w++) {
            if (w * columns < p.k) { sum += products(x[from_x + w], y[from_y + w], p.k - w * columns); }
        }
    }
    return sum;
}

@compute @workgroup_size({{.LX}}, {{.LY}}, {{.LZ}})
fn main(@builtin(local_invocation_index) me: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let part = me % lanes;
    let first = (group.x + group.z * p.width) * {{.LX}}u;
    for (var e = 0u; e < lanes; e++) {
        let entry = first + me - part + e;
        if (entry < p.entries) { partial[e * apart + me] = entry_sum(entry, part); }
    }
    workgroupBarrier();
    let entry = first + me;
    if (entry >= p.entries) { return; }
    var sum = 0.0;
    for (var i = 0u; i < lanes; i++) { sum += partial[part * apart + me - part + i]; }
    if (p.scaled != 0u) { sum *= scale[entry]; }
    s[entry] = sum;
}
