// Computes: C = alpha·A·B + beta·C, A (rows × cols) in CVSE, f32, f16 or bf16, sums in f32, through WebGPU.
// Tile: a workgroup computes a panel (V × 4·LX), an invocation (V × 4).
// Data movement: panel.wgsl: values and columns through workgroup memory, rows of B straight from memory.
// Bound by: FMA, for wide C; gathers of rows of B else.

{{template "PANEL" .}}

fn locate(group: vec3<u32>) -> Work {
    let slot = group.x + group.z * p.width;
    if (slot >= p.panels) { return Work(0u, 0u, 0u, 0u, p.n); }
    return panel_of(slot, group.y * COLS);
}

fn row_of(rows: u32, r: u32) -> u32 { return rows + r; }
