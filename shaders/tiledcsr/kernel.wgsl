// Tiled-CSR × dense through WebGPU.

{{template "PANEL" .}}

const TILE_COLS = 16u;

fn locate(group: vec3<u32>) -> Work {
    let i = group.x + group.z * p.width;
    let number = i / p.strip;
    let base = (group.y * p.strip + i % p.strip) * COLS;
    if (number >= p.panels || base >= p.n) { return Work(0u, 0u, 0u, p.n); }
    return Work(TILE_COLS * tileptr[number], TILE_COLS * tileptr[number + 1u], number * V, base);
}

fn row_of(rows: u32, r: u32) -> u32 { return rowidx[rows + r]; }
