// Package softmax replaces the numbers of each row of a sparse matrix by their softmax, exp(x − max)/Σ exp(x − max), in
// place on a device. It is the epilogue of sampled products that graph attention needs.
//
// A row is a span of numbers that lie side by side. Long spans have a whole workgroup each, the others some lanes: two
// launches. Lanes take numbers in turn, and their sums are added in an order that depends on the span's length and its
// lanes alone. exp is that of activations (docs/bound.md), in f32, or f64 in variants of F64.
package softmax

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

// Program is the table of the kernel. It has no Encode; see Launch. spans has the first number of each span, and the
// last one's plus 1.
var Program = &spec.Program{
	Name: "softmax", Args: spec.Args("spans u32", "s f32 written"), Params: spec.Params[params](), Files: files,
	Variants: []*spec.Variant{
		spec.PTX("cuda", spec.Variant{Entry: "softmax", Local: spec.Line(local)}),
		spec.SPIRV("vulkan", spec.Variant{Local: spec.Line(local), Need: spec.Need{Shared: 4 * local}}),
		spec.WGSL("webgpu", spec.Variant{Local: spec.Line(local), Need: spec.Need{Shared: 4 * local}}),
		spec.Go("cpu", dtype.F32, groupOf(exp)),
		spec.PTX("cuda_f64", spec.Variant{In: dtype.F64, Entry: "softmax", Local: spec.Line(local),
			Need: spec.Need{F64: true}, Unit: spec.Unit{Defines: map[string]string{"DOUBLE": "1"}}}),
		spec.SPIRV("vulkan_f64", spec.Variant{In: dtype.F64, Local: spec.Line(local),
			Need: spec.Need{F64: true, Shared: 8 * local}, Unit: spec.Unit{Defines: map[string]string{"DOUBLE": "1"}}}),
		spec.Go("cpu_f64", dtype.F64, groupOf(exp64)),
	},
}

// params is the parameter block.
type params struct {
	first uint32 // span
	items uint32 // spans of this launch
	lanes uint32 // of a span: a power of two
	width uint32 // of the grid in x
}

// local is the invocations of a workgroup, few the lanes of a short span, and cpuSpans the spans of a workgroup on the
// CPU.
const (
	local    = 128
	few      = 8
	cpuSpans = 64
)

// Long is the numbers from which on a span is long.
const Long = 256

// Op is the softmax of Short spans that are not long, and of Longs long ones behind them.
type Op struct{ Short, Longs int64 }

// Variant returns the variant that a device runs for numbers of a type.
func Variant(caps backend.Caps, t dtype.Type) (*spec.Variant, error) { return Program.First(caps, t) }

// Launch says how a variant runs op.
func Launch(v *spec.Variant, op Op) (spec.Launch, error) {
	if op.Short < 0 || op.Longs < 0 {
		return spec.Launch{}, fmt.Errorf("kernel softmax: not possible: %+v", op)
	}
	if op.Short > math.MaxInt32 || op.Longs > math.MaxInt32 {
		return spec.Launch{}, fmt.Errorf("kernel softmax: %d rows: %w", op.Short+op.Longs, backend.ErrUnsupported)
	}
	var l spec.Launch
	for _, p := range []params{
		{items: uint32(op.Short), lanes: few}, {first: uint32(op.Short), items: uint32(op.Longs), lanes: local},
	} {
		if p.items == 0 {
			continue
		}
		each := local / int64(p.lanes)
		if v.Code == backend.CodeGo {
			each = cpuSpans
		}
		groups, err := spec.Fold(spec.Ceil(int64(p.items), each), 1)
		if err != nil {
			return l, fmt.Errorf("kernel softmax: %w", err)
		}
		p.width = groups[0]
		l.Passes = append(l.Passes, spec.Pass{Variant: v, Groups: groups, Params: spec.BlockFor(v, p, 0, 0)})
	}
	return l, nil
}

// Spans returns the argument spans for the rows of entries, which ascend: those that are not long, then the long ones.
func Spans(rows []uint32) ([]uint32, Op) {
	var short, long []uint32
	for first := 0; first < len(rows); {
		last := first + 1
		for last < len(rows) && rows[last] == rows[first] {
			last++
		}
		if last-first < Long {
			short = append(short, uint32(first), uint32(last))
		} else {
			long = append(long, uint32(first), uint32(last))
		}
		first = last
	}
	return append(short, long...), Op{Short: int64(len(short) / 2), Longs: int64(len(long) / 2)}
}
