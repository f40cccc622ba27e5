// Package sddmm computes sampled products on a device: for each entry (i, j) of a pattern the dot product of row i of X
// and row j of Y, S = pattern ⊙ (X·Yᵀ), which may be scaled by a number for each entry.
//
// The pattern is a list of entries, their rows and columns, in the order in which S holds the results, so that work is
// balanced whatever the rows' lengths. X and Y are row-major, of the variant's type. S and the scale are vectors of
// f32, or f64 in variants of F64.
//
// On GPUs eight lanes compute eight consecutive entries. A lane has every eighth chunk of 16 bytes of the rows, and a
// partial sum of each entry; these are added at the end so that each lane has one entry's sum. On the CPU a workgroup
// is a run of entries. The order of a sum depends on K alone: it is the same wherever the entry lies in the pattern.
package sddmm

import (
	"embed"
	"fmt"
	"math"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/host"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

//go:embed kernel.wgsl
var files embed.FS

// Program is the table of the kernel. It has no Encode; see Launch. scale is not read where there is none: any buffer
// that is only read serves.
var Program = &spec.Program{
	Name:   "sddmm",
	Args:   spec.Args("rows u32", "cols u32", "x T", "y T", "scale f32", "s f32 written"),
	Params: spec.Params[params](), Files: files, Variants: variants(),
}

// params is the parameter block.
type params struct {
	entries  uint32
	k        uint32 // elements of a row of X and Y
	ldx, ldy uint32 // elements from row to row, multiples of 8
	scaled   uint32 // 1: results are multiplied by scale
	width    uint32 // of the grid in x
}

// local is the invocations of a workgroup and its entries, cpuEntries the entries of one on the CPU.
const (
	local      = 128
	cpuEntries = 1024
)

// variants returns the table: f32, which serves tf32 too, f16, bf16 and f64.
func variants() []*spec.Variant {
	var vs []*spec.Variant
	for _, t := range []dtype.Type{dtype.F32, dtype.F16, dtype.BF16} {
		vs = append(vs,
			spec.PTX("cuda_"+t.String(), spec.Variant{In: t, Entry: "sddmm", Local: spec.Line(local),
				Unit: spec.Unit{Defines: map[string]string{"ELEM": include.Define(t)}}}),
			spec.SPIRV("vulkan_"+t.String(), spec.Variant{In: t, Local: spec.Line(local), Need: spec.Need{Shared: 8 * 129 * 4},
				Unit: spec.GLSL("kernel.comp", "vulkan", t)}),
			spec.WGSL("webgpu_"+t.String(), spec.Variant{In: t, Local: spec.Line(local), Need: spec.Need{Shared: 8 * 129 * 4},
				Unit: spec.Unit{Defines: map[string]string{"ELEM": include.Define(t)}}}),
			spec.Go("cpu_"+t.String(), t, groupOf(include.Number(t), host.Widen)))
	}
	double := map[string]string{"DOUBLE": "1"}
	return append(vs,
		spec.PTX("cuda_f64", spec.Variant{In: dtype.F64, Entry: "sddmm", Local: spec.Line(local), Need: spec.Need{F64: true},
			Unit: spec.Unit{Defines: double}}),
		spec.SPIRV("vulkan_f64", spec.Variant{In: dtype.F64, Local: spec.Line(local),
			Need: spec.Need{F64: true, Shared: 8 * 129 * 8}, Unit: spec.Unit{Defines: double}}),
		spec.Go("cpu_f64", dtype.F64, groupOf(include.F64, host.Widen64)))
}

// Op is one sampled product.
type Op struct {
	Entries  int64
	K        int // elements of a row of X and Y
	LDX, LDY int // elements from row to row, multiples of 8
	Scaled   bool
}

// Variant returns the variant that a device runs for X and Y of a type.
func Variant(caps backend.Caps, t dtype.Type) (*spec.Variant, error) {
	return Program.First(caps, t.Storage())
}

// Launch says how a variant runs op.
func Launch(v *spec.Variant, op Op) (spec.Launch, error) {
	switch {
	case op.Entries < 0 || op.K < 0 || op.LDX < op.K || op.LDY < op.K || op.LDX%8 != 0 || op.LDY%8 != 0:
		return spec.Launch{}, fmt.Errorf("kernel sddmm: not possible: %+v", op)
	case op.Entries > math.MaxUint32-local || op.LDX > spec.MaxLD || op.LDY > spec.MaxLD:
		return spec.Launch{}, fmt.Errorf("kernel sddmm: %d entries, rows %d and %d elements apart: %w", op.Entries, op.LDX,
			op.LDY, backend.ErrUnsupported)
	}
	each := int64(local)
	if v.Code == backend.CodeGo {
		each = cpuEntries
	}
	groups, err := spec.Fold(spec.Ceil(op.Entries, each), 1)
	if err != nil {
		return spec.Launch{}, fmt.Errorf("kernel sddmm: %w", err)
	}
	p := params{entries: uint32(op.Entries), k: uint32(op.K), ldx: uint32(op.LDX), ldy: uint32(op.LDY),
		scaled: spec.Flag(op.Scaled), width: groups[0]}
	return spec.Launch{Passes: []spec.Pass{{Variant: v, Groups: groups, Params: spec.BlockFor(v, p, 0, 0)}}}, nil
}
