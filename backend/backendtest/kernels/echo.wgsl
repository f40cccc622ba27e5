// dst = the parameter block: eight words as they are, eight floats halved.
struct Params { u: array<vec4<u32>, 2>, f: array<vec4<f32>, 2> }
@group(0) @binding(0) var<storage, read_write> dst: array<u32>;
@group(0) @binding(1) var<uniform> p: Params;
@compute @workgroup_size(1)
fn main() {
    for (var i = 0u; i < 8u; i++) {
        dst[i] = p.u[i / 4u][i % 4u];
        dst[8u + i] = bitcast<u32>(p.f[i / 4u][i % 4u] * 0.5);
    }
}
