// Computes: B (cols × n) in RFX-p's fixed point, q (quantise.go). Phase 0 finds ranges of parts of columns, phase 1
// joins them and quantises.
// Tile: a workgroup has a tile of rows and columns of B.
// Data movement: straight through registers; ranges of a tile meet in workgroup memory.
// Bound by: memory bandwidth.

{{.HALF}}
{{.FIXED}}

var<workgroup> found: array<vec2<u32>, {{.LX}}>;

// load returns the f32 bits of row k's elements j and j+1, zeros for those past the last column. j is even.
fn load(k: u32, j: u32) -> vec2<u32> {
    let i = k * p.ldb + j;
    var x: vec2<u32>;
    if (p.elem == 0u) {
        x = vec2<u32>(b[i], b[i + 1u]);
    } else {
        let w = b[i / 2u];
        x = vec2<u32>(widen(w & 0xffffu, p.elem), widen(w >> 16u, p.elem));
    }
    return select(vec2<u32>(0u), x, vec2<u32>(j, j + 1u) < vec2<u32>(p.n));
}

fn join2(r: vec2<u32>, s: vec2<u32>) -> vec2<u32> { return vec2<u32>(join(r.x, s.x), join(r.y, s.y)); }

// store writes row k's elements j and j+1.
fn store(row: u32, j: u32, x: vec2<u32>, l: vec2<i32>) {
    let u = quantise(x.x, l.x);
    let v = quantise(x.y, l.y);
    if (p.bits == 15u) {
        q[row + j / 2u] = (u.x & 0xffffu) | (v.x << 16u);
    } else if (p.bits != 47u) {
        q[row + j] = u.x;
        q[row + j + 1u] = v.x;
    } else {
        let du = bitcast<vec2<u32>>(digits(u));
        let dv = bitcast<vec2<u32>>(digits(v));
        q[row + j] = du.x;
        q[row + j + 1u] = dv.x;
        q[row + p.ldq + j] = du.y;
        q[row + p.ldq + j + 1u] = dv.y;
    }
}

@compute @workgroup_size({{.LX}}, {{.LY}}, {{.LZ}})
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let lane = i % p.across;
    let sub = i / p.across;
    let subs = {{.LX}}u / p.across;
    let j = 2u * (group.y * p.across + lane); // the first of the lane's columns
    let begin = group.x * p.rows;
    let end = min(begin + p.rows, p.k);
    let inside = j < p.ldq;
    var r = vec2<u32>(0u);
    if (inside && p.phase == 0u) {
        for (var k = begin + sub; k < end; k += subs) {
            let x = load(k, j);
            r = join2(r, vec2<u32>(range_of(x.x), range_of(x.y)));
        }
    } else if (inside) {
        for (var c = sub; c < p.chunks; c += subs) {
            let at = (c + 1u) * p.ldq + j;
            r = join2(r, vec2<u32>(q[at], q[at + 1u]));
        }
    }
    // Join what the lanes of these two columns found, for all of them.
    found[i] = r;
    workgroupBarrier();
    r = found[lane];
    for (var x = lane + p.across; x < {{.LX}}u; x += p.across) { r = join2(r, found[x]); }
    if (!inside) { return; }
    if (sub == 0u && (p.phase == 0u || group.x == 0u)) {
        let at = select(0u, (group.x + 1u) * p.ldq, p.phase == 0u) + j;
        q[at] = r.x;
        q[at + 1u] = r.y;
    }
    if (p.phase == 0u) { return; }
    let l = vec2<i32>(unit(r.x, p.bits), unit(r.y, p.bits));
    let rows = (p.chunks + 1u) * p.ldq;
    var words = p.ldq; // of a row
    if (p.bits == 15u) { words = p.ldq / 2u; }
    if (p.bits == 47u) { words = 2u * p.ldq; }
    for (var k = begin + sub; k < end; k += subs) { store(rows + k * words, j, load(k, j), l); }
}
