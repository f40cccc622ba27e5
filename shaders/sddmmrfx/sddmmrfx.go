// Package sddmmrfx computes sampled products in RFX-p's fixed point on a device (package rfx defines it): for each
// entry (i, j) of a pattern the dot product of row i of X and row j of Y, rounded once, which may be scaled by a number
// for each entry and is then rounded again.
//
// The pattern is a list of entries, as in package sddmm. X and Y are row-major, of f32, f16 or bf16. Phases 0 and 1
// find the ranges of the rows of X and of Y. Phase 2 brings elements to integers in the units of their rows as it reads
// them, and adds up the products in 128 bits. Eight lanes share a row or an entry; sums of integers are exact in any
// order.
package sddmmrfx

import (
	"embed"
	"fmt"
	"math"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

//go:embed kernel.wgsl
var files embed.FS

// Program is the table of the kernel. It has no Encode; see Launch. ranges has a word for each row of X and then of Y.
// factors is not read where results are not scaled: any buffer that is only read serves.
var Program = &spec.Program{
	Name: "sddmmrfx",
	Args: spec.Args("rows u32", "cols u32", "x u32", "y u32", "factors u32", "ranges u32 written",
		"s u32 written"),
	Params: spec.Params[params](), Files: files,
	Variants: []*spec.Variant{
		spec.PTX("cuda", spec.Variant{Entry: "sddmmrfx", Local: spec.Line(local)}),
		spec.SPIRV("vulkan", spec.Variant{Local: spec.Line(local), Need: spec.Need{Shared: shared}}),
		spec.WGSL("webgpu", spec.Variant{Local: spec.Line(local), Need: spec.Need{Shared: shared},
			Unit: spec.Unit{Defines: map[string]string{"HALF": include.HalfWGSL, "FIXED": include.FixedWGSL}}}),
		spec.Go("cpu", dtype.F32, group),
	},
}

// params is the parameter block.
type params struct {
	phase    uint32 // 0: ranges of X, 1: of Y, 2: entries
	items    uint32 // of this phase: rows or entries
	k        uint32 // elements of a row of X and Y
	ldx, ldy uint32 // elements from row to row, even
	elem     uint32 // type of X and Y: 0 f32, 1 f16, 2 bf16
	bits     uint32 // p
	base     uint32 // rows of X, where the ranges of Y's begin
	scaled   uint32 // 1: results are multiplied by factors
	width    uint32 // of the grid in x
}

// local is the invocations of a workgroup, lanes those that share an item, shared the bytes in which these meet, and
// cpuItems the items of a workgroup on the CPU.
const (
	local    = 128
	lanes    = 8
	shared   = local * 20
	cpuItems = 256
)

// Op is one sampled product.
type Op struct {
	Entries  int64
	M, N, K  int        // X is M×K, Y is N×K
	Type     dtype.Type // of X and Y
	LDX, LDY int        // elements from row to row, multiples of 8
	P        rfx.P
	Scaled   bool
}

// Variant returns the variant that a device runs.
func Variant(caps backend.Caps) (*spec.Variant, error) { return Program.First(caps, dtype.F32) }

// Launch says how a variant runs op.
func Launch(v *spec.Variant, op Op) (spec.Launch, error) {
	switch {
	case op.P.Check() != nil:
		return spec.Launch{}, op.P.Check()
	case op.Type != dtype.F32 && op.Type != dtype.F16 && op.Type != dtype.BF16:
		return spec.Launch{}, fmt.Errorf("kernel sddmmrfx: elements of type %v: %w", op.Type, backend.ErrUnsupported)
	case op.Entries < 0 || op.M < 0 || op.N < 0 || op.K < 0 || op.LDX < op.K || op.LDY < op.K || op.LDX%8 != 0 ||
		op.LDY%8 != 0:
		return spec.Launch{}, fmt.Errorf("kernel sddmmrfx: not possible: %+v", op)
	case op.Entries > math.MaxUint32-local || op.M > math.MaxInt32 || op.N > math.MaxInt32 || op.LDX > spec.MaxLD ||
		op.LDY > spec.MaxLD:
		return spec.Launch{}, fmt.Errorf("kernel sddmmrfx: %+v: %w", op, backend.ErrUnsupported)
	}
	each := int64(local / lanes)
	if v.Code == backend.CodeGo {
		each = cpuItems
	}
	var l spec.Launch
	for phase, items := range []int64{int64(op.M), int64(op.N), op.Entries} {
		if items == 0 {
			continue
		}
		groups, err := spec.Fold(spec.Ceil(items, each), 1)
		if err != nil {
			return l, fmt.Errorf("kernel sddmmrfx: %w", err)
		}
		p := params{phase: uint32(phase), items: uint32(items), k: uint32(op.K), ldx: uint32(op.LDX), ldy: uint32(op.LDY),
			elem: include.Number(op.Type), bits: uint32(op.P), base: uint32(op.M), scaled: spec.Flag(op.Scaled),
			width: groups[0]}
		l.Passes = append(l.Passes, spec.Pass{Variant: v, Groups: groups, Params: spec.Block(p)})
	}
	return l, nil
}
