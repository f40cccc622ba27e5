// Tiled-CSR × dense through WebGPU.

{{template "PANEL" .}}

fn locate(group: vec3<u32>) -> Work {
    let i = group.x + group.z * p.width;
    let number = i / p.strip;
    let base = (group.y * p.strip + i % p.strip) * COLS;
    if (number >= p.panels || base >= p.n) { return Work(0u, 0u, 0u, 0u, p.n); }
    return panel_of(number, base);
}

fn row_of(rows: u32, r: u32) -> u32 { return work[p.places + rows + r]; }
