// dst[x, y, z] = x | y<<10 | z<<20 for every invocation inside nx × ny × nz.
struct Params { nx: u32, ny: u32, nz: u32, pad: u32 }
@group(0) @binding(0) var<storage, read_write> dst: array<u32>;
@group(0) @binding(1) var<uniform> p: Params;
@compute @workgroup_size(4, 2, 2)
fn main(@builtin(global_invocation_id) g: vec3<u32>) {
    if (g.x < p.nx && g.y < p.ny && g.z < p.nz) {
        dst[(g.z * p.ny + g.y) * p.nx + g.x] = g.x | (g.y << 10u) | (g.z << 20u);
    }
}
