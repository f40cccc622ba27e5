// Computes: the softmax of each row of a sparse matrix's values, in place (softmax.go).
// Tile: p.lanes invocations a row: eight, or all of the workgroup.
// Data movement: the row is read three times, which the caches hold, and written twice. Maxima and sums meet in
// workgroup memory.
// Bound by: memory bandwidth.

var<workgroup> meet: array<f32, {{.LX}}>;

// exp_of returns exp(t) for t <= 0, as 2^n·exp(r) with |r| ≤ ln(2)/2, and 0 far below.
fn exp_of(t: f32) -> f32 {
    let size = bitcast<u32>(t) & 0x7fffffffu;
    if (size > 0x7f800000u) { return t; } // NaN
    if (size >= 0x42ae0000u) { return 0.0; } // 87
    let n = floor(t * 1.44269504 + 0.5);
    let r = t - n * 0.693359375 + n * 0.000212194440;
    var y = 1.0 / 5040.0;
    y = y * r + 1.0 / 720.0;
    y = y * r + 1.0 / 120.0;
    y = y * r + 1.0 / 24.0;
    y = y * r + 1.0 / 6.0;
    y = y * r + 0.5;
    y = y * r + 1.0;
    y = y * r + 1.0;
    return y * bitcast<f32>(u32(i32(n) + 127) << 23u);
}

@compute @workgroup_size({{.LX}}, {{.LY}}, {{.LZ}})
fn main(@builtin(local_invocation_index) me: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let lane = me & (p.lanes - 1u);
    let item = (group.x + group.z * p.width) * ({{.LX}}u / p.lanes) + me / p.lanes;
    var begin = 0u;
    var end = 0u;
    if (item < p.items) {
        begin = spans[2u * (p.first + item)];
        end = spans[2u * (p.first + item) + 1u];
    }
    var most = -3.402823e38;
    for (var i = begin + lane; i < end; i += p.lanes) { most = max(most, s[i]); }
    meet[me] = most;
    for (var d = p.lanes / 2u; d > 0u; d /= 2u) {
        workgroupBarrier();
        if (lane < d) { meet[me] = max(meet[me], meet[me + d]); }
    }
    workgroupBarrier();
    most = meet[me - lane];
    var sum = 0.0;
    for (var i = begin + lane; i < end; i += p.lanes) {
        let y = exp_of(s[i] - most);
        s[i] = y;
        sum += y;
    }
    workgroupBarrier();
    meet[me] = sum;
    for (var d = p.lanes / 2u; d > 0u; d /= 2u) {
        workgroupBarrier();
        if (lane < d) { meet[me] += meet[me + d]; }
    }
    workgroupBarrier();
    sum = meet[me - lane];
    for (var i = begin + lane; i < end; i += p.lanes) { s[i] = s[i] / sum; }
}
