// dst[i] = i, n times multiplied and added to: a launch may take as long as is wanted.
struct Params { n: u32 }
@group(0) @binding(0) var<storage, read_write> dst: array<u32>;
@group(0) @binding(1) var<uniform> p: Params;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lane: u32) {
    var x = lane;
    for (var i = 0u; i < p.n; i = i + 1u) { x = x * 1664525u + 1013904223u; }
    dst[lane] = x;
}
