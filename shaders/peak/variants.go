// The variants: what each is compiled from and what it needs.

package peak

import (
	"fmt"
	"strings"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/internal/simd"
	"github.com/spmmrun/spmm/shaders/spec"
)

func variants() []*spec.Variant {
	var vs []*spec.Variant
	for _, k := range []Kind{Copy, Read, FMA} {
		vs = append(vs, cudaVariant(k, dtype.F32, backend.MatrixShape{}),
			vulkanVariant(k), webgpuVariant(k), cpuVariant(k))
	}
	vs = append(vs, cudaVariant(FMA64, dtype.F64, backend.MatrixShape{}), vulkanVariant(FMA64), cpuVariant(FMA64),
		cudaVariant(Matrix, dtype.F64, spec.Shape(16, 8, 8, dtype.F64)),
		cudaVariant(Matrix, dtype.F64, spec.Shape(8, 8, 4, dtype.F64)))
	for _, t := range []dtype.Type{dtype.F16, dtype.BF16} {
		vs = append(vs, cudaVariant(Matrix, t, spec.Shape(16, 8, 16, t)), cudaVariant(Matrix, t, spec.Shape(16, 8, 8, t)))
	}
	vs = append(vs, cudaVariant(Matrix, dtype.TF32, spec.Shape(16, 8, 8, dtype.TF32)))
	for _, k := range []uint32{32, 16} {
		vs = append(vs, cudaVariant(Matrix, dtype.S8, spec.Shape(16, 8, k, dtype.S8)))
	}
	for _, s := range [][3]uint32{{16, 16, 16}, {16, 8, 16}, {16, 8, 8}, {8, 16, 16}, {8, 8, 16}, {8, 8, 8}} {
		for _, sub := range []uint32{8, 16, 32, 64} {
			vs = append(vs, matrixVariant(spec.Shape(s[0], s[1], s[2], dtype.F16), sub))
		}
	}
	for _, s := range [][3]uint32{{16, 16, 32}, {16, 8, 32}, {16, 16, 16}, {8, 16, 32}, {8, 8, 8}} {
		for _, sub := range []uint32{8, 16, 32, 64} {
			vs = append(vs, matrixVariant(spec.Shape(s[0], s[1], s[2], dtype.S8), sub))
		}
	}
	return vs
}

func (k Kind) String() string {
	return [...]string{"", "copy", "read", "fma", "matrix", "fma_f64"}[k]
}

// consts are the constants that this package looks up again.
func consts(k Kind, width uint32) []spec.Const {
	return []spec.Const{spec.Define("KIND", uint32(k)), spec.Define("WIDTH", width)}
}

func cudaVariant(k Kind, t dtype.Type, s backend.MatrixShape) *spec.Variant {
	v := &spec.Variant{
		Name: "cuda_" + k.String(), In: t, Code: backend.CodePTX, Need: spec.Need{Arch: 80},
		Local: [3]uint32{Local, 1, 1}, Consts: consts(k, 16), Entry: "peak",
		Unit: spec.Unit{Source: "kernel.cu", Blob: "cuda_" + k.String() + ".ptx", Arch: "compute_80"},
	}
	v.Need.F64 = t == dtype.F64
	if k == Matrix {
		v.Name += fmt.Sprintf("_k%d_%v", s.K, t)
		v.Unit.Blob = v.Name + ".ptx"
		v.Need.Shapes = []backend.MatrixShape{s}
		if t == dtype.F64 && s.K == 8 {
			v.Need.Arch, v.Unit.Arch = 90, "compute_90"
		}
		v.Consts = append(v.Consts, spec.Define("SUBGROUP", 32),
			spec.Define("K", s.K), spec.Const{Name: strings.ToUpper(t.String()), ID: -1, Value: 1})
	}
	return v
}

func vulkanVariant(k Kind) *spec.Variant {
	t := dtype.F32
	if k == FMA64 {
		t = dtype.F64
	}
	return &spec.Variant{
		Name: "vulkan_" + k.String(), In: t, Need: spec.Need{F64: k == FMA64}, Code: backend.CodeSPIRV,
		Local: [3]uint32{Local, 1, 1}, Consts: consts(k, 16), Entry: "main",
		Unit: spec.Unit{Source: "kernel.comp", Blob: "vulkan_" + k.String() + ".spv"},
	}
}

// matrixVariant is one workgroup of one subgroup, which keeps matrixOps accumulators of a shape busy.
func matrixVariant(s backend.MatrixShape, sub uint32) *spec.Variant {
	suffix, defines := "", map[string]string(nil)
	if s.A == dtype.S8 {
		suffix, defines = "_s8", map[string]string{"S8": "1"}
	}
	return &spec.Variant{
		Name: fmt.Sprintf("vulkan_matrix_%dx%dx%d%s_sub%d", s.M, s.N, s.K, suffix, sub), In: s.A, Code: backend.CodeSPIRV,
		Need:  spec.Need{Shapes: []backend.MatrixShape{s}, F16: s.A == dtype.F16, Int8: s.A == dtype.S8},
		Local: [3]uint32{sub, 1, 1}, Sub: sub, Matrix: true, Entry: "main",
		Consts: append(consts(Matrix, 0),
			spec.Const{Name: "SUBGROUP", ID: 0, Value: sub}, spec.Const{Name: "M", ID: 1, Value: s.M},
			spec.Const{Name: "N", ID: 2, Value: s.N}, spec.Const{Name: "K", ID: 3, Value: s.K}),
		Unit: spec.Unit{Source: "matrix.comp", Blob: "vulkan_matrix" + suffix + ".spv", Defines: defines},
	}
}

func webgpuVariant(k Kind) *spec.Variant {
	return &spec.Variant{
		Name: "webgpu_" + k.String(), In: dtype.F32, Code: backend.CodeWGSL,
		Local: [3]uint32{Local, 1, 1}, Consts: consts(k, 4), Entry: "main",
		Unit: spec.Unit{Source: "kernel.wgsl"},
	}
}

// cpuVariant does what the kernels on the CPU do most: RowF32 reads rows of B and adds them up, more than the
// first-level cache holds (Read), and PanelF32 multiplies what it does hold (FMA), as RowF64 does (FMA64). An element
// is 1 KiB, so that the call costs little.
func cpuVariant(k Kind) *spec.Variant {
	v := &spec.Variant{
		Name: "cpu_" + k.String(), In: dtype.F32, Code: backend.CodeGo,
		Local: [3]uint32{1, 1, 1}, Consts: consts(k, 4*cpuRow),
	}
	switch k {
	case Copy:
		v.Func = cpuCopy
	case Read:
		v.Func = cpuRead
	case FMA:
		v.Func = cpuFMA
	case FMA64:
		v.In, v.Func = dtype.F64, cpuFMA64
	}
	return v
}

// cpuRow is the floats in one element on the CPU, cpuRows the elements that one call adds up.
const (
	cpuRow  = 256
	cpuRows = 64
)

func cpuCopy(args [][]byte, block []byte, group [3]uint32) {
	n := 4 * cpuRow * int(spec.View[params](block).rounds)
	at := n * int(group[0])
	copy(args[1][at:at+n], args[0][at:at+n])
}

func cpuRead(args [][]byte, block []byte, group [3]uint32) {
	sumRows(args, block, group, int(spec.View[params](block).span))
}

// cpuFMA multiplies vectors of 8 rows by 32 columns, which lie in the first-level cache: what the fastest kernels do.
func cpuFMA(args [][]byte, block []byte, group [3]uint32) {
	const columns, rows = 32, 8 // of B; rows that are multiplied over and over
	b := backend.View[float32](args[0])
	var acc [simd.PanelRows * columns]float32
	var vals [cpuRows * simd.PanelRows]float32
	var cols [cpuRows]uint32
	for i := range cols {
		cols[i] = uint32(i % rows)
	}
	for left := int(spec.View[params](block).rounds) * fmas / len(acc); left > 0; left -= cpuRows {
		simd.PanelF32(acc[:], columns, vals[:], simd.PanelRows, cols[:min(left, cpuRows)], b, columns, columns)
	}
	backend.View[float32](args[1])[group[0]] = acc[0]
}

// cpuFMA64 multiplies rows of 64 columns, which lie in the first-level cache.
func cpuFMA64(args [][]byte, block []byte, group [3]uint32) {
	const columns, rows = 64, 8 // of B; rows that are multiplied over and over
	b := backend.View[float64](args[0])
	var acc [columns]float64
	var vals [cpuRows]float64
	var cols [cpuRows]uint32
	for i := range cols {
		cols[i] = uint32(i % rows)
	}
	for left := int(spec.View[params](block).rounds) * fmas / len(acc); left > 0; left -= cpuRows {
		n := min(left, cpuRows)
		simd.RowF64(acc[:], vals[:n], cols[:n], b, columns)
	}
	backend.View[float64](args[1])[group[0]] = acc[0]
}

func sumRows(args [][]byte, block []byte, group [3]uint32, span int) {
	b, acc := backend.View[float32](args[0]), make([]float32, cpuRow)
	var vals [cpuRows]float32
	var cols [cpuRows]uint32
	at := int(group[0])
	for left := int(spec.View[params](block).rounds); left > 0; left -= cpuRows {
		n := min(left, cpuRows)
		for i := range n {
			cols[i] = uint32((at + i*7) % span)
		}
		at += n * 7
		simd.RowF32(acc, vals[:n], cols[:n], b, cpuRow)
	}
	backend.View[float32](args[1])[group[0]] = acc[0]
}
