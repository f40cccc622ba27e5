// dst = in reversed within each group of 64, through shared memory, plus the constant ADD.
@group(0) @binding(0) var<storage, read> src: array<u32>;
@group(0) @binding(1) var<storage, read_write> dst: array<u32>;
var<workgroup> words: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(local_invocation_id) l: vec3<u32>) {
    words[l.x] = src[g.x];
    workgroupBarrier();
    dst[g.x] = words[63u - l.x] + ADDu;
}
