// Package dense copies dense matrices on a device: strided, transposed, converted between element
// types, scaled and added to what is there. It brings B and C into the form that the multiplying
// kernels take, and back.
//
// The matrices are seen in the order of dst's memory: `lines` lines (rows, or columns of a
// column-major matrix) of `len` elements, ldd apart. Each invocation writes whole 32-bit words of
// dst, so that 16-bit elements need no feature and no two invocations touch a word. A word may hold
// the end of a line and padding, which keeps its value, or, where lines follow each other without
// padding and have an odd length, the end of a line and the start of the next: it belongs to the
// former.
//
// A workgroup does 32 words of 32 lines. Where src and dst differ in order, it first brings the tile
// into shared memory, reading along src's lines.
//
// Rounding is to nearest even, overflow gives an infinity, NaN stays NaN; with alpha 1 and beta 0, no
// arithmetic touches the values.
package dense

import (
	"embed"
	"fmt"
	"math"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Layout says how a dense matrix lies in a buffer.
type Layout struct {
	Type     dtype.Type // F16, BF16 or F32
	LD       int        // elements from one row (column, if ColMajor) to the next
	ColMajor bool
}

// Op is dst = Alpha·src + Beta·dst for matrices of Rows×Cols. dst is not read where Beta is 0.
type Op struct {
	Rows, Cols  int
	Src, Dst    Layout
	Alpha, Beta float32
}

//go:embed kernel.wgsl z*
var files embed.FS

// Kernel is the table of the dense kernel. It has no Encode; see Launch.
var Kernel = &spec.Kernel{
	Name: "dense",
	Args: []spec.Arg{
		{Name: "src", Elem: "u32", ReadOnly: true},
		{Name: "dst", Elem: "u32"},
	},
	Params: []spec.Param{
		{Name: "lines"},
		{Name: "len"},
		{Name: "lds"},
		{Name: "ldd"},
		{Name: "stype"}, // 0 f32, 1 f16, 2 bf16
		{Name: "dtype"},
		{Name: "turned"}, // 1: src's lines run across dst's
		{Name: "tiles"},  // along a line
		{Name: "width"},  // of the grid in x
		{Name: "alpha", Float: true},
		{Name: "beta", Float: true},
	},
	Variants: []*spec.Variant{
		{
			Name: "cuda", In: dtype.F32, Code: backend.CodePTX, Entry: "dense", Local: local, Need: spec.Need{Arch: 80},
			Unit: spec.Unit{Source: "kernel.cu", Blob: "zcuda.ptx", Arch: "compute_80"},
		},
		{
			Name: "vulkan", In: dtype.F32, Code: backend.CodeSPIRV, Entry: "main", Local: local, Need: spec.Need{Shared: shared},
			Unit: spec.Unit{Source: "kernel.comp", Blob: "zvulkan.spv"},
		},
		{
			Name: "webgpu", In: dtype.F32, Code: backend.CodeWGSL, Entry: "main", Local: local, Need: spec.Need{Shared: shared},
			Unit: spec.Unit{Source: "kernel.wgsl", Defines: map[string]string{"HALF": include.HalfWGSL}},
		},
		{
			Name: "cpu", In: dtype.F32, Code: backend.CodeGo, Local: [3]uint32{1, 1, 1}, Func: group,
		},
	},
	Files: files,
}

// A workgroup is 32×4 invocations, its tile of src up to 65×32 elements, with a column of padding.
var local = [3]uint32{32, 4, 1}

const (
	tileLines = 32
	tileWords = 32
	shared    = 65 * 33 * 4
)

// Variant returns the variant that a device runs.
func Variant(caps backend.Caps) (*spec.Variant, error) {
	for _, v := range Kernel.Variants {
		if v.Met(caps) {
			return v, nil
		}
	}
	return nil, fmt.Errorf("dense copy kernel: the device runs none of its variants: %w", backend.ErrUnsupported)
}

// Launch says how a variant runs op.
func Launch(v *spec.Variant, op Op) (spec.Launch, error) {
	lines, length := op.Rows, op.Cols
	if op.Dst.ColMajor {
		lines, length = length, lines
	}
	turned := op.Src.ColMajor != op.Dst.ColMajor
	if err := check(v, op, lines, length, turned); err != nil {
		return spec.Launch{}, fmt.Errorf("dense copy of %d×%d: %w", op.Rows, op.Cols, err)
	}
	if n := lines * length; !turned && op.Src.LD == length && op.Dst.LD == length && n <= math.MaxInt32 {
		lines, length = min(1, n), n // one long line
	}
	high, wide := tileLines, tileWords
	words := length
	if v.Code == backend.CodeGo {
		high, wide = cpuLines, cpuElems
	} else if op.Dst.Type != dtype.F32 {
		words = length/2 + 1
	}
	tiles := (words + wide - 1) / wide
	groups, err := spec.Fold(int64((lines+high-1)/high)*int64(tiles), min(1, length))
	if err != nil {
		return spec.Launch{}, fmt.Errorf("dense copy of %d×%d: %w: %w", op.Rows, op.Cols, err, backend.ErrUnsupported)
	}
	swap := uint32(0)
	if turned {
		swap = 1
	}
	return spec.Launch{Groups: groups, Params: spec.Block{}.
		U(uint32(lines), uint32(length), uint32(op.Src.LD), uint32(op.Dst.LD), code(op.Src.Type), code(op.Dst.Type)).
		U(swap, uint32(tiles), groups[0]).
		F(op.Alpha, op.Beta)}, nil
}

// code numbers the element types as the kernels do; others are errors before it is called.
func code(t dtype.Type) uint32 {
	return map[dtype.Type]uint32{dtype.F32: include.F32, dtype.F16: include.F16, dtype.BF16: include.BF16}[t]
}

func check(v *spec.Variant, op Op, lines, length int, turned bool) error {
	const maxLD = 1 << 29 // a line's bytes fit 31 bits
	srcLines, srcLength := lines, length
	if turned {
		srcLines, srcLength = length, lines
	}
	if op.Rows < 0 || op.Cols < 0 {
		return fmt.Errorf("negative size")
	}
	for _, m := range []struct {
		Layout
		name          string
		lines, length int
	}{{op.Src, "source", srcLines, srcLength}, {op.Dst, "destination", lines, length}} {
		switch {
		case m.Type != dtype.F16 && m.Type != dtype.BF16 && m.Type != dtype.F32:
			return fmt.Errorf("%s of type %v", m.name, m.Type)
		case m.LD < m.length:
			return fmt.Errorf("%s with a leading dimension of %d, at least %d is needed", m.name, m.LD, m.length)
		case m.LD > maxLD || m.lines > math.MaxInt32:
			return fmt.Errorf("%s of %d lines, %d apart (at most %d): %w", m.name, m.lines, m.LD, maxLD, backend.ErrUnsupported)
		case v.Code == backend.CodeWGSL && int64(m.lines)*int64(m.LD) > math.MaxUint32:
			return fmt.Errorf("%s of %d·%d elements, a binding's words are numbered in 32 bits: %w", m.name, m.lines, m.LD, backend.ErrUnsupported)
		}
	}
	return nil
}
