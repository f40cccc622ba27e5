// Package include has source text that kernels share. half.* convert between element types, fixed.* compute RFX-p in
// integers, epilogue.* apply a bias and an activation, f64.* do both in f64, addr.glsl computes 64-bit addresses,
// panel* multiply panels of rows that share columns, fours.wgsl is for kernels whose invocations have four columns,
// operands.glsl reads A and B, quantised.* convert 8-bit codes to numbers, repair.glsl and nonfinite.wgsl are the
// finite repair. The first comment of each other file says its purpose.
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

// ResiduesWGSL is residues.wgsl.
//
//go:embed residues.wgsl
var ResiduesWGSL string

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

// WGSL returns the defines that sources for scalar units share, for elements of type t, and more defines, given as
// names and values.
func WGSL(t dtype.Type, more ...string) map[string]string {
	defines := map[string]string{"ELEM": Define(t), "HALF": HalfWGSL, "NONFINITE": NonFiniteWGSL, "FOURS": FoursWGSL}
	for i := 0; i < len(more); i += 2 {
		defines[more[i]] = more[i+1]
	}
	return defines
}

// Quant returns the value of the define QUANT for a kind of quantised values.
func Quant(kind dtype.Type) string {
	if kind == dtype.E4M3 {
		return "2"
	}
	return "1"
}

// ExchangeBytes returns the bytes of shared memory that cluster_split_k.cuh's Exchange needs in each CTA, for tiles of
// rows × cols whose sums are split among `splits` CTAs.
func ExchangeBytes(rows, cols, splits uint32) uint32 {
	own := (cols/16 + splits - 1) / splits // pairs of tiles of 8 columns that a CTA totals
	return (splits - 1) * own * 2 * (rows / 16) * 512
}

// Element types, as kernels' parameters and defines number them.
const (
	F32 = iota
	F16
	BF16
	F64
)

// Number returns the number of the type in which elements of type t are stored. tf32 is stored as f32.
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

// Define returns the value of the define ELEM for elements of type t.
func Define(t dtype.Type) string { return fmt.Sprint(Number(t)) }
