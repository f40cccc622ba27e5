// Computes: C = alpha·A·B + beta·C, A (rows × cols) N:M sparse in single entries, f32, f16 or bf16 through WebGPU.
// Tile: an invocation computes (1 × 4·QUADS), as element.comp.
// Data movement: DEPTH rows of B at a time go through workgroup memory.
// Bound by: FMA and the workgroup-memory reads that feed it.
// Template: QUADS, DEPTH, PITCH = DEPTH+1, CELLS = QUADS·PITCH, ELEM. Sums have names of their own, since an array
// would lie in memory.

const ELEM = {{.ELEM}}u;
const QUADS = {{.QUADS}}u;
const DEPTH = {{.DEPTH}}u;
const PITCH = {{.PITCH}}u;
const LOCAL = {{.LX}}u;

{{.HALF}}
{{.NONFINITE}}
{{.NM}}

var<workgroup> stage: array<vec4<f32>, {{.CELLS}}>;

@compute @workgroup_size({{.LX}}, {{.LY}}, {{.LZ}})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    let block = group.x + group.z * p.width;
    if (block >= p.blocks) { return; }
    let row = block * LOCAL + t;
    let base = group.y * 4u * QUADS;
    let quads = min(QUADS, (p.n - base + 3u) / 4u);
    let a = panel_of(min(row, p.rows - 1u));
    let per = DEPTH / p.every; // groups of a stage
    let depth = per * p.every; // and rows of B
{{range $i := .QUADS}}
    var acc{{$i}} = vec4<f32>();{{end}}

    for (var g = 0u; g < p.groups; g = g + per) {
        workgroupBarrier();
        for (var i = t; i < quads * depth; i = i + LOCAL) {
            let k = g * p.every + i / quads;
            var x = vec4<f32>();
            if (k < p.cols) { x = b_quad(k, min(base + 4u * (i % quads), p.ldb - 4u)); }
            stage[i % quads * PITCH + i / quads] = x;
        }
        workgroupBarrier();
        let last = min(g + per, p.groups) * p.keep;
        for (var s = g * p.keep; s < last; s = s + 1u) {
            let k = column_of(a, s) - g * p.every;
            let w = value(a.values + s);
{{range $i := .QUADS}}
            if ({{$i}}u < quads) { acc{{$i}} = acc{{$i}} + w * stage[{{$i}}u * PITCH + k]; }{{end}}
        }
    }
    if (row >= p.rows) { return; }
{{range $i := .QUADS}}
    if ({{$i}}u < quads) { store_quad(a, 0u, row, base + 4u * {{$i}}u, acc{{$i}}); }{{end}}
}
