// Computes: nothing of use: it measures what a WebGPU device attains (peak.go). KIND: 1 copy, 2 read, 3 fma.
// Tile: p.rounds rounds for each invocation.
// Data movement: KIND 1 and 2 through memory or cache; 3 stays in registers.
// Bound by: the unit that KIND names.

@compute @workgroup_size({{.LX}})
fn main(@builtin(global_invocation_id) gid: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let id = gid.x;
    let all = groups.x * {{.LX}}u;
{{if eq .KIND 1}}
    for (var r = 0u; r < p.rounds; r++) {
        dst[r * all + id] = src[r * all + id];
    }
{{else if eq .KIND 2}}
    var s = 0u;
    var at = id;
    for (var r = 0u; r < p.rounds; r++) {
        s ^= src[at & (p.span - 1u)];
        at += all + {{.LX}}u;
    }
    dst[id] = s;
{{else}}
    let x = bitcast<f32>(src[0]);
    let y = bitcast<f32>(src[1]);
    var a = vec4<f32>(f32(id), 1.0, 2.0, 3.0);
    var b = vec4<f32>(4.0, 5.0, 6.0, f32(id));
    for (var r = 0u; r < p.rounds; r++) {
        a = fma(a, vec4<f32>(x), vec4<f32>(y));
        b = fma(b, vec4<f32>(x), vec4<f32>(y));
        a = fma(a, vec4<f32>(x), vec4<f32>(y));
        b = fma(b, vec4<f32>(x), vec4<f32>(y));
        a = fma(a, vec4<f32>(x), vec4<f32>(y));
        b = fma(b, vec4<f32>(x), vec4<f32>(y));
        a = fma(a, vec4<f32>(x), vec4<f32>(y));
        b = fma(b, vec4<f32>(x), vec4<f32>(y));
    }
    let s = a + b;
    dst[id] = bitcast<u32>(s.x + s.y + s.z + s.w);
{{end}}
}
