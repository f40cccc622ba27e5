//go:build unix

// The faults, each a replacement of text that stands once in its file.

package main

import (
	"fmt"
	"strings"
)

// mutation is one fault.
type mutation struct {
	backend  string // that runs the suite: cpu, or webgpu or vulkan on a software driver
	name     string
	file     string // in the module
	old, new string
	cases    string // regular expression of the cases that may notice
	unlisted bool   // matrix shapes that the software driver does not list, too
}

// apply returns the text with the fault in it.
func (m *mutation) apply(text string) (string, error) {
	if n := strings.Count(text, m.old); n != 1 {
		return "", fmt.Errorf("%s has %q %d times, must have it once", m.file, m.old, n)
	}
	return strings.Replace(text, m.old, m.new, 1), nil
}

// compiled reports whether the file is compiled by tools/shadergen.
func (m *mutation) compiled() bool {
	return strings.HasSuffix(m.file, ".comp") || strings.HasSuffix(m.file, ".glsl")
}

// The cases of some formats, of those on panels of rows, in reproducible mode, and through package spmm.
const (
	csr          = "^csr/"
	panels       = "^(cvse|tiledcsr)/"
	reproducible = "/T3/"
	newValues    = "/values:"
	ints         = "^rfx/" // in reproducible mode, launched by its table: soonest done on slow drivers
	front        = "/(host|tensor)"
	epilogues    = "/(T1|T2|nonfinite).*/(bias|relu|gelu|silu)"
	csrEpilogues = "^csr/f16" + epilogues
	all          = "."

	dense   = "^dense/"
	streams = "^lanestream/"
	blocks  = "^(dense|lanestream)/"
)

var mutations = []mutation{
	// Go kernels.
	{"cpu", "csr skips rows of exactly as many entries as a segment", "shaders/csr/cpu.go",
		`starts[end+1]-starts[end] <= w.p.longest`, `starts[end+1]-starts[end] < w.p.longest`, csr, false},
	{"cpu", "csr leaves out the last segment of a row", "shaders/csr/cpu.go",
		`x < int(r[2]); x++ {`, `x < int(r[2])-1; x++ {`, csr, false},
	{"cpu", "csr takes segments of later tiles from the first columns", "shaders/csr/cpu.go",
		`w.sum(w.heavy[2*i:2*i+2], w.part[i*int(p.ldp)+w.j:], int(p.ldp), 1)`,
		`w.sum(w.heavy[2*i:2*i+2], w.part[i*int(p.ldp)+w.j&127:], int(p.ldp), 1)`, csr, false},
	{"cpu", "csr stores all sums of a block to its first row", "shaders/csr/cpu.go",
		`w.store(row+i, `, `w.store(row, `, csr, false},
	{"cpu", "sums that are not finite are not repaired", "shaders/host/host.go",
		`if simd.Finite(acc) {`, `if simd.Finite(acc) || true {`, panels, false},
	{"cpu", "panels write rows that do not exist", "shaders/panel/cpu.go",
		`if row >= g.Rows {`, `if row > g.Rows {`, panels, false},
	{"cpu", "panels drop a vector between chunks", "shaders/panel/cpu.go",
		`q += chunk {`, `q += chunk + 1 {`, panels, false},
	{"cpu", "panels take structural zeros for entries", "shaders/panel/cpu.go",
		`if p.mask[bit/32]>>(bit%32)&1 != 0 {`, `if p.mask[bit/32]>>(bit%32)&1 != 2 {`, panels, false},
	{"cpu", "nm drops a condensed column between chunks", "shaders/nm/cpu.go",
		`k += cpuChunk {`, `k += cpuChunk + 1 {`, "^nm/", false},
	{"cpu", "hrpb drops blocks after the first chunk", "shaders/hrpb/cpu.go",
		`case len(cols) > 0:`, `case len(cols) > 1:`, "^hrpb/", false},
	{"cpu", "hrpb adds up one slot of a split panel too few", "shaders/hrpb/cpu.go",
		`for i := range slots {`, `for i := range max(1, slots-1) {`, "^hrpb/", false},
	{"cpu", "dense drops the last place of a step", "shaders/dense/cpu.go",
		`count := min(host.BlockDepth, places-k)`, `count := min(host.BlockDepth-1, places-k)`, dense, false},
	{"cpu", "dense takes B to lie across the sum in any order", "shaders/dense/cpu.go",
		`int(p.ldb), p.order&bBit != 0}`, `int(p.ldb), false}`, dense, false},
	{"cpu", "dense leaves what its last panel's rows were where they lie across", "shaders/dense/cpu.go",
		`lines := min(simd.VectorRows, rows-i)`, `lines := max(1, min(simd.VectorRows, rows-i)-1)`, dense, false},
	{"cpu", "dense repairs sums without their last place", "shaders/dense/cpu.go",
		`for k := range int(p.cols) {`, `for k := range int(p.cols) - 1 {`, dense, false},
	{"cpu", "dense takes the epilogue's bias of Cᵀ for C's", "shaders/dense/launch.go",
		`p.Epilogue = p.Epilogue.Transposed()`, ``, dense, false},
	{"cpu", "blocks begin with the sums of the block before, by rows", "shaders/host/block.go",
		`clear(s.rows[:])`, ``, blocks, false},
	{"cpu", "blocks begin with the sums of the block before, by columns", "shaders/host/block.go",
		`clear(s.cols[:])`, ``, blocks, false},
	{"cpu", "blocks multiply a right operand that is not there", "shaders/host/block.go",
		`min(s.depth, len(a)/simd.VectorRows)`, `min(BlockDepth, len(a)/simd.VectorRows)`, blocks, false},
	{"cpu", "blocks take columns that are summed up by columns from the first of B", "shaders/host/block.go",
		`b[s.lines:], ld, count, others)`, `b, ld, count, others)`, blocks, false},
	{"cpu", "blocks take later columns of a B by columns from the first", "shaders/host/block.go",
		`b[j*ld:]`, `b[j/2*ld:]`, dense, false},
	{"cpu", "blocks multiply half a panel", "shaders/host/block.go",
		`r += simd.PanelRows {`, `r += 2 * simd.PanelRows {`, blocks, false},
	{"cpu", "lanestream forgets the remainder", "shaders/lanestream/cpu.go",
		`g.addRemainder(r, sums, tmp)`, ``, streams, false},
	{"cpu", "lanestream forgets the remainder where sums are not finite", "shaders/lanestream/cpu.go",
		`at < g.remainderPtr[i+1]; at++ {`, `at+1 < g.remainderPtr[i+1]; at++ {`, streams, false},
	{"cpu", "lanestream takes fillers for entries", "shaders/lanestream/cpu.go",
		`g.stored[at/32]>>(at%32)&1 != 0 {`, `g.stored[at/32]>>(at%32)&1 != 2 {`, streams, false},
	{"cpu", "lanestream loads the values of a chunk too few", "shaders/lanestream/cpu.go",
		`(s+n-1)/int(g.steps) + int(g.window))`, `(s+n-1)/int(g.steps) + int(g.window) - 1)`, streams, false},
	{"cpu", "lanestream drops a step between chunks", "shaders/lanestream/cpu.go",
		`n, k := min(chunkSteps, end-s), s*stepCols`, `n, k := min(chunkSteps-1, end-s), s*stepCols`, streams, false},
	{"cpu", "lanestream takes each chunk's values from the first row of a chain", "shaders/lanestream/cpu.go",
		`g.next[c] += g.from - from`, `g.next[c] = 0`, streams, false},
	{"cpu", "lanestream writes rows that do not exist", "shaders/lanestream/cpu.go",
		`for r := range min(rows, int(g.params.rows)-g.number*rows) {`, `for r := range rows {`, streams, false},
	{"cpu", "rfx looks at infinities in rows of A alone", "shaders/rfx/cpu.go",
		`NonFinite() || rfx.Range(g.q[j]).NonFinite() {`, `NonFinite() {`, reproducible, false},
	{"cpu", "rfx takes any high sums for exact in float64", "shaders/rfx/cpu.go",
		`if uint64(h+1<<53) > 1<<54 {`, `if uint64(h+1<<53) > 1<<63 {`, reproducible, false},
	{"cpu", "rfx rounds triples of sums twice", "shaders/rfx/cpu.go",
		`simd.OddSum(float64(h)*(1<<48), float64(below))`, `(float64(h)*(1<<48) + float64(below))`, reproducible, false},
	{"cpu", "rfx leaves out the last segment of a row", "shaders/rfx/cpu.go",
		`for i := r[1]; i < r[2]; i++ {`, `for i := r[1]; i < max(r[1]+1, r[2]-1); i++ {`, reproducible, false},
	{"cpu", "rfx forgets epilogues where sums are finite and rounded fast", "shaders/rfx/cpu.go",
		`c[j] = g.finished(x, row, g.j+j)`, `c[j] = x`, reproducible, false},
	{"cpu", "rfx applies ReLU only where there is a bias", "shaders/rfx/cpu.go",
		`case g.epilogue.Activation == spec.ReLU && y < 0:`, `case g.epilogue.Activation == spec.ReLU && g.bias != nil && y < 0:`, reproducible, false},
	{"cpu", "quantise looks at all chunks but the last", "shaders/quantise/cpu.go",
		`for c := range int(p.chunks) {`, `for c := range max(1, int(p.chunks)-1) {`, reproducible, false},
	{"cpu", "densecopy scales with beta 0 where it copies transposed", "shaders/densecopy/cpu.go",
		`if beta != 0 {`, `if beta == 1 {`, front, false},
	{"cpu", "densecopy turns tiles by their first line", "shaders/densecopy/cpu.go",
		`int(p.first)+(e0+e)*int(p.lds)+l0`, `int(p.first)+(e0+e)*int(p.lds)`, front, false},

	// Packing and encoding.
	{"cpu", "csr cuts the last entry off heavy rows", "shaders/spec/split.go",
		`uint32(min(p+longest, end)))`, `uint32(min(p+longest, end-1)))`, csr, false},
	{"cpu", "csr also multiplies whole the rows that it cuts into segments", "shaders/spec/split.go",
		`if end-begin <= longest {`, `if end-begin < longest {`, csr, false},
	{"cpu", "lanestream marks other values than its entries", "formats/lanestream/encode.go",
		`stored[at*storedBits+c/32] |= 1 << (c % 32)`, `stored[at*storedBits+c/32] |= 1 << (c % 31)`, streams, false},
	{"cpu", "lanestream loses a chain's values in a chunk's last steps", "formats/lanestream/encode.go",
		`chains[p.chain[col%StepCols]][col/16&7] |= bit`, `chains[p.chain[col%StepCols]][col/16&3] |= bit`, streams, false},
	{"cpu", "lanestream leaves the entry after the right one to the remainder", "formats/lanestream/encode.go",
		`has[bestWord] &^= 1 << best`, `has[bestWord] &= has[bestWord] - 1`, streams, false},
	{"cpu", "lanestream keeps the remainder's values in the order in which they were left", "formats/lanestream/encode.go",
		`m.RemainderCol[int(m.RemainderPtr[i])+k], val[int(m.RemainderPtr[i])+k] = e.col, e.val`,
		`m.RemainderCol[int(m.RemainderPtr[i])+k], val[int(m.RemainderPtr[i])+k] = e.col, of[0].val`, streams, false},
	{"cpu", "nm marks other places than those of its entries", "formats/nm/encode.go",
		`mask[v/32] |= 1 << (v % 32)`, `mask[v/32] |= 1 << (v % 31)`, "^nm/", false},
	{"cpu", "sums in fixed point round halves up", "formats/rfx/int128.go",
		`if half == 1 && (low != 0 || whole&1 == 1) {`, `if half == 1 && low|1 != 0 {`, reproducible, false},
	{"cpu", "sums in fixed point lose bits when they are subnormal", "formats/rfx/int128.go",
		`unit := max(t.len()-24+scale, -149)`, `unit := max(t.len()-24+scale, -148)`, reproducible, false},

	// Plans.
	{"cpu", "plans take the launches of another beta", "internal/launch/product.go",
		`math.Float64bits(q.Beta), q.Epilogue`, `0, q.Epilogue`, front, false},
	{"cpu", "plans take the launches of another alpha", "internal/launch/product.go",
		`math.Float64bits(q.Alpha), math`, `0, math`, front, false},
	{"cpu", "plans take the launches of another precision", "internal/launch/product.go",
		`return key{m, q.B`, `return key{nil, q.B`, reproducible, false},

	{"cpu", "epilogues of later tiles take the bias of the first columns", "shaders/host/epilogue.go",
		`y[j] += bias[(col+j)<<e.BiasShift]`, `y[j] += bias[j<<e.BiasShift]`, epilogues, false},
	{"cpu", "ReLU lets −Inf pass", "shaders/host/epilogue.go",
		`bits&^(1<<31) <= 0x7f800000`, `bits&^(1<<31) < 0x7f800000`, epilogues, false},
	{"cpu", "GELU has few digits of a coefficient", "shaders/host/epilogue.go",
		`0.0713548163`, `0.0713`, epilogues, false},
	{"cpu", "exp has a wrong coefficient", "shaders/host/epilogue.go",
		`1.0/24`, `1.0/23`, epilogues, false},
	{"cpu", "plans take elements of a bias for neighbours that lie apart", "internal/launch/epilogue.go",
		`uint32(bits.TrailingZeros(uint(apart)))`, `0*uint32(bits.TrailingZeros(uint(apart)))`, front, false},
	{"cpu", "plans forget the bias in reproducible mode where C is staged", "internal/reproducible/reproducible.go",
		`w.Multiply(i, j, w.Beta, e, tmp, b, q)`, `w.Multiply(i, j, w.Beta, launch.Plain, tmp, b, q)`, reproducible, false},

	{"cpu", "values leaves out a group's last entry", "shaders/values/cpu.go",
		`for m := groups[2*g]; m != 0; m &= m - 1 {`, `for m := groups[2*g]; m&(m-1) != 0; m &= m - 1 {`, newValues, false},
	{"cpu", "entries of a transposed matrix take the values of others", "internal/values/given.go",
		`g.number[i] = next[c]`, `g.number[i] = uint32(i)`, newValues, false},
	{"cpu", "AutoP keeps the precision of old values", "internal/reproducible/values.go",
		`r.auto.matrix, r.auto.rows = m, ranges(m)`, `r.auto.matrix = m`, newValues, false},

	// WGSL.
	{"webgpu", "epilogues add the bias of the next row", "shaders/include/epilogue.wgsl",
		`bias[row << shift]`, `bias[(row + 1u) << shift]`, csrEpilogues, false},
	{"webgpu", "SiLU turns to ReLU too soon", "shaders/include/epilogue.wgsl",
		`limit = 0x42ae0000u`, `limit = 0x40000000u`, csrEpilogues, false},
	{"webgpu", "csr skips rows of exactly as many entries as a segment", "shaders/csr/kernel.wgsl",
		`end - begin <= p.longest`, `end - begin < p.longest`, csr, false},
	{"webgpu", "csr leaves out the last segment of a row", "shaders/csr/kernel.wgsl",
		`r < last; r += p.along`, `r + 1u < last; r += p.along`, csr, false},
	{"webgpu", "csr leaves out a last entry after three others", "shaders/csr/kernel.wgsl",
		`for (var e = k; e < end; e++)`, `for (var e = k; e < min(end, k + 2u); e++)`, csr, false},
	{"webgpu", "csr reads the wrong columns of wide tiles", "shaders/csr/kernel.wgsl",
		`select(vec4<u32>(0u), d, `, `select(vec4<u32>(0u), d & vec4<u32>(15u), `, csr, false},
	{"webgpu", "csr always reads C", "shaders/csr/kernel.wgsl",
		`if (segment) {`, `if (segment || sum == 0.0) {`, csr, false},
	{"webgpu", "dense leaves out the last place of a step", "shaders/dense/kernel.wgsl",
		`e < STEP; e = e + 1u`, `e + 1u < STEP; e = e + 1u`, dense, false},
	{"webgpu", "dense writes past the last column of C", "shaders/dense/kernel.wgsl",
		`if (col + i >= p.n) { return; }`, ``, dense, false},
	{"webgpu", "dense leaves out the last place where a sum is not finite", "shaders/dense/kernel.wgsl",
		`k < p.cols; k = k + 1u) {`, `k + 1u < p.cols; k = k + 1u) {`, dense, false},
	{"webgpu", "panels leave out a stage's last vector", "shaders/include/panel.wgsl",
		`let m = min(STAGE, last - s);`, `let m = min(STAGE - 1u, last - s);`, panels, false},
	{"webgpu", "zeros times infinity are taken for infinity", "shaders/include/nonfinite.wgsl",
		`lesser == 0u`, `false`, panels, false},
	{"webgpu", "panels add up all slices but the last", "shaders/include/fours.wgsl",
		`i < slices; i = i + 1u`, `i + 1u < slices; i = i + 1u`, panels, false},
	{"webgpu", "panels add up one part of a heavy panel too few", "shaders/include/panel.wgsl",
		`s < end; s = s + 1u`, `s + 1u < end; s = s + 1u`, panels, false},
	{"webgpu", "hrpb writes rows that do not exist", "shaders/hrpb/kernel.wgsl",
		`row >= p.rows || j >= p.n`, `j >= p.n`, "^hrpb/", false},
	{"webgpu", "hrpb adds up one slot of a split panel too few", "shaders/hrpb/kernel.wgsl",
		`s < slots; s = s + 1u`, `s + 1u < slots; s = s + 1u`, "^hrpb/", false},
	{"webgpu", "jigsaw takes padding for entries", "shaders/jigsaw/kernel.wgsl",
		`if (((mask[slot / 32u] >> (slot & 31u)) & 1u) == 0u) { continue; }`, ``, "^jigsaw/", false},
	{"webgpu", "densecopy drops the element that wraps to the next line", "shaders/densecopy/kernel.wgsl",
		`tight && l + 1u < p.lines;`, `tight && l + 2u < p.lines;`, front, false},
	{"webgpu", "rfx rounds ties away from zero", "shaders/include/fixed.wgsl",
		`(rest != 0u || (a.x & 1u) != 0u)`, `true`, ints, false},
	{"webgpu", "rfx forgets what lies below the middle", "shaders/include/fixed.wgsl",
		`        rest = a.x;
        below = a.y;`, `        below = a.y;`, ints, false},
	{"webgpu", "rfx flushes subnormal results", "shaders/include/fixed.wgsl",
		`if (m == 0u) { return 0u; }
    if (last`, `if (m < 0x800000u) { return 0u; }
    if (last`, ints, false},
	{"webgpu", "rfx drops a carry between words", "shaders/include/fixed.wgsl",
		`let cy = c.y | select(0u, 1u, y < s.y);`, `let cy = c.y;`, ints, false},
	{"webgpu", "rfx sums four times too many products in 32 bits", "shaders/rfx/kernel.wgsl",
		`const BURST = 124u;`, `const BURST = 496u;`, ints, false},
	{"webgpu", "rfx skips rows of exactly as many entries as a segment", "shaders/rfx/kernel.wgsl",
		`end - begin <= p.longest`, `end - begin < p.longest`, ints, false},

	{"webgpu", "rfx takes elements of a bias for neighbours that lie apart", "shaders/rfx/store.wgsl",
		`bias[j << shift]`, `bias[j]`, ints, false},
	{"webgpu", "rfx makes infinity of NaN where ReLU is", "shaders/include/fixed.wgsl",
		`max(bitcast<i32>(x), 0)`, `clamp(bitcast<i32>(x), 0, 0x7f800000)`, ints, false},

	{"webgpu", "values drops the element that another shares a word with", "shaders/values/kernel.wgsl",
		`return (word & ~(mask << shift)) | (load(i) << shift);`, `return load(i) << shift;`, newValues, false},
	{"webgpu", "requantise takes the range of the row before", "shaders/requantise/kernel.wgsl",
		`if (rows[2u * mid] <= e) { lo = mid; }`, `if (rows[2u * mid] < e) { lo = mid; }`, newValues, false},

	// GLSL, as SPIR-V.
	{"vulkan", "epilogues take a column's bias for a row's", "shaders/include/epilogue.glsl",
		`kind == 1 ? row : col`, `kind == 2 ? row : col`, csrEpilogues, false},
	{"vulkan", "values counts the entries of a group from its end", "shaders/values/kernel.comp",
		`bitCount(bits & ((1u << at32) - 1u))`, `bitCount(bits >> at32)`, newValues, false},
	{"vulkan", "requantise joins the ranges of half a row's lanes", "shaders/requantise/kernel.comp",
		`for (uint s = p.lanes / 2; s > 0; s /= 2)`, `for (uint s = p.lanes / 4; s > 0; s /= 2)`, newValues, false},
	{"vulkan", "csr skips rows of exactly as many entries as a segment", "shaders/csr/item.glsl",
		`end - begin <= p.longest`, `end - begin < p.longest`, csr, false},
	{"vulkan", "csr takes entries of the row after", "shaders/csr/kernel.comp",
		`bool mine = k + i >= begin && k + i < end;`, `bool mine = k + i >= begin && k + i <= end;`, csr, false},
	{"vulkan", "csr writes past the last column of C", "shaders/csr/kernel.comp",
		`p.ldc % 4 == 0 && col + VEC <= p.n`, `p.ldc % 4 == 0`, csr, false},
	{"vulkan", "csr in f64 leaves out the last entry of three", "shaders/csr/double.comp",
		`if (k + 2 < end) hi =`, `if (k + 3 < end) hi =`, "^csr/f64/", false},
	{"vulkan", "csr in f64 takes beta without its last digits", "shaders/include/f64.glsl",
		`packDouble2x32(uvec2(p.beta_low, p.beta_high))`, `packDouble2x32(uvec2(0u, p.beta_high))`, "^csr/f64/", false},
	{"vulkan", "csr in f64 adds up half an item's groups of lanes", "shaders/csr/double.comp",
		`for (uint d = along / 2; d > 0; d /= 2)`, `for (uint d = along / 2; d > 1; d /= 2)`, "^csr/f64/", false},
	{"vulkan", "panels on scalar units leave out a stage's last vector", "shaders/include/panel_scalar.glsl",
		`uint m = min(STAGE, a.count - s);`, `uint m = min(STAGE - 1, a.count - s);`, panels, false},
	{"vulkan", "panels take structural zeros for entries", "shaders/include/panel.glsl",
		`if (!stored(a, q, r)) continue;`, ``, panels, false},
	{"vulkan", "panels on matrix units add up all slices but the last", "shaders/include/panel_coop.glsl",
		`k < slices; k++`, `k + 1 < slices || k == 0; k++`, panels, false},
	{"vulkan", "panels write rows that do not exist", "shaders/include/panel.glsl",
		`if (row >= p.rows || j >= p.n) return;`, `if (j >= p.n) return;`, panels, false},
	{"vulkan", "panels add up one part of a heavy panel too few", "shaders/include/panel.glsl",
		`s < slots; s++`, `s + 1 < slots; s++`, panels, false},
	{"vulkan", "hrpb on matrix units forgets values past a part's end", "shaders/hrpb/kernel_coop.comp",
		`if (q < a.last && t < BLOCK * A_ROW)`, `if (q + 1 < a.last && t < BLOCK * A_ROW)`, "^hrpb/", false},
	{"vulkan", "hrpb's strips add up groups of the first item of a workgroup", "shaders/hrpb/strips.comp",
		`first = me / TEAM * TEAM + me % ACROSS`, `first = me % ACROSS`, "^hrpb/", false},
	{"vulkan", "hrpb's strips give the last row's sums to all", "shaders/hrpb/strips.comp",
		`if (r == group) mine = y;`, `if (r >= group) mine = y;`, "^hrpb/", false},
	{"vulkan", "hrpb's strips take structural zeros for entries", "shaders/hrpb/hrpb.glsl",
		`if ((word >> (32 - HEIGHT + r) & 1u) == 0) continue;`, ``, "^hrpb/", false},
	{"vulkan", "rfx rounds ties away from zero", "shaders/include/fixed.glsl",
		`(rest != 0u || (a.x & 1u) != 0u)`, `true`, ints, false},
	{"vulkan", "rfx puts the last bit of subnormal results elsewhere", "shaders/include/fixed.glsl",
		`max(length128(a) - 24 + scale, -149)`, `max(length128(a) - 24 + scale, -148)`, ints, false},
	{"vulkan", "rfx forgets what lies below the middle", "shaders/include/fixed.glsl",
		`rest |= below << (32 - n);`, ``, ints, false},
	{"vulkan", "rfx adds the bias of the row before", "shaders/rfx/store.glsl",
		`kind == 1 ? row : j, 4u`, `kind == 1 ? max(row, 1) - 1 : j, 4u`, ints, false},
	{"vulkan", "rfx rounds the bias to what the sum keeps", "shaders/include/fixed.glsl",
		`int d = min(ex - ey, 78);`, `int d = min(ex - ey, 20);`, ints, false},
	{"vulkan", "rfx on matrix units cuts panels into segments four times too long", "shaders/rfx/panels.go",
		`const mostVectors = 1<<15 - rfx.Tile`, `const mostVectors = 4 * (1<<15 - rfx.Tile)`, "^rfx/", true},
	{"vulkan", "rfx leaves out products of the highest digits", "shaders/rfx/panel.comp",
		`[[unroll]] for (uint e = 0; e < S; e++)
                        sums`, `[[unroll]] for (uint e = 0; e < (d + 1 == S ? S - 1 : S); e++)
                        sums`, "^rfx/", false},
	{"vulkan", "dense puts the right operand where the left one's order says", "shaders/dense/coop.comp",
		`slot(n, RA, COLS, RIGHT_LINE)`, `slot(n, LA, COLS, RIGHT_LINE)`, "^dense/f16/", false},
	{"vulkan", "2:4 on matrix units takes the first row's columns for the second", "shaders/nm/coop24.comp",
		`16 * (e % 2) + 4 * t`, `4 * t`, "^nm/f16/", false},
	{"vulkan", "gathered panels leave out the last step", "shaders/include/panel_gather.glsl",
		`s <= last; s += 2`, `s < last; s += 2`, "^(cvse|tiledcsr)/f16/", false},
	{"vulkan", "dense on scalar units writes rows that do not exist", "shaders/dense/kernel.comp",
		`if (row + r < p.rows) storeFloats`, `storeFloats`, dense, false},
	{"vulkan", "dense on scalar units takes B to lie across the sum", "shaders/dense/kernel.comp",
		`uint line = x.along ? at % 64 : at % 16 * 4, place = x.along`, `uint line = x.along ? at % 64 : at % 16 * 4, place = !x.along`, dense, false},
	{"vulkan", "densecopy overwrites the neighbour of a line's last element", "shaders/densecopy/pair.glsl",
		`BETA != 0 || !lo || !hi ?`, `BETA != 0 ?`, front, false},
}
