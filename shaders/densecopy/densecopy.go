// Package densecopy copies dense matrices on a device: strided, transposed, converted between element
// types, scaled and added to what is there, with an epilogue. It brings B and C into the form that the multiplying
// kernels take, and back.
//
// The matrices are seen in the order of dst's memory: `lines` lines (rows, or columns of a
// column-major matrix) of `len` elements, ldd apart. Each invocation writes whole 32-bit words of
// dst, so that 16-bit elements need no feature and no two invocations touch a word. A word may hold
// the end of a line and padding, which keeps its value, or, where lines follow each other without
// padding and have an odd length, the end of a line and the start of the next: it belongs to the
// former.
//
// A workgroup does a tile of 1024 words. Where src and dst differ in order, it is 32 words of 32
// lines, and is first brought into shared memory, reading along src's lines; else it is as long as
// the lines allow.
//
// Variants of F64 do the same where src or dst has elements of 64 bits: the bias, alpha and beta are f64 then, and a
// word of dst that holds one element is as wide.
//
// Rounding is to nearest even, overflow gives an infinity, NaN stays NaN; with alpha 1 and beta 0, no
// arithmetic but that of an epilogue touches the values.
package densecopy

import (
	"embed"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Layout says how a dense matrix lies in a buffer.
type Layout struct {
	Type     dtype.Type // F16, BF16, F32 or F64
	LD       int        // elements from one row (column, if ColMajor) to the next
	First    int        // of the source: the element of its buffer that the matrix begins with
	ColMajor bool
	Aligned  bool // its lines begin at multiples of 16 bytes, and all elements up to the leading dimension are there
}

// Op is dst = Alpha·src + Beta·dst for matrices of Rows×Cols, with an epilogue. dst is not read where Beta is 0.
type Op struct {
	Rows, Cols  int
	Src, Dst    Layout
	Alpha, Beta float64
	Epilogue    spec.Epilogue
}

//go:embed kernel.wgsl
var files embed.FS

// Program is the table of the copy kernel. It has no Encode; see Launch.
var Program = &spec.Program{
	Name: "densecopy", Args: spec.Args("src u32", "bias f32", "dst u32 written"), Params: spec.Params[params](),
	Files: files,
	Variants: []*spec.Variant{
		spec.PTX("cuda", spec.Variant{Entry: "densecopy", Local: local}),
		spec.SPIRV("vulkan", spec.Variant{Local: local, Need: spec.Need{Shared: shared}}),
		spec.WGSL("webgpu", spec.Variant{
			Local: local, Need: spec.Need{Shared: shared},
			Unit: spec.Unit{Defines: map[string]string{"HALF": include.HalfWGSL, "EPILOGUE": include.EpilogueWGSL}},
		}),
		spec.Go("cpu", dtype.F32, group(single)),
		spec.PTX("cuda_f64", spec.Variant{In: dtype.F64, Entry: "densecopy", Local: local, Need: spec.Need{F64: true},
			Unit: spec.Unit{Source: "double.cu"}}),
		spec.SPIRV("vulkan_f64", spec.Variant{
			In: dtype.F64, Local: local, Need: spec.Need{F64: true, Shared: 65 * 33 * 8},
			Unit: spec.Unit{Source: "double.comp"},
		}),
		spec.Go("cpu_f64", dtype.F64, group(double)),
		transposing,
	},
}

// params is the parameter block. A line of dst is len elements that lie side by side.
type params struct {
	lines, len  uint32
	first       uint32 // element of src
	lds, ldd    uint32
	stype       uint32 // type of src: 0 f32, 1 f16, 2 bf16, 3 f64
	store       uint32 // type of dst and epilogue (spec.Problem.StoreWord); a line of dst counts as a row
	turned      uint32 // 1: src's lines run across dst's
	shift       uint32 // a tile has 1<<shift words of each of 1024>>shift lines; not on the CPU
	tiles       uint32 // along a line
	width       uint32 // of the grid in x
	alpha, beta float32
}

// local is a workgroup, shared the bytes of its tile of src: up to 65×32 elements of 32 bits, with a
// column of padding.
var local = [3]uint32{32, 4, 1}

const shared = 65 * 33 * 4

// transposing is the variant for the transpose of aligned matrices of 16-bit elements.
var transposing = spec.PTX("cuda_transpose", spec.Variant{Entry: "densecopy", Local: local, Need: spec.Need{Arch: 90},
	Unit: spec.Unit{Source: "transpose.cu", Arch: "compute_90"}})

// transposeSide is the lines and the elements of a line of its tile.
const transposeSide = 64

// Suited returns the fastest variant of a device for an operation.
func Suited(caps backend.Caps, op Op) (*spec.Variant, error) {
	if transposing.Met(caps) && transposes(op) {
		return transposing, nil
	}
	return Variant(caps, op.Src.Type, op.Dst.Type)
}

// transposes reports whether variant transposing computes an operation.
func transposes(op Op) bool {
	src, dst := op.Src, op.Dst
	return src.Type == dst.Type && src.Type.Size() == 2 && src.Aligned && dst.Aligned &&
		src.ColMajor != dst.ColMajor && op.Alpha == 1 && op.Beta == 0 && op.Epilogue.None() && src.First == 0
}

// Variant returns the variant that a device runs for matrices of some types: one of F64 where one of these is.
func Variant(caps backend.Caps, types ...dtype.Type) (*spec.Variant, error) {
	if slices.Contains(types, dtype.F64) {
		return Program.First(caps, dtype.F64)
	}
	return Program.First(caps, dtype.F32)
}

// Launch says how a variant runs op. src and dst must not overlap.
func Launch(v *spec.Variant, op Op) (spec.Launch, error) {
	x, err := newView(v, op)
	if err != nil {
		return spec.Launch{}, fmt.Errorf("dense copy of %d×%d: %w", op.Rows, op.Cols, err)
	}
	shift, high, wide, along := 5, cpuLines, cpuElems, x.len
	if v == transposing {
		return launchTranspose(op, x)
	}
	if v.Code != backend.CodeGo {
		if op.Dst.Type.Size() == 2 {
			along = x.len/2 + 1
		}
		if !x.turned {
			shift = min(bits.Len(uint(max(along-1, 0))), 10)
		}
		high, wide = 1024>>shift, 1<<shift
	}
	tiles := spec.Ceil(along, wide)
	groups, err := spec.Fold(int64(spec.Ceil(x.lines, high))*int64(tiles), min(1, x.len))
	if err != nil {
		return spec.Launch{}, fmt.Errorf("dense copy of %d×%d: %w", op.Rows, op.Cols, err)
	}
	stored := spec.Problem{Out: op.Dst.Type, Epilogue: x.epilogue}
	p := params{
		lines: uint32(x.lines), len: uint32(x.len), first: uint32(op.Src.First), lds: uint32(x.lds), ldd: uint32(x.ldd),
		stype: include.Number(op.Src.Type), store: stored.StoreWord(),
		shift: uint32(shift), tiles: uint32(tiles), width: groups[0], alpha: float32(op.Alpha), beta: float32(op.Beta),
	}
	if x.turned {
		p.turned = 1
	}
	return spec.Launch{Passes: []spec.Pass{{Variant: v, Groups: groups, Params: spec.BlockFor(v, p, op.Alpha, op.Beta)}}},
		nil
}

// launchTranspose is Launch for variant transposing.
func launchTranspose(op Op, x view) (spec.Launch, error) {
	if !transposes(op) {
		return spec.Launch{}, fmt.Errorf("dense copy of %d×%d: not the transpose of an aligned matrix of 16 bits: %w", op.Rows,
			op.Cols, backend.ErrUnsupported)
	}
	tiles := spec.Ceil(x.len, transposeSide)
	groups, err := spec.Fold(int64(spec.Ceil(x.lines, transposeSide))*int64(tiles), 1)
	if err != nil {
		return spec.Launch{}, fmt.Errorf("dense copy of %d×%d: %w", op.Rows, op.Cols, err)
	}
	p := params{lines: uint32(x.lines), len: uint32(x.len), lds: uint32(x.lds), ldd: uint32(x.ldd), turned: 1,
		tiles: uint32(tiles), width: groups[0], alpha: 1}
	return spec.Launch{Passes: []spec.Pass{{Variant: transposing, Groups: groups, Params: spec.Block(p)}}}, nil
}

// view is an Op in the order of dst's memory, with lines as long as can be.
type view struct {
	lines, len, lds, ldd int
	turned               bool          // src's lines run across dst's
	epilogue             spec.Epilogue // lines being rows
}

func newView(v *spec.Variant, op Op) (view, error) {
	x := view{lines: op.Rows, len: op.Cols, lds: op.Src.LD, ldd: op.Dst.LD, turned: op.Src.ColMajor != op.Dst.ColMajor,
		epilogue: op.Epilogue}
	if op.Dst.ColMajor {
		x.lines, x.len = x.len, x.lines
		x.epilogue.Bias = [...]spec.Bias{spec.NoBias: spec.NoBias, spec.RowBias: spec.ColBias,
			spec.ColBias: spec.RowBias}[op.Epilogue.Bias]
	}
	if err := check(v, op, x); err != nil {
		return x, err
	}
	if x.turned && x.len == 1 { // single elements, side by side in src
		x.turned, x.lds = false, 1
	}
	if n := x.lines * x.len; !x.turned && op.Epilogue.Bias == spec.NoBias && x.lds == x.len && x.ldd == x.len &&
		n <= 1<<30 {
		x.lines, x.len, x.lds, x.ldd = min(1, n), n, n, n
	}
	return x, nil
}

func check(v *spec.Variant, op Op, x view) error {
	const maxLD = 1 << 29    // a line's bytes fit 31 bits
	const maxFirst = 1 << 30 // that of the last line and an element of it, too
	srcLines, srcLength := x.lines, x.len
	if x.turned {
		srcLines, srcLength = x.len, x.lines
	}
	switch {
	case op.Rows < 0 || op.Cols < 0:
		return fmt.Errorf("negative size")
	case op.Src.First < 0 || op.Src.First > maxFirst || op.Dst.First != 0:
		return fmt.Errorf("first elements %d of the source (at most %d) and %d of the destination (0): %w", op.Src.First, maxFirst, op.Dst.First, backend.ErrUnsupported)
	}
	for _, m := range []struct {
		Layout
		name          string
		lines, length int
	}{{op.Src, "source", srcLines, srcLength}, {op.Dst, "destination", x.lines, x.len}} {
		switch {
		case m.Type != dtype.F16 && m.Type != dtype.BF16 && m.Type != dtype.F32 && (m.Type != dtype.F64 || v.In != dtype.F64):
			return fmt.Errorf("%s of type %v", m.name, m.Type)
		case m.LD < m.length:
			return fmt.Errorf("%s with a leading dimension of %d, at least %d is needed", m.name, m.LD, m.length)
		case m.LD > maxLD || m.lines > math.MaxInt32:
			return fmt.Errorf("%s of %d lines, %d apart (at most %d): %w", m.name, m.lines, m.LD, maxLD, backend.ErrUnsupported)
		case v.Code == backend.CodeWGSL && int64(m.First)+int64(m.lines)*int64(m.LD) > math.MaxUint32:
			return fmt.Errorf("%s of %d·%d elements, a binding's words are numbered in 32 bits: %w", m.name, m.lines, m.LD, backend.ErrUnsupported)
		}
	}
	return nil
}
