// Computes: C (rows × n) = alpha·A·B + beta·C reproducibly in fixed point (RFX-p, p = BITS), A (rows × cols) in CSR, B
// quantised (rfx.go).
// Tile: a row or row segment × a tile of columns, as csr/kernel.wgsl; an invocation has four columns, in vectors.
// Data movement: A's integers and rows of B straight from memory to registers; words of q are neighbours across
// invocations.
// Bound by: integer arithmetic. Sums of products of digits (DIGIT bits, lowest first) have 32 bits and are added to
// 128-bit totals before they can overflow.

{{.HALF}}
{{.FIXED}}

const BITS = {{.BITS}}u;
const BURST = 124u; // entries whose products a 32-bit sum has room for, whatever their digits

{{.SUMS}}
// The totals, a word of each of the four at a time, the lowest first.
var<private> total0: vec4<u32>;
var<private> total1: vec4<u32>;
var<private> total2: vec4<u32>;
var<private> total3: vec4<u32>;
// What is added to them.
var<private> more0: vec4<u32>;
var<private> more1: vec4<u32>;
var<private> more2: vec4<u32>;
var<private> more3: vec4<u32>;

// The totals of the item's invocations: word w of invocation i is parts[4i + w].
var<workgroup> parts: array<vec4<u32>, {{.PARTS}}>;

fn carry(sum: vec4<u32>, x: vec4<u32>) -> vec4<u32> { return select(vec4<u32>(0u), vec4<u32>(1u), sum < x); }

// push makes more·2^DIGIT + sum of more.
fn push(sum: vec4<i32>) {
    let x = bitcast<vec4<u32>>(sum);
    let sign = bitcast<vec4<u32>>(sum >> vec4<u32>(31u));
    let up = vec4<u32>({{.DIGIT}});
    let down = vec4<u32>({{.REST}});
    let y3 = (more3 << up) | (more2 >> down);
    let y2 = (more2 << up) | (more1 >> down);
    let y1 = (more1 << up) | (more0 >> down);
    let y0 = more0 << up;
    more0 = y0 + x;
    let c0 = carry(more0, y0);
    more1 = y1 + sign + c0;
    let c1 = carry(y1 + sign, y1) | carry(more1, y1 + sign);
    more2 = y2 + sign + c1;
    let c2 = carry(y2 + sign, y2) | carry(more2, y2 + sign);
    more3 = y3 + sign + c2;
}

// add_more adds more to the totals.
fn add_more() {
    total0 += more0;
    let c0 = carry(total0, more0);
    let y1 = total1 + more1;
    total1 = y1 + c0;
    let c1 = carry(y1, more1) | carry(total1, y1);
    let y2 = total2 + more2;
    total2 = y2 + c1;
    let c2 = carry(y2, more2) | carry(total2, y2);
    total3 += more3 + c2;
}

// settle adds the 32-bit sums to the totals, and starts them anew.
fn settle() {
    more0 = vec4<u32>(0u);
    more1 = vec4<u32>(0u);
    more2 = vec4<u32>(0u);
    more3 = vec4<u32>(0u);
{{.SETTLE}}
    add_more();
}

// low returns the lowest digit of 12 bits, rest the bits above it.
fn low(x: vec4<i32>) -> vec4<i32> { return (x << vec4<u32>(20u)) >> vec4<u32>(20u); }
fn above(x: vec4<i32>, digit: vec4<i32>) -> vec4<i32> { return (x - digit) >> vec4<u32>(12u); }
fn low1(x: i32) -> i32 { return (x << 20u) >> 20u; }

// entry multiplies entry k. row is where its row of B starts in q; at are the invocation's words in it.
fn entry(k: u32, row: u32, at: vec4<u32>) {
{{- if eq .BITS 15}}
    let x = bitcast<i32>(ints[k / 2u] << (16u * (1u - k % 2u))) >> 16u;
    let a0 = (x << 24u) >> 24u;
    let a1 = (x - a0) >> 8u;
    let w = vec2<u32>(q[row + at.x], q[row + at.y]);
    let b0 = bitcast<vec4<i32>>(vec4<u32>(w.x << 16u, w.x, w.y << 16u, w.y)) >> vec4<u32>(16u);
{{- else if eq .BITS 47}}
    let xl = bitcast<i32>(ints[2u * k]);
    let xh = bitcast<i32>(ints[2u * k + 1u]);
    let a0 = low1(xl);
    let a1 = (xl - a0) >> 12u;
    let a2 = low1(xh);
    let a3 = (xh - a2) >> 12u;
    let yl = bitcast<vec4<i32>>(vec4<u32>(q[row + at.x], q[row + at.y], q[row + at.z], q[row + at.w]));
    let upper = row + p.ldq;
    let yh = bitcast<vec4<i32>>(vec4<u32>(q[upper + at.x], q[upper + at.y], q[upper + at.z], q[upper + at.w]));
    let b0 = low(yl);
    let b1 = above(yl, b0);
    let b2 = low(yh);
    let b3 = above(yh, b2);
{{- else}}
    let x = bitcast<i32>(ints[k]);
    let y = bitcast<vec4<i32>>(vec4<u32>(q[row + at.x], q[row + at.y], q[row + at.z], q[row + at.w]));
    let a0 = low1(x);
    let b0 = low(y);
{{- if eq .BITS 23}}
    let a1 = (x - a0) >> 12u;
    let b1 = above(y, b0);
{{- else}}
    let x1 = (x - a0) >> 12u;
    let a1 = low1(x1);
    let a2 = (x1 - a1) >> 12u;
    let y1 = above(y, b0);
    let b1 = low(y1);
    let b2 = above(y1, b1);
{{- end}}
{{- end}}
{{.ADD}}
}

// column returns the invocation's columns.
fn columns(y: u32, lane: u32, across: u32) -> vec4<u32> {
{{- if eq .BITS 15}}
    let first = 2u * (y * 2u * across + lane);
    return vec4<u32>(first) + vec4<u32>(0u, 1u, 2u * across, 2u * across + 1u);
{{- else}}
    return vec4<u32>(y * 4u * across + lane) + vec4<u32>(0u, 1u, 2u, 3u) * across;
{{- end}}
}

// entries adds up the entries from begin to end that are the invocation's: every along-th four of them.
fn entries(begin: u32, end: u32, group: u32, along: u32, cols: vec4<u32>) {
    // Words past the last column, which nobody needs, are the row's first.
    let inside = select(vec4<u32>(0u), cols, cols < vec4<u32>(p.ldq));
{{- if eq .BITS 15}}
    let at = vec4<u32>(inside.x / 2u, inside.z / 2u, 0u, 0u);
    let words = p.ldq / 2u; // of a row
{{- else}}
    let at = inside;
    let words = p.ldq{{if eq .BITS 47}} * 2u{{end}}; // of a row
{{- end}}
    var burst = 0u;
    for (var k = begin + 4u * group; k < end; k += 4u * along) {
        for (var e = k; e < min(k + 4u, end); e++) { entry(e, p.first + rows[p.columns + e] * words, at); }
        burst += 4u;
        if (burst == BURST) {
            settle();
            burst = 0u;
        }
    }
    settle();
}

// segments adds up the invocation's share of segments first to last.
fn segments(first: u32, last: u32, group: u32, along: u32, cols: vec4<u32>) {
    for (var i = first + group; i < last; i += along) {
        for (var c = 0u; c < 4u; c++) {
            if (cols[c] < p.n) {
                let at = 4u * (i * p.ldq + cols[c]);
                more0[c] = part[at];
                more1[c] = part[at + 1u];
                more2[c] = part[at + 2u];
                more3[c] = part[at + 3u];
            }
        }
        add_more();
    }
}

// reduce adds the totals of the item's groups of invocations to those of its first.
fn reduce(i: u32, group: u32, across: u32, along: u32) {
    for (var d = along / 2u; d > 0u; d /= 2u) {
        parts[4u * i] = total0;
        parts[4u * i + 1u] = total1;
        parts[4u * i + 2u] = total2;
        parts[4u * i + 3u] = total3;
        workgroupBarrier();
        if (group < d) {
            let other = 4u * (i + d * across);
            more0 = parts[other];
            more1 = parts[other + 1u];
            more2 = parts[other + 2u];
            more3 = parts[other + 3u];
            add_more();
        }
        workgroupBarrier();
    }
}

{{.STORE}}
@compute @workgroup_size({{.LX}}, {{.LY}}, {{.LZ}})
fn main(@builtin(local_invocation_index) i: u32, @builtin(workgroup_id) at: vec3<u32>) {
    let across = p.shape & 255u;
    let along = (p.shape >> 8u) & 255u;
    let phase = (p.shape >> 16u) & 255u;
    let lane = i % across;
    let group = i / across % along;
    let item = (at.x + at.z * p.width) * p.per + i / (across * along);
    let cols = columns(at.y, lane, across);

    var busy = item < p.items && cols.x < p.n;
    let segment = phase == 0u && item < p.segments;
    var row = item;
    if (busy && phase == 1u) {
        let r = p.heavy + 2u * p.segments + 3u * item;
        row = rows[r];
        segments(rows[r + 1u], rows[r + 2u], group, along, cols);
    } else if (busy && segment) {
        let r = p.heavy + 2u * item;
        entries(rows[r], rows[r + 1u], group, along, cols);
    } else if (busy) {
        row = item - p.segments;
        let begin = rows[2u * row];
        let end = rows[2u * row + 2u];
        busy = end - begin <= p.longest; // else it is done in segments
        if (busy) { entries(begin, end, group, along, cols); }
    }
    reduce(i, group, across, along);
    if (!busy || group != 0u) { return; }
    for (var j = 0u; j < 4u; j++) {
        let sum = vec4<u32>(total0[j], total1[j], total2[j], total3[j]);
        if (!segment) {
            store(row, cols[j], sum);
        } else if (cols[j] < p.n) {
            let to = 4u * (item * p.ldq + cols[j]);
            part[to] = sum.x;
            part[to + 1u] = sum.y;
            part[to + 2u] = sum.z;
            part[to + 3u] = sum.w;
        }
    }
}
