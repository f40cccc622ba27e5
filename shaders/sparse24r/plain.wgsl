// Computes: C = alpha·(Pairs + Remainder)·B + beta·C, f32, f16 or bf16 through WebGPU.
// Tile: an invocation computes (1 × 4), as plain.comp.
// Data movement: an invocation reads the entries of its row one by one, and rows of B straight from memory.
// Bound by: gathers of rows of B.
// Template: LANES, ELEM.

const ELEM = {{.ELEM}}u;
const LANES = {{.LANES}}u;

{{.HALF}}
{{.NONFINITE}}
{{.NM}}

@compute @workgroup_size({{.LX}}, {{.LY}}, {{.LZ}})
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) t: u32) {
    let block = group.x + group.z * p.width;
    let row = block * ({{.LX}}u / LANES) + t / LANES;
    let j = (group.y * LANES + t % LANES) * 4u;
    if (block >= p.blocks || row >= p.rows || j >= p.n) { return; }
    var acc = vec4<f32>();
    let a = panel_of(row);
    for (var word = 0u; word < (a.count + 31u) / 32u; word = word + 1u) {
        for (var bits = mask[a.mask + word]; bits != 0u; bits = bits & (bits - 1u)) {
            let slot = word * 32u + firstTrailingBit(bits);
            acc = acc + value(a.values + slot) * b_quad(column_of(a, slot), j);
        }
    }
    let last = remainder[row / 16u + 2u];
    let cols = p.panels + 2u;
    let bits = cols + remainder[p.panels + 1u];
    let first = remainder[0] * 16u;
    for (var q = remainder[row / 16u + 1u]; q < last; q = q + 1u) {
        if (((remainder[bits + q / 2u] >> (q % 2u * 16u + row % 16u)) & 1u) != 0u) {
            acc = acc + value((first + q) * 16u + row % 16u) * b_quad(remainder[cols + q], j);
        }
    }
    for (var i = 0u; i < min(4u, p.n - j); i = i + 1u) { store(row, j + i, acc[i]); }
}
