// Computes: C = alpha·A·B + beta·C, A (rows × cols) in Tiled-CSR, f32, f16 or bf16, sums in f32, through WebGPU.
// Tile: a workgroup computes a group (V × 4·LX), an invocation (V × 4).
// Data movement: panel.wgsl: values and columns through workgroup memory, rows of B straight from memory.
// Bound by: FMA, for wide C; gathers of rows of B else.

{{template "PANEL" .}}

fn locate(group: vec3<u32>) -> Work {
    let i = group.x + group.z * p.width;
    let number = i / p.strip;
    let base = (group.y * p.strip + i % p.strip) * COLS;
    if (number >= p.panels || base >= p.n) { return Work(0u, 0u, 0u, 0u, p.n); }
    return panel_of(number, base);
}

fn row_of(rows: u32, r: u32) -> u32 { return work[p.places + rows + r]; }
