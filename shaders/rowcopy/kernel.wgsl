// Computes: rows of a dense matrix copied to or from the places that a list names (rowcopy.go).
// Tile: 16 bytes an invocation.
// Data movement: straight through registers, neighbours side by side.
// Bound by: memory bandwidth.

@compute @workgroup_size({{.LX}}, {{.LY}}, {{.LZ}})
fn main(@builtin(local_invocation_index) me: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let t = (group.x + group.z * p.width) * {{.LX}}u + me;
    if (t >= p.items) { return; }
    let row = t / p.quads;
    var source = row;
    var goal = row;
    if (p.place == 1u) { source = index[row]; }
    if (p.place == 2u) { goal = index[row]; }
    let q = t - row * p.quads;
    let i = ((source + p.srcrow) * p.quads + q) * 4u;
    let j = ((goal + p.dstrow) * p.quads + q) * 4u;
    for (var k = 0u; k < 4u; k++) { dst[j + k] = src[i + k]; }
}
