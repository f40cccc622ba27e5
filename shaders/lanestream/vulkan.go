// The variants for Vulkan: cooperative matrices in the shapes that devices list, and scalar units.

package lanestream

import (
	"fmt"
	"math"
	"slices"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/lanestream"
	"github.com/spmmrun/spmm/shaders/spec"
)

// gpuBlocks is the number of workgroups that a large GPU works on at a time.
const gpuBlocks = 528

// scalarTeams is the number of teams of 64 invocations in a workgroup of the scalar kernels. Each expands a stream.
const scalarTeams = 4

// scalarShared is the shared memory of these: 16 columns of 64 rows in f32 for each team.
const scalarShared = scalarTeams * 16 * lanestream.GroupRows * 4

// expanded returns the sizes of the variants that expand streams to dense tiles, `streams` streams at a time (0:
// scalarTeams). Matrices are packed with enough streams for a large GPU.
func expanded(streams uint32) sizes {
	return sizes{packing: packing{warps: scalarTeams, cluster: 1}, ctas: gpuBlocks, streams: streams}
}

// expandedConsts returns these sizes as constants.
func expandedConsts() []spec.Const {
	return []spec.Const{spec.Define("WARPS", scalarTeams), spec.Define("CLUSTER", 1), spec.Define("BLOCKS", gpuBlocks)}
}

// shortSegment is the most rows of values of a segment, and shortRows of the segments that a step may read from, in a
// matrix of density up to a half that is packed for teams.comp. They are few because a multiprocessor's shared memory
// (48 KB on an H200) limits how many subgroups it has at a time. longSegment and longRows are those of any matrix.
const (
	shortSegment = 17
	shortRows    = 2 * shortSegment
)

var longSegment, longRows = longest()

func longest() (segment, rows uint32) {
	for _, window := range []int{2, 3} {
		n := lanestream.MaxSegmentRows(lanestream.Places, 1, window)
		segment, rows = max(segment, uint32(n)), max(rows, uint32(window*n))
	}
	return segment, rows
}

var types = []dtype.Type{dtype.F16, dtype.BF16, dtype.F32}

// vulkan is the variants.
var vulkan = vulkanVariants()

func vulkanVariants() []*spec.Variant {
	var vs []*spec.Variant
	for _, short := range []bool{true, false} {
		for _, cols := range widths {
			vs = append(vs, few(cols, short))
		}
		vs = append(vs, wide(short))
	}
	vs = append(vs, twins...)
	for _, c := range coops {
		vs = append(vs, c.variant(32), c.variant(128))
	}
	return append(vs, vulkanScalars()...)
}

// vulkanScalars returns the variants of scalar.comp.
func vulkanScalars() []*spec.Variant {
	var vs []*spec.Variant
	for _, t := range types {
		vs = append(vs, scalarVulkan(t))
	}
	return vs
}

// few returns a variant of teams.comp.
func few(cols uint32, short bool) *spec.Variant {
	// staged: B goes through shared memory
	subs, segment, rows, staged := uint32(8), uint32(shortSegment), uint32(shortRows), false
	if !short {
		subs, segment, rows, staged = 4, longSegment, longRows, true
	}
	past := max(rows*2/3, segment) + 4*spec.Ceil(segment, 4) // rows that lanes read when segments move
	if staged {
		rows += lanestream.StepCols * cols * 2 / 128
	}
	rows = max(rows, past)
	all := subs * max(rows, lanestream.GroupRows*(cols+4)/(cols/8)/32) // or sums
	v := byLanes("teams", "teams.comp", cols, short, subs, all*128, []spec.Const{
		{Name: "SUBS", ID: 1, Value: subs}, {Name: "TILES", ID: 2, Value: cols / 8}, {Name: "ROOM", ID: 3, Value: rows},
		{Name: "SEGMENT", ID: 4, Value: segment},
		{Name: "ROWS", ID: 5, Value: all}, {Name: "STAGE_B", ID: 6, Value: spec.Flag(staged)}, spec.Define("STREAMS", subs),
	})
	return lanesSizes(sizes{short: short, streams: subs}).sized(v, teamsKind)
}

// lanesSizes completes the sizes of a variant for devices of known fragment layout.
func lanesSizes(x sizes) sizes {
	x.packing, x.ctas = packing{warps: 8, cluster: 1, short: true}, 132
	return x
}

// wide returns a variant of wide.comp.
func wide(short bool) *spec.Variant {
	const subs, cols = 4, 128
	segment, rows := uint32(shortSegment), uint32(shortRows)
	if !short {
		segment, rows = longSegment, longRows
	}
	all := max(2*rows+lanestream.StepCols*cols*2/128, subs*16*(64+4)*4/128)
	v := byLanes("wide", "wide.comp", cols, short, subs, all*128, []spec.Const{
		{Name: "ROOM", ID: 1, Value: rows}, {Name: "SEGMENT", ID: 2, Value: segment}, {Name: "ROWS", ID: 3, Value: all},
		spec.Define("GROUPS", 2),
	})
	v.Tile = columns(2*lanestream.GroupRows, cols)
	return lanesSizes(sizes{short: short, groups: 2}).sized(v, wideKind)
}

func byLanes(kind, source string, cols uint32, short bool, subs, shared uint32, consts []spec.Const) *spec.Variant {
	name := kind
	if !short {
		name += "_long"
	}
	return spec.LanesVariant(fmt.Sprintf("vulkan_%s_n%d", name, cols), subs, shared, spec.Variant{
		Tile: columns(lanestream.GroupRows, cols),
		Consts: slices.Concat([]spec.Const{
			spec.Define("COLS", cols), spec.Define("SHORT", spec.Flag(short)), spec.Define("SHORT_SEGMENTS", 1),
			spec.Define("WARPS", 8), spec.Define("CLUSTER", 1), spec.Define("BLOCKS", 132),
		}, consts),
		Unit: spec.Unit{Source: source, Blob: kind + ".spv"},
	})
}

// coop is a matrix unit that has variants of coop.comp.
type coop struct {
	spec.MatrixUnit
	subs uint32 // subgroups of a workgroup: a multiple of 4, of 64 invocations or more
}

// coops are those of NVIDIA, AMD in waves of 32 and of 64, Intel, and Mesa's driver for CPUs.
var coops = []coop{
	{spec.NVIDIA, 4}, {spec.Turing, 4}, {spec.AMD32, 4}, {spec.AMD64, 4}, {spec.Intel16, 8}, {spec.Intel8, 8},
	{spec.MesaCPU, 8},
}

// variant returns the variant for few columns, in which each subgroup computes all columns, or for many, in which each
// computes some.
func (c coop) variant(cols uint32) *spec.Variant {
	const tile = 2 * lanestream.GroupRows * (lanestream.StepCols + 8) // bytes of A
	down := uint32(2)
	if cols <= 32 {
		down = min(c.subs, lanestream.GroupRows/c.M)
	}
	local := c.Sub * c.subs
	teams := min(2, local/64)
	octets := max(teams*lanestream.StepCols*(cols/8+1), 32*(cols/4+1)) // of B, or of 32 rows of C
	return expanded(1).sized(c.Variant(fmt.Sprintf("vulkan_%v_n%d", c.MatrixUnit, cols), c.subs, 16*octets+tile*teams,
		spec.Variant{
			Tile: columns(lanestream.GroupRows, cols),
			Consts: append([]spec.Const{
				{Name: "TM", ID: 1, Value: c.M}, {Name: "TN", ID: 2, Value: c.N}, {Name: "TK", ID: 3, Value: c.K},
				{Name: "WIDE", ID: 4, Value: cols}, {Name: "SUBGROUPS", ID: 5, Value: c.subs}, {Name: "DOWN", ID: 6, Value: down},
				{Name: "TEAMS", ID: 7, Value: teams},
				{Name: "SHARED", ID: 8, Value: octets}, spec.Define("COLS", cols), spec.Define("STREAMS", 1),
			}, expandedConsts()...),
			Unit: spec.Unit{Source: "coop.comp", Blob: "coop.spv"},
		}), coopKind)
}

// remake returns a variant of coop.comp for subgroups of another size, with as many as a workgroup needs then.
func remake(v *spec.Variant, sub uint32) *spec.Variant {
	for _, c := range coops {
		if cols := uint32(v.Tile.Cols); c.variant(cols).Name == v.Name {
			c.Sub, c.subs = sub, max(c.subs, spec.Ceil(spec.Ceil(64, sub), 4)*4)
			return c.variant(cols)
		}
	}
	return nil
}

// scalarVulkan returns the variant of scalar.comp.
func scalarVulkan(t dtype.Type) *spec.Variant {
	return expanded(0).sized(spec.SPIRV("vulkan_"+t.String(), spec.Variant{
		In: t, Tile: columns(lanestream.GroupRows, 64), Need: spec.Need{Shared: scalarShared},
		Local: spec.Line(64 * scalarTeams),
		Unit:  spec.GLSL("scalar.comp", "scalar", t),
		Consts: append([]spec.Const{{Name: "LOCAL", ID: 0, Value: 64 * scalarTeams}, spec.Define("COLS", 64)},
			expandedConsts()...),
	}), scalarKind)
}

// vulkanFor returns the variant that suits a matrix and a problem: it has enough columns, and room for the matrix's
// segments. teams.comp takes only a B of less than 2^31 elements.
func vulkanFor(v *spec.Variant, e *spec.Packed, p spec.Problem) *spec.Variant {
	if f, ok := e.Format.(*twinned); ok {
		return twinsFor(v, f, p)
	}
	if v.Need.Shapes == nil {
		return v
	}
	n := p.N
	if int64(p.K)*int64(p.LDB) >= 1<<31 {
		n = math.MaxInt
	}
	short := shortSegments(e)
	for _, x := range vulkan { // the narrowest first
		if x.Need.Lanes == v.Need.Lanes && x.Kind != twinsKind && x.Kind != twinsWideKind && x.Need.Shapes != nil &&
			x.Need.Shapes[0] == v.Need.Shapes[0] && x.Sub == v.Sub && (!v.Need.Lanes || sizesOf(x).short == short) {
			if v = x; x.Tile.Cols >= n {
				break
			}
		}
	}
	return v
}

// shortSegments reports whether the segments of a matrix are short.
func shortSegments(e *spec.Packed) bool {
	window, rows := shapeOf(e).Window, e.Format.(interface{ LongestSegment() int }).LongestSegment()
	return window*rows <= shortRows && rows <= shortSegment
}

// shorten sets the options for variants that need short segments: as many steps as fit on average at this density.
func shorten(o *lanestream.Options, v *spec.Variant, density float64) {
	if !sizesOf(v).packing.short || density > 0.51 {
		return
	}
	o.SegmentSteps, o.Window = 1, 2
	for _, n := range []int{2, 4} {
		if density*lanestream.StepCols*float64(n) <= 15 {
			o.SegmentSteps = n
		}
	}
}
