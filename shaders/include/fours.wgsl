{{/* What kernels whose invocations have four columns share: templates of their text.

PAIR: two elements of 16 bits. VALUES_32 and VALUES_16: elements of `values` and of `b`, of f32 and of 16 bits.

COLUMNS: how a workgroup's LOCAL invocations share its columns from base on. A slice of `width` neighbours
has all the columns; slices divide the sum. j is an invocation's columns, word the words of a row of B that it
reads.

FOUR: x, an invocation's columns of the row of B that begins at word `row`. JOIN: acc of a row of C; the first slice
gets the total of all slices. */}}
{{- define "PAIR"}}fn pair(w: u32) -> vec2<f32> {
{{if eq .ELEM "2"}}
    return bitcast<vec2<f32>>(vec2<u32>(w << 16u, w & 0xffff0000u));
{{else}}
    return unpack2x16float(w);
{{end}}
}{{end}}
{{- define "VALUES_32"}}fn value(i: u32) -> f32 { return bitcast<f32>(values[i]); }
fn b_element(row: u32, j: u32) -> f32 { return bitcast<f32>(b[row * p.ldb + j]); }
fn value_quad(i: u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(vec4<u32>(values[4u * i], values[4u * i + 1u], values[4u * i + 2u], values[4u * i + 3u]));
}{{end}}
{{- define "VALUES_16" -}}
fn element(w: u32, i: u32) -> f32 { return bitcast<f32>(widen((w >> (16u * (i & 1u))) & 0xffffu, {{.ELEM}}u)); }
fn value(i: u32) -> f32 { return element(values[i / 2u], i); }
fn b_element(row: u32, j: u32) -> f32 { return element(b[row * (p.ldb / 2u) + j / 2u], j); }
fn value_quad(i: u32) -> vec4<f32> { return vec4<f32>(pair(values[2u * i]), pair(values[2u * i + 1u])); }{{end}}
{{- define "COLUMNS"}}    var width = 1u;
    while (width < LOCAL && 4u * width < p.n - base) { width = width * 2u; }
    let slices = LOCAL / width;
    let slice = t / width;
    let lane = t % width;
{{if eq .ELEM "0"}}
    let j = vec4<u32>(base + lane) + vec4<u32>(0u, 1u, 2u, 3u) * width;
    let stride = p.ldb;
    let word = min(j, vec4<u32>(stride - 1u)); // columns past the last are never stored
{{else}}
    let j = vec4<u32>(base + 2u * lane) + vec4<u32>(0u, 1u, 2u * width, 2u * width + 1u);
    let stride = p.ldb / 2u;
    let word = min(j.xz / 2u, vec2<u32>(stride - 1u));
{{end}}{{end}}
{{- define "FOUR"}}{{if eq .ELEM "0"}}
            let x = bitcast<vec4<f32>>(vec4<u32>(b[row + word.x], b[row + word.y], b[row + word.z], b[row + word.w]));
{{else}}
            let x = vec4<f32>(pair(b[row + word.x]), pair(b[row + word.y]));
{{end}}{{end}}
{{- define "JOIN"}}    if (slices > 1u) {
        workgroupBarrier();
        sums[t] = acc{{.}};
        workgroupBarrier();
        if (slice == 0u) {
            for (var i = 1u; i < slices; i = i + 1u) { acc{{.}} = acc{{.}} + sums[i * width + lane]; }
        }
    }{{end}}
