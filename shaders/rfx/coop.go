// The variants for panels on Vulkan's cooperative matrices, in the shapes of 8-bit integers that devices list.

package rfx

import (
	"fmt"
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/spec"
)

// coop is a variant of panel.comp. The panel has as many rows as the matrix operation.
type coop struct {
	spec.MatrixUnit
	swap bool   // Cᵀ = Bᵀ·Aᵀ
	subs uint32 // subgroups of a workgroup
	cols uint32 // columns of a workgroup, at least its invocations: each brings four rows' eight columns a tile, or more
}

var coops = []coop{
	// NVIDIA: the panel on the instruction's n = 8.
	{MatrixUnit: spec.NVIDIAInt, swap: true, subs: 4, cols: 128},
	{MatrixUnit: spec.NVIDIAIntWide, swap: true, subs: 2, cols: 64},
	// AMD, in waves of 32 and of 64.
	{MatrixUnit: spec.AMD32, subs: 2, cols: 64},
	{MatrixUnit: spec.AMD64, subs: 1, cols: 64},
	// Intel.
	{MatrixUnit: spec.IntelInt16, subs: 8, cols: 128},
	{MatrixUnit: spec.IntelInt8, subs: 8, cols: 128},
	// Mesa's driver for CPUs: see variant.
	{MatrixUnit: spec.MesaCPU, swap: true, subs: 4, cols: 64},
}

// rows is the panel's height.
func (c coop) rows() uint32 { return pick(c.swap, c.N, c.M) }

// sharedOctets is the shared memory of digits of B and A, or of sums, in units of 16 bytes: see panel.comp.
func (c coop) sharedOctets(p rfx.P) uint32 {
	s := uint32(p.Bytes())
	return max(s*(c.cols+c.rows())*3, (2*s-1)*c.rows()*(c.cols+4)/4)
}

func (c coop) variant(p rfx.P) *spec.Variant {
	if c.MatrixUnit == spec.MesaCPU && p > rfx.P15 {
		c.cols = 32 // one tile a subgroup: the driver compiles two for half a minute
	}
	constant := func(name string, id int, x uint32) spec.Const { return spec.Const{Name: name, ID: id, Value: x} }
	narrow := spec.Flag(c.K == 8)
	return sizes{p: p, v: int(c.rows())}.sized(spec.SPIRV(fmt.Sprintf("vulkan_panels_%v_p%d", c.MatrixUnit, p), spec.Variant{
		Need: spec.Need{
			Int8: true, Shared: 16 * c.sharedOctets(p),
			Shapes: []backend.MatrixShape{c.Shape(dtype.S8)},
		},
		Local: spec.Line(c.Sub * c.subs), Sub: c.Sub, Matrix: true,
		Consts: []spec.Const{
			constant("LOCAL", 0, c.Sub*c.subs), constant("V", 1, c.rows()), constant("TM", 2, c.M), constant("TN", 3, c.N),
			constant("TK", 4, c.K),
			constant("SWAP", 5, spec.Flag(c.swap)), constant("COLS", 6, c.cols), constant("SUBS", 7, c.subs),
			constant("SHARED", 8, c.sharedOctets(p)), spec.Define("BITS", uint32(p)), spec.Define("WARPS", 1),
			spec.Define("NARROW", narrow),
		},
		Unit:  spec.Unit{Source: "panel.comp", Blob: fmt.Sprintf("coop%s_p%d.spv", pick(narrow == 1, "_k8", ""), p)},
		Shape: uint32(1),
	}), panelsKind, c.cols)
}

// Coops returns these variants made over for a subgroup size and for a tile of columns a subgroup, so that a driver
// that computes any tile can run those of all vendors.
func Coops(p rfx.P, sub uint32) []*spec.Variant {
	var vs []*spec.Variant
	for _, c := range coops {
		c.Sub, c.subs, c.cols = sub, 2, 2*pick(c.swap, c.M, c.N)
		vs = append(vs, c.variant(p))
	}
	return slices.CompactFunc(vs, func(x, y *spec.Variant) bool { return x.Name == y.Name })
}
