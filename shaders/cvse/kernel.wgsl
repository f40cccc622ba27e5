// CVSE × dense through WebGPU.

{{template "PANEL" .}}

fn locate(group: vec3<u32>) -> Work {
    let slot = group.x + group.z * p.width;
    if (slot >= p.panels) { return Work(0u, 0u, 0u, 0u, p.n); }
    return panel_of(slot, group.y * COLS);
}

fn row_of(rows: u32, r: u32) -> u32 { return rows + r; }
