// dst[i] = sum of (k+1)*in_k[i] over seven inputs: eight arguments, no parameters.
@group(0) @binding(0) var<storage, read> a: array<u32>;
@group(0) @binding(1) var<storage, read> b: array<u32>;
@group(0) @binding(2) var<storage, read> c: array<u32>;
@group(0) @binding(3) var<storage, read> d: array<u32>;
@group(0) @binding(4) var<storage, read> e: array<u32>;
@group(0) @binding(5) var<storage, read> f: array<u32>;
@group(0) @binding(6) var<storage, read> g: array<u32>;
@group(0) @binding(7) var<storage, read_write> dst: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.x;
    dst[i] = a[i] + 2u * b[i] + 3u * c[i] + 4u * d[i] + 5u * e[i] + 6u * f[i] + 7u * g[i];
}
