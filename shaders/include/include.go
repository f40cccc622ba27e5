// Package include holds source text that kernels share: half.cuh, half.glsl and half.wgsl convert between element
// types, fixed.cuh, fixed.glsl and fixed.wgsl do RFX-p's arithmetic in integers, epilogue.cuh, epilogue.glsl and
// epilogue.wgsl apply a bias and an activation, f64.cuh and f64.glsl do both in f64, addr.glsl steps through buffers of
// any size, panel* multiply panels of rows that share columns, fours.wgsl is text of kernels whose invocations have
// four columns, operands.glsl reads A and B, quantised.* turn codes of 8 bits into numbers, repair.glsl and
// nonfinite.wgsl compute outputs that are not finite again. The others are fragments of kernels, which say themselves
// what they are.
//
// CUDA C++ and GLSL sources include the files by their relative path; WGSL has no includes, so a
// variant puts the text into its template through Unit.Defines.
package include

import (
	_ "embed"
	"fmt"

	"github.com/spmmrun/spmm/dtype"
)

// HalfWGSL is half.wgsl.
//
//go:embed half.wgsl
var HalfWGSL string

// EpilogueWGSL is epilogue.wgsl.
//
//go:embed epilogue.wgsl
var EpilogueWGSL string

// FixedWGSL is fixed.wgsl.
//
//go:embed fixed.wgsl
var FixedWGSL string

// PanelWGSL is panel.wgsl.
//
//go:embed panel.wgsl
var PanelWGSL string

// QuantisedWGSL is quantised.wgsl.
//
//go:embed quantised.wgsl
var QuantisedWGSL string

// NonFiniteWGSL is nonfinite.wgsl behind epilogue.wgsl, which it needs.
var NonFiniteWGSL = EpilogueWGSL + "\n" + nonFinite

//go:embed nonfinite.wgsl
var nonFinite string

// FoursWGSL is fours.wgsl, templates that others refer to.
//
//go:embed fours.wgsl
var FoursWGSL string

// WGSL is the defines that sources for float units have in common, for elements of type t, and more, names and values.
func WGSL(t dtype.Type, more ...string) map[string]string {
	defines := map[string]string{"ELEM": Define(t), "HALF": HalfWGSL, "NONFINITE": NonFiniteWGSL, "FOURS": FoursWGSL}
	for i := 0; i < len(more); i += 2 {
		defines[more[i]] = more[i+1]
	}
	return defines
}

// Quant is the value of the define QUANT for quantised values of a kind.
func Quant(kind dtype.Type) string {
	if kind == dtype.E4M3 {
		return "2"
	}
	return "1"
}

// ExchangeBytes is the shared memory that cluster_split_k.cuh's Exchange takes of a block, for tiles of rows × cols,
// each block adding a partial sum.
func ExchangeBytes(rows, cols, parts uint32) uint32 {
	own := (cols/16 + parts - 1) / parts // pairs of tiles of 8 columns that a block adds up
	return (parts - 1) * own * 2 * (rows / 16) * 512
}

// Element types as kernels' parameters and defines number them.
const (
	F32 = iota
	F16
	BF16
	F64
)

// Number returns the number of the type that elements of type t are stored in: tf32 is stored as f32.
func Number(t dtype.Type) uint32 {
	switch t {
	case dtype.F16:
		return F16
	case dtype.BF16:
		return BF16
	case dtype.F64:
		return F64
	}
	return F32
}

// Define is the value of the define ELEM for elements of type t.
func Define(t dtype.Type) string { return fmt.Sprint(Number(t)) }
