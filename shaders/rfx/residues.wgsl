// Computes: for each modulus, the sums of products of residues of A (rows × cols) and B (cols × n) as residues, by packed
// dot products of four 8-bit integers (language feature packed_4x8_integer_dot_product); with DIGITS = 1 the sums of products of two digits, for each of the three sums of
// their places. combine.wgsl puts them together. residues.go explains residues and how operands lie.
// Tile: a workgroup computes (ROWS × COLS) for one modulus, an invocation (4 × 4).
// Data movement: both operands go through workgroup memory, 32 of k at a time, in lines a word longer than they need be.
// Residues of four columns are stored as a word.
// Bound by: workgroup memory and integer arithmetic.
// Constants: ROWS, COLS, DIGITS.

{{.RESIDUES}}

const SLICE = 8u; // words of k whose bytes of a line lie side by side
const LINE = 9u;
const BIAS = 0x40000000u; // a sum of fewer than 2^16 products of residues is smaller
const LOCAL = {{.LX}}u;
const ROWS = {{.ROWS}}u;
const COLS = {{.COLS}}u;

var<workgroup> left: array<u32, {{.LEFT}}>; // ROWS lines
var<workgroup> right: array<u32, {{.RIGHT}}>; // COLS lines

fn dots(a: u32, b: vec4<u32>) -> vec4<i32> {
    return vec4<i32>(dot4I8Packed(a, b.x), dot4I8Packed(a, b.y), dot4I8Packed(a, b.z), dot4I8Packed(a, b.w));
}

// put stores the sums of four columns from j on.
fn put(number: u32, i: u32, j: u32, sums: vec4<i32>) {
    if (i >= p.items || j >= p.ldq) { return; }
    let at = (number * p.items + i) * p.ldq + j;
{{- if eq .DIGITS 1}}
    for (var e = 0u; e < 4u; e++) { part[at + e] = bitcast<u32>(sums[e]); }
{{- else}}
    let m = modulus(number);
    let r = (bitcast<vec4<u32>>(sums) + vec4<u32>((BIAS + m - 1u) / m * m)) % vec4<u32>(m);
    part[at / 4u] = r.x | (r.y << 8u) | (r.z << 16u) | (r.w << 24u);
{{- end}}
}

@compute @workgroup_size({{.LX}}, {{.LY}}, {{.LZ}})
fn main(@builtin(local_invocation_index) t: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let wide = (p.ldq + COLS - 1u) / COLS;
    let tiles = (p.items + ROWS - 1u) / ROWS * wide;
    let item = group.x + group.z * p.width;
    let tile = item % tiles;
    var number = item / tiles; // of the modulus, or of the sum of products of digits
    if (number >= p.segments) { return; }
    let row = tile / wide * ROWS;
    let col = tile % wide * COLS;
    let slices = p.per * 4u;
    let down = t / (COLS / 4u) * 4u;
    let across = t % (COLS / 4u) * 4u;
    var sum0 = vec4<i32>(0);
    var sum1 = vec4<i32>(0);
    var sum2 = vec4<i32>(0);
    var sum3 = vec4<i32>(0);
    var passes = 1u;
{{- if eq .DIGITS 1}}
    passes = select(1u, 2u, number == 1u); // place 1 is the sum of two products
{{- end}}
    for (var s = 0u; s < passes * slices; s++) {
{{- if eq .DIGITS 1}}
        let turn = s / slices;
        let a = ((number + 1u - turn) / 2u * slices + s % slices) * p.longest;
        let b = ((number + turn) / 2u * slices + s % slices) * p.ldq;
{{- else}}
        let a = (number * slices + s) * p.longest;
        let b = (number * slices + s) * p.ldq;
{{- end}}
        workgroupBarrier();
        for (var i = t; i < ROWS * SLICE; i += LOCAL) {
            let line = min(row + i / SLICE, p.longest - 1u);
            left[i / SLICE * LINE + i % SLICE] = ints[(a + line) * SLICE + i % SLICE];
        }
        for (var i = t; i < COLS * SLICE; i += LOCAL) {
            let line = min(col + i / SLICE, p.ldq - 1u);
            right[i / SLICE * LINE + i % SLICE] = q[p.first + (b + line) * SLICE + i % SLICE];
        }
        workgroupBarrier();
        for (var k = 0u; k < SLICE; k++) {
            let r = across * LINE + k;
            let y = vec4<u32>(right[r], right[r + LINE], right[r + 2u * LINE], right[r + 3u * LINE]);
            let l = down * LINE + k;
            sum0 += dots(left[l], y);
            sum1 += dots(left[l + LINE], y);
            sum2 += dots(left[l + 2u * LINE], y);
            sum3 += dots(left[l + 3u * LINE], y);
        }
    }
    put(number, row + down, col + across, sum0);
    put(number, row + down + 1u, col + across, sum1);
    put(number, row + down + 2u, col + across, sum2);
    put(number, row + down + 3u, col + across, sum3);
}
