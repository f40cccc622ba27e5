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
	m, n, k uint32 // the matrix operation
	swap    bool   // Cᵀ = Bᵀ·Aᵀ
	sub     uint32 // subgroup size
	subs    uint32 // subgroups of a workgroup
	cols    uint32 // columns of a workgroup, at least its invocations: each brings four rows' eight columns a tile, or more
}

var coops = []coop{
	// NVIDIA: the panel on the instruction's n = 8.
	{m: 16, n: 8, k: 32, swap: true, sub: 32, subs: 4, cols: 128},
	{m: 16, n: 16, k: 32, swap: true, sub: 32, subs: 2, cols: 64},
	// AMD, in waves of 32 and of 64.
	{m: 16, n: 16, k: 16, sub: 32, subs: 2, cols: 64},
	{m: 16, n: 16, k: 16, sub: 64, subs: 1, cols: 64},
	// Intel.
	{m: 8, n: 16, k: 32, sub: 16, subs: 8, cols: 128},
	{m: 8, n: 16, k: 32, sub: 8, subs: 8, cols: 128},
	// Mesa's driver for CPUs.
	{m: 8, n: 8, k: 8, swap: true, sub: 8, subs: 4, cols: 64},
}

// rows is the panel's height.
func (c coop) rows() uint32 { return pick(c.swap, c.n, c.m) }

// sharedWords is what digits of B take in shared memory, or sums: see panel.comp.
func (c coop) sharedWords(p rfx.P) uint32 {
	s := uint32(p.Bytes())
	return max(s*c.cols*12, (2*s-1)*c.rows()*(c.cols+4))
}

func (c coop) variant(p rfx.P) *spec.Variant {
	constant := func(name string, id int, x uint32) spec.Const { return spec.Const{Name: name, ID: id, Value: x} }
	return &spec.Variant{
		Name: fmt.Sprintf("vulkan_panels_%dx%dx%d_sub%d_p%d", c.m, c.n, c.k, c.sub, p), In: dtype.F32, Code: backend.CodeSPIRV, Entry: "main",
		Need: spec.Need{
			Int8: true, Shared: 4 * c.sharedWords(p),
			Shapes: []backend.MatrixShape{{M: c.m, N: c.n, K: c.k, A: dtype.S8, B: dtype.S8, C: dtype.S32, D: dtype.S32}},
		},
		Local: [3]uint32{c.sub * c.subs, 1, 1}, Sub: c.sub, Matrix: true,
		Consts: []spec.Const{
			constant("LOCAL", 0, c.sub*c.subs), constant("V", 1, c.rows()), constant("TM", 2, c.m), constant("TN", 3, c.n), constant("TK", 4, c.k),
			constant("SWAP", 5, pick[uint32](c.swap, 1, 0)), constant("COLS", 6, c.cols), constant("SUBS", 7, c.subs),
			constant("SHARED", 8, c.sharedWords(p)), define("BITS", uint32(p)), define("WARPS", 1),
		},
		Unit: spec.Unit{Source: "panel.comp", Blob: fmt.Sprintf("coop_p%d.spv", p)},
	}
}

// Coops returns these variants made over for a subgroup size and for a tile of columns a subgroup, so that a driver
// that computes any tile can run those of all vendors.
func Coops(p rfx.P, sub uint32) []*spec.Variant {
	var vs []*spec.Variant
	for _, c := range coops {
		c.sub, c.subs, c.cols = sub, 2, 2*pick(c.swap, c.m, c.n)
		vs = append(vs, c.variant(p))
	}
	return slices.CompactFunc(vs, func(x, y *spec.Variant) bool { return x.Name == y.Name })
}
