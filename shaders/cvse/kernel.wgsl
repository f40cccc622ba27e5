// CVSE × dense through WebGPU.

{{template "PANEL" .}}

fn locate(group: vec3<u32>) -> Work {
    let slot = group.x + group.z * p.width;
    if (slot >= p.panels) { return Work(0u, 0u, 0u, p.n); }
    let number = order[slot];
    return Work(vecptr[number], vecptr[number + 1u], number * V, group.y * COLS);
}

fn row_of(rows: u32, r: u32) -> u32 { return rows + r; }
