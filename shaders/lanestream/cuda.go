// The variants for CUDA: kernel.cu for 8, 16 and 32 columns, prefill.cu for more.

package lanestream

import (
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/lanestream"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

// machine is a kind of multiprocessors: how many blocks run at once, and what one has.
type machine struct {
	name    string
	arch    int
	hopper  bool
	blocks  uint32 // multiprocessors of the largest
	warps   uint32
	ring    uint32 // bytes of shared memory of a warp
	cluster uint32 // blocks that share groups of rows
}

// slots is the most pieces in a ring, each of which has a barrier.
const slots = 8

// machines, the largest shared memory first.
var machines = []machine{
	{name: "hopper", arch: 90, hopper: true, blocks: 132, warps: 14, ring: 16512, cluster: 2},
	{name: "w9", arch: 80, blocks: 108, warps: 9, ring: 16512, cluster: 1},
	{name: "w6", arch: 80, blocks: 142, warps: 6, ring: 16512, cluster: 1},
}

// widths are the columns that a block may compute. Variants of the same machine and type take the same packing, and launch
// runs the one whose width suits the problem, whichever it was asked for.
var widths = []uint32{8, 16, 32}

// cuda is the variants.
var cuda = cudaVariants()

func cudaVariants() []*spec.Variant {
	var vs []*spec.Variant
	for _, m := range machines {
		for _, t := range []dtype.Type{dtype.F16, dtype.BF16} {
			for _, n := range widths {
				vs = append(vs, m.variant(t, n))
			}
			if m.hopper {
				for _, of := range tiles {
					vs = append(vs, m.prefill(t, of))
				}
			}
		}
	}
	return vs
}

func (m machine) variant(t dtype.Type, cols uint32) *spec.Variant {
	name := fmt.Sprintf("cuda_%s_n%d_%v", m.name, cols, t)
	v := &spec.Variant{
		Name: name, In: t, Code: backend.CodePTX, Entry: "lanestream",
		Local: [3]uint32{32 * m.warps, 1, 1},
		Consts: []spec.Const{
			spec.Define("WARPS", m.warps), spec.Define("BLOCKS", m.blocks), spec.Define("COLS", cols), spec.Define("RING", m.ring), spec.Define("CLUSTER", m.cluster),
		},
		Need:   spec.Need{Arch: m.arch, Shapes: []backend.MatrixShape{spec.Shape(16, 8, 16, t)}},
		Shared: m.warps * (m.ring + 8*slots),
		Out:    []dtype.Type{dtype.F16, dtype.BF16},
		Unit: spec.Unit{
			Source: "kernel.cu", Arch: fmt.Sprintf("compute_%d", m.arch), Blob: name + ".ptx",
			Defines: map[string]string{"ENTRY": "lanestream", "ELEM": include.Define(t)},
		},
	}
	if m.hopper {
		v.Unit.Defines["HOPPER"] = "1"
	}
	v.Need.Shared = v.Shared
	return v
}

// mostFew is the most columns for which kernel.cu is faster than prefill.cu.
const mostFew = 32

// forColumns returns the variant of v's packing and type that suits a problem's number of columns. Variants of prefill.cu take layout
// Places alone.
func forColumns(v *spec.Variant, s lanestream.Shape, p spec.Problem) *spec.Variant {
	many := p.N > mostFew && s.Layout == lanestream.Places
	best := v
	for _, x := range cuda { // kernel.cu's first, the narrowest first
		if x.In != v.In || x.Const("WARPS") != v.Const("WARPS") || isPrefill(x) && !(many && x.Met(p.Caps)) {
			continue
		}
		if best = x; int(x.Const("COLS")) >= p.N {
			break
		}
	}
	return best
}
