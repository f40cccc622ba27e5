// Computes: C = alpha·A·B + beta·C, A (rows × cols) N:M sparse in units of a multiple of 8 rows, f32, f16 or bf16
// through WebGPU.
// Tile: a workgroup computes (8 × 4·LX) of a panel, an invocation (8 × 4), as vector.comp.
// Data movement: values and column numbers of STAGE condensed columns go through workgroup memory. Rows of B come
// straight from memory.
// Bound by: FMA.
// Template: STAGE, ELEM. Sums have names of their own, since an array would lie in memory.

const ELEM = {{.ELEM}}u;
const STAGE = {{.STAGE}}u;
const LOCAL = {{.LX}}u;
const R = 8u;

{{.HALF}}
{{.NONFINITE}}
{{.NM}}

var<workgroup> stage_low: array<vec4<f32>, {{.STAGE}}>;
var<workgroup> stage_high: array<vec4<f32>, {{.STAGE}}>;
var<workgroup> stage_cols: array<u32, {{.STAGE}}>;
var<workgroup> sums: array<vec4<f32>, {{.LX}}>;

@compute @workgroup_size({{.LX}}, {{.LY}}, {{.LZ}})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    let block = group.x + group.z * p.width;
    if (block >= p.blocks) { return; }
    let row = block * R;
    let r0 = row % p.tall;
    let a = panel_of(row / p.tall);
    let base = group.y * 4u * LOCAL;
    var width = 1u;
    while (width < LOCAL && 4u * width < p.n - base) { width = width * 2u; }
    let slices = LOCAL / width;
    let slice = t / width;
    let lane = t % width;
    let j = base + 4u * lane;
    let column = min(j, p.ldb - 4u); // past the last column anything may be read
{{range $r := 8}}
    var acc{{$r}} = vec4<f32>();{{end}}

    for (var s = 0u; s < a.count; s = s + STAGE) {
        let m = min(STAGE, a.count - s);
        workgroupBarrier();
        for (var i = t; i < m; i = i + LOCAL) {
            let v = a.values + (s + i) * p.tall + r0;
            stage_low[i] = value_quad(v);
            stage_high[i] = value_quad(v + 4u);
            stage_cols[i] = min(column_of(a, s + i), p.cols - 1u);
        }
        workgroupBarrier();
        for (var q = slice; q < m; q = q + slices) {
            let x = b_quad(stage_cols[q], column);
            let low = stage_low[q];
            let high = stage_high[q];
{{range $r := 8}}
            acc{{$r}} = acc{{$r}} + {{if lt $r 4}}low{{else}}high{{end}}[{{$r}}u % 4u] * x;{{end}}
        }
    }
{{range $r := 8}}
{{template "JOIN" $r}}
    if (slice == 0u && row + {{$r}}u < p.rows) { store_quad(a, r0 + {{$r}}u, row + {{$r}}u, j, acc{{$r}}); }
{{end}}
}
