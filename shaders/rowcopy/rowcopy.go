// Package rowcopy copies rows of a row-major dense matrix on a device, to or from places that a list of row numbers
// names: what ranks exchange is packed and unpacked so.
//
// Rows are copied as they lie, padding included, 16 bytes at a time, whatever their element type. Invocation number t
// copies 16 bytes of row t / quads, so that neighbours read and write side by side.
package rowcopy

import (
	"embed"
	"fmt"
	"math"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/spec"
)

//go:embed kernel.wgsl
var files embed.FS

// Program is the table of the kernel. It has no Encode; see Launch. index is not read where rows follow each other: any
// buffer serves.
var Program = &spec.Program{
	Name: "rowcopy", Args: spec.Args("index u32", "src u32", "dst u32 written"), Params: spec.Params[params](),
	Files: files,
	Variants: []*spec.Variant{
		spec.PTX("cuda", spec.Variant{Entry: "rowcopy", Local: spec.Line(local),
			Consts: []spec.Const{spec.Define("EACH", 4)}}),
		spec.SPIRV("vulkan", spec.Variant{Local: spec.Line(local)}),
		spec.WGSL("webgpu", spec.Variant{Local: spec.Line(local)}),
		spec.Go("cpu", dtype.F32, group),
	},
}

// params is the parameter block.
type params struct {
	items  uint32 // quads of all rows
	quads  uint32 // of 16 bytes in a row
	srcrow uint32 // first row of src
	dstrow uint32 // first row of dst
	place  uint32 // which rows index numbers: 0 none, 1 those of src, 2 those of dst
	width  uint32 // of the grid in x
}

// local is the invocations of a workgroup, cpuItems the quads that one on the CPU copies.
const (
	local    = 256
	cpuItems = 1 << 14
)

// Where says whose rows a list numbers.
type Where int

// The places.
const (
	Nowhere Where = iota // rows follow each other in both
	OfSrc                // row i of dst is row index[i] of src
	OfDst                // row index[i] of dst is row i of src
)

// Op copies Count rows of Bytes bytes each, a multiple of 16. Rows that are not numbered follow each other from row Src
// or Dst on; numbers count from there, too.
type Op struct {
	Count, Bytes, Src, Dst int
	Where                  Where
}

// Variant returns the variant that a device runs.
func Variant(caps backend.Caps) (*spec.Variant, error) { return Program.First(caps, dtype.F32) }

// Launch says how a variant runs op. Rows of src and dst must not be the same memory, nor two numbers of dst alike.
func Launch(v *spec.Variant, op Op) (spec.Launch, error) {
	items := int64(op.Count) * int64(op.Bytes/16)
	switch {
	case op.Count < 0 || op.Bytes < 0 || op.Bytes%16 != 0 || op.Src < 0 || op.Dst < 0 || op.Where < Nowhere ||
		op.Where > OfDst:
		return spec.Launch{}, fmt.Errorf("kernel rowcopy: not possible: %+v", op)
	case op.Count > math.MaxInt32 || op.Src > math.MaxInt32 || op.Dst > math.MaxInt32 || op.Bytes > math.MaxInt32 ||
		items > math.MaxUint32-local*4:
		return spec.Launch{}, fmt.Errorf("kernel rowcopy: %d rows of %d bytes at once: %w", op.Count, op.Bytes,
			backend.ErrUnsupported)
	}
	each := int64(local * max(1, v.Const("EACH")))
	if v.Code == backend.CodeGo {
		each = cpuItems
	}
	groups, err := spec.Fold(spec.Ceil(items, each), 1)
	if err != nil {
		return spec.Launch{}, fmt.Errorf("kernel rowcopy: %w", err)
	}
	p := params{
		items: uint32(items), quads: uint32(op.Bytes / 16), srcrow: uint32(op.Src), dstrow: uint32(op.Dst),
		place: uint32(op.Where), width: groups[0],
	}
	return spec.Launch{Passes: []spec.Pass{{Variant: v, Groups: groups, Params: spec.Block(p)}}}, nil
}
