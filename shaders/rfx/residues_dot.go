// The variants for residues by packed dot products of 8-bit integers, on WebGPU, and on Vulkan for devices without
// matrix units.

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

// byDotResidues are the variants on WebGPU: combine.wgsl after these sums.
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

// dots is a tile of dot_tile.glsl.
type dots struct{ rows, cols, step uint32 }

// dotTiles are the tiles on Vulkan.
var dotTiles = []dots{{rows: 128, cols: 64, step: 32}}

// sharedOctets is the shared memory of the stage buffer, in units of 16 bytes.
func (d dots) sharedOctets() uint32 { return (d.rows + d.cols) / 8 * (d.step/2 + 1) }

// sums is residues.comp by dot products. An invocation has 8×8 sums.
func (d dots) sums(digits uint32) *spec.Variant {
	constant := func(name string, id int, x uint32) spec.Const { return spec.Const{Name: name, ID: id, Value: x} }
	return spec.SPIRV(fmt.Sprintf("vulkan_dot_%s_n%d", pick(digits == 1, "digits", "residues"), d.cols), spec.Variant{
		Need:  spec.Need{Dot4: true, Shared: 16 * d.sharedOctets()},
		Local: spec.Line(d.rows * d.cols / 64),
		Consts: []spec.Const{
			constant("LOCAL", 0, d.rows*d.cols/64), constant("ROWS", 6, d.rows), constant("COLS", 7, d.cols),
			constant("STEP", 8, d.step), constant("SHARED", 9, d.sharedOctets()), constant("DIGITS", 10, digits),
			spec.Define("DOTS", 1),
		},
		Unit: spec.Unit{Source: "residues.comp", Blob: "dot_residues.spv"},
	})
}

// byVulkanDots are the variants on Vulkan: combine.comp after these sums.
func byVulkanDots() (vs []*spec.Variant) {
	for _, d := range dotTiles {
		for _, p := range rfx.All {
			vs = append(vs, combined(fmt.Sprintf("vulkan_dot_residues_p%d_n%d", p, d.cols), p,
				d.sums(spec.Flag(p == digitsAt)), d.rows, d.cols))
		}
	}
	return vs
}
