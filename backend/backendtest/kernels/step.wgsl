// dst[i] = src[(i + rot) mod n] * mul + add: order and visibility between launches show in the result.
struct Params { n: u32, rot: u32, mul: u32, add: u32 }
@group(0) @binding(0) var<storage, read> src: array<u32>;
@group(0) @binding(1) var<storage, read_write> dst: array<u32>;
@group(0) @binding(2) var<uniform> p: Params;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>) {
    if (g.x < p.n) { dst[g.x] = src[(g.x + p.rot) % p.n] * p.mul + p.add; }
}
