// Package shaders lists the kernels. Adding one is a folder below this package and a line here.
//
// What is compiled ahead of time lies in package compiled, which tools/shadergen writes.
package shaders

//go:generate go run github.com/spmmrun/spmm/tools/shadergen

import (
	"github.com/spmmrun/spmm/shaders/csr"
	"github.com/spmmrun/spmm/shaders/cvse"
	"github.com/spmmrun/spmm/shaders/dense"
	"github.com/spmmrun/spmm/shaders/densecopy"
	"github.com/spmmrun/spmm/shaders/hrpb"
	"github.com/spmmrun/spmm/shaders/jigsaw"
	"github.com/spmmrun/spmm/shaders/lanestream"
	"github.com/spmmrun/spmm/shaders/nm"
	"github.com/spmmrun/spmm/shaders/peak"
	"github.com/spmmrun/spmm/shaders/quantise"
	"github.com/spmmrun/spmm/shaders/requantise"
	"github.com/spmmrun/spmm/shaders/rfx"
	"github.com/spmmrun/spmm/shaders/rowcopy"
	"github.com/spmmrun/spmm/shaders/sddmm"
	"github.com/spmmrun/spmm/shaders/sddmmrfx"
	"github.com/spmmrun/spmm/shaders/softmax"
	"github.com/spmmrun/spmm/shaders/sparse24r"
	"github.com/spmmrun/spmm/shaders/spec"
	"github.com/spmmrun/spmm/shaders/tiledcsr"
	"github.com/spmmrun/spmm/shaders/values"
)

// Formats returns the formats that there are kernels for.
func Formats() []*spec.Format {
	return []*spec.Format{csr.Format, cvse.Format, hrpb.Format, jigsaw.Format, lanestream.Format, nm.Format,
		sparse24r.Format, tiledcsr.Format, dense.Format}
}

// DenseCopy copies, transposes and converts dense matrices on a device.
var DenseCopy = densecopy.Program

// RowCopy copies rows of dense matrices on a device, to or from places that are listed.
var RowCopy = rowcopy.Program

// Sampled computes products of dense matrices at the entries of a pattern.
var Sampled = sddmm.Program

// SampledReproducible does so in the fixed point of reproducible products.
var SampledReproducible = sddmmrfx.Program

// Softmax normalises the rows of a sparse matrix's values.
var Softmax = softmax.Program

// Values brings new values to their places in a packed matrix.
var Values = values.Program

// Quantise brings dense matrices to the fixed point of reproducible products.
var Quantise = quantise.Program

// Requantise brings a matrix's new values to the fixed point of reproducible products.
var Requantise = requantise.Program

// Reproducible multiplies what Quantise made with a matrix in any format, lowered to rows or to panels of rows.
var Reproducible = rfx.Format

// All returns every kernel that has compiled code, for tools and tests.
func All() []*spec.Program {
	var ps []*spec.Program
	for _, f := range Formats() {
		ps = append(ps, f.Program)
	}
	return append(ps, DenseCopy, RowCopy, Sampled, SampledReproducible, Softmax, Values, Quantise, Requantise,
		Reproducible.Program, peak.Program)
}
