// Package peak measures what a device can do at most: copy a buffer, read from cache, multiply and
// add in f32 and f64, and on matrix units. Package plan bounds the time of a multiplication by it.
package peak

import (
	"embed"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/shaders/spec"
)

//go:embed *.wgsl
var files embed.FS

// Kind is a variant's measurement.
type Kind uint32

// The kinds; a variant's constant KIND is one of them.
const (
	Copy   Kind = iota + 1 // dst = src, WIDTH bytes a step
	Read                   // reads src's first span elements of WIDTH bytes over and over
	FMA                    // f32 multiply-adds in registers
	Matrix                 // matrix multiply-adds in registers
	FMA64                  // f64 multiply-adds in registers; on the CPU, of what the first-level cache holds
)

// Program is the table. Every invocation takes rounds steps; a step of Read goes to the next element
// modulo span (a power of two).
var Program = &spec.Program{
	Name:     "peak",
	Args:     spec.Args("src T", "dst T written"),
	Params:   spec.Params[params](),
	Variants: variants(),
	Files:    files,
}

// params is the parameter block.
type params struct{ rounds, span uint32 }

// Local is the invocations of a workgroup of all but Matrix variants on a GPU.
const Local = 256

// Per step of an invocation, FMA and FMA64 do fmas multiply-adds and Matrix a number of matrix operations.
const (
	fmas      = 32
	matrixOps = 8
)

// Variants returns the variants of a kind that a device runs, the preferred first.
func Variants(c backend.Caps, k Kind) []*spec.Variant {
	var vs []*spec.Variant
	for _, v := range Program.Variants {
		if Kind(v.Const("KIND")) == k && v.Met(c) {
			vs = append(vs, v)
		}
	}
	return vs
}

// Launch runs groups workgroups of rounds steps. Copy needs buffers of an element for each step of each
// invocation, the others src of span elements and dst of Output bytes.
func Launch(v *spec.Variant, groups, rounds, span uint32) spec.Pass {
	return spec.Pass{Variant: v, Groups: [3]uint32{groups, 1, 1}, Params: spec.BlockFor(v, params{rounds, span}, 1, 0)}
}

// Output is the bytes that variants other than Copy write: an element for each invocation.
func Output(v *spec.Variant, groups uint32) int64 {
	return int64(groups) * int64(v.Local[0]) * int64(max(v.Const("WIDTH"), 16))
}

// Done is the work of a launch of that many workgroups and rounds: bytes moved (Copy: read and written) for Copy and
// Read, floating-point operations for the others.
func Done(v *spec.Variant, groups, rounds uint32) float64 {
	steps := float64(groups) * float64(rounds) * float64(v.Local[0])
	switch Kind(v.Const("KIND")) {
	case Copy:
		return 2 * steps * float64(v.Const("WIDTH"))
	case Read:
		return steps * float64(v.Const("WIDTH"))
	case FMA, FMA64:
		return 2 * steps * fmas
	}
	s := v.Need.Shapes[0]
	subgroups := steps / float64(v.Const("SUBGROUP"))
	return 2 * subgroups * matrixOps * float64(s.M) * float64(s.N) * float64(s.K)
}
