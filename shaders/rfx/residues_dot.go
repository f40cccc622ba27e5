// The variants for residues on WebGPU, by packed dot products of 8-bit integers.

package rfx

import (
	"fmt"

	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

// dotTile is the rows and columns of a workgroup of residues.wgsl, dotLocal its invocations, of 4×4 sums each, dotLine
// the words of a line in workgroup memory.
const (
	dotTile  = 64
	dotLocal = dotTile * dotTile / 16
	dotLine  = 9
)

// dotSums is residues.wgsl.
func dotSums(digits uint32) *spec.Variant {
	return spec.WGSL("webgpu_"+pick(digits == 1, "digits", "residues"), spec.Variant{
		Local: spec.Line(dotLocal), Need: spec.Need{Dot4: true, Shared: 2 * dotTile * dotLine * 4},
		Consts: []spec.Const{
			spec.Define("ROWS", dotTile), spec.Define("COLS", dotTile), spec.Define("LEFT", dotTile*dotLine),
			spec.Define("RIGHT", dotTile*dotLine), spec.Define("DIGITS", digits),
		},
		Unit: spec.Unit{Source: "residues.wgsl", Defines: map[string]string{"RESIDUES": include.ResiduesWGSL}},
	})
}

// byDotResidues are the variants: combine.wgsl after these sums.
func byDotResidues() (vs []*spec.Variant) {
	sums := [2]*spec.Variant{dotSums(0), dotSums(1)}
	for _, p := range rfx.All {
		digits := spec.Flag(p == digitsAt)
		v := spec.WGSL(fmt.Sprintf("webgpu_residues_p%d", p), spec.Variant{
			Local: spec.Line(local), Need: sums[digits].Need, Before: sums[digits],
			Consts: []spec.Const{spec.Define("BITS", uint32(p)), spec.Define("LIMBS", uint32(p.Limbs())),
				spec.Define("DIGITS", digits)},
			Unit: spec.Unit{Source: "combine.wgsl", Defines: map[string]string{
				"HALF": include.HalfWGSL, "FIXED": include.FixedWGSL, "STORE": storeWGSL}},
		})
		sizes{p: p, residues: true, slices: true}.sized(v, residuesKind, dotTile)
		v.Tile.Rows = dotTile
		vs = append(vs, v)
	}
	return vs
}
