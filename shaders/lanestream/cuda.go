// The variants for CUDA. For up to 32 columns: staged.cu (many rows) and few.cu (few rows) on compute capability 9.0,
// kernel.cu elsewhere. For more columns: prefill.cu and filled.cu.

package lanestream

import (
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/lanestream"
	"github.com/spmmrun/spmm/shaders/spec"
)

// machine is a kind of GPU: how many CTAs it runs at the same time, and the resources of one.
type machine struct {
	name    string
	arch    int
	hopper  bool
	blocks  uint32 // CTAs at a time: the multiprocessors of the largest GPU
	warps   uint32
	ring    uint32 // bytes of a warp's stage buffer
	cluster uint32 // CTAs of a cluster, which share groups of rows
}

// slots is the most segments in a stage buffer. Each has a barrier.
const slots = 8

// machines is sorted by shared memory, the largest first.
var machines = []machine{
	{name: "hopper", arch: 90, hopper: true, blocks: 132, warps: 14, ring: 16512, cluster: 2},
	{name: "w6", arch: 80, blocks: 142, warps: 6, ring: 16512, cluster: 1},
}

// widths are the numbers of columns that a CTA may compute. Variants of the same machine and type take the same
// packing; suited picks the one whose width suits the problem.
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
				for _, x := range stagedKernels {
					vs = append(vs, m.staged(t, x))
				}
				for _, n := range widths {
					vs = append(vs, fewRows.few(t, lanestream.Places, n), fewRows.few(t, lanestream.Pairs, n))
				}
				vs = append(vs, m.lines(t, true), fewRows.lines(t, false))
				for _, of := range tiles {
					vs = append(vs, m.prefill(t, of))
				}
				vs = append(vs, m.filled(t, lanestream.Places), m.filled(t, lanestream.Pairs))
			}
		}
	}
	return vs
}

func (m machine) variant(t dtype.Type, cols uint32) *spec.Variant {
	v := onCUDA(fmt.Sprintf("cuda_%s_n%d_%v", m.name, cols, t), "kernel.cu", t, spec.Variant{
		Local: spec.Line(32 * m.warps), Consts: []spec.Const{
			spec.Define("WARPS", m.warps), spec.Define("BLOCKS", m.blocks), spec.Define("COLS", cols),
			spec.Define("BUFFER_BYTES", m.ring),
			spec.Define("CLUSTER", m.cluster),
		},
		Need: spec.Need{Arch: m.arch}, Shared: m.warps * (m.ring + 8*slots),
	})
	if m.hopper {
		v.Unit.Defines["HOPPER"] = "1"
	}
	v.Tile = columns(rows, cols)
	return m.sizes().sized(v, streamsKind)
}

// sizes returns the sizes of a variant of kernel.cu.
func (m machine) sizes() sizes {
	return sizes{packing: packing{warps: m.warps, cluster: m.cluster}, ctas: m.blocks, ring: m.ring}
}

// onCUDA completes a variant of one of the sources.
func onCUDA(name, source string, t dtype.Type, v spec.Variant) *spec.Variant {
	v.Need.Shapes, v.Unit.Source = []backend.MatrixShape{spec.Shape(16, 8, 16, t)}, source
	return spec.CUDA(name, "lanestream", t, v)
}

// stagedGroups is the least number of groups of rows that a cluster of staged.cu has, so that its warps share B.
const stagedGroups = 7

// stagedKernel is a kernel of staged.cu. A matrix whose segments do not fit its stage buffers is for kernel.cu.
type stagedKernel struct {
	pairs, cols               uint32
	ring, bytes               uint32 // of shared memory: for a warp's stream, for the B of a split
	producers, remainderWarps uint32 // warps that load B, warps that add the COO remainder
	aProducers                uint32 // warps that load A
}

// The most splits whose B a CTA loads, and the most stages of B for each.
const (
	stagedSplits = 2
	stages       = 8
)

// stagedKernels lists them. Those for Pairs leave room to the L1 cache, from which the remainder's rows of B come.
var stagedKernels = []stagedKernel{
	{pairs: 0, cols: 8, ring: 15872, bytes: 4096, producers: 1, remainderWarps: 4, aProducers: 1},
	{pairs: 0, cols: 16, ring: 15872, bytes: 4096, producers: 1, remainderWarps: 4, aProducers: 1},
	{pairs: 0, cols: 32, ring: 15232, bytes: 8192, producers: 1, remainderWarps: 0, aProducers: 1},
	{pairs: 1, cols: 8, ring: 10240, bytes: 4096, producers: 1, remainderWarps: 5},
	{pairs: 1, cols: 16, ring: 10240, bytes: 8192, producers: 1, remainderWarps: 5},
	{pairs: 1, cols: 32, ring: 10240, bytes: 16384, producers: 2, remainderWarps: 0},
}

func (m machine) staged(t dtype.Type, x stagedKernel) *spec.Variant {
	m.ring = x.ring
	v := m.variant(t, x.cols)
	v.Name = fmt.Sprintf("cuda_%s_n%d_%v", []string{"staged", "pairs"}[x.pairs], x.cols, t)
	v.Local[0] = 32 * (m.warps + x.producers + x.aProducers + x.remainderWarps)
	v.Consts = append(v.Consts,
		spec.Define("STAGED", 1), spec.Define("PAIRS", x.pairs), spec.Define("B_SPLITS", stagedSplits),
		spec.Define("B_BYTES", x.bytes),
		spec.Define("B_STAGES", stages), spec.Define("B_PRODUCERS", x.producers),
		spec.Define("REMAINDER_WARPS", x.remainderWarps), spec.Define("A_PRODUCERS", x.aProducers),
	)
	v.Shared = m.warps*(x.ring+16*slots) + stagedSplits*(x.bytes+16*stages)
	v.Need.Shared = v.Shared
	v.Unit.Source, v.Unit.Blob = "staged.cu", v.Name+".ptx"
	v.Overlaps = true
	s := m.sizes()
	s.staged, s.layout = true, x.pairs
	return s.sized(v, stagedKind)
}

// staged reports whether a variant takes the packing of staged.cu.
func staged(v *spec.Variant) bool { return sizesOf(v).staged }

// stagedRows returns the rows of values and masks of a ring for which matrices are packed for staged.cu.
func stagedRows(layout int) int {
	if layout == lanestream.Pairs {
		return 68
	}
	return 108
}

// fits reports whether a stage buffer has room for a matrix's segments. The buffer has some rows twice, and where room
// is scarce only two masks (LATE in warp.cuh).
func (v stagedKernel) fits(s lanestream.Shape) bool {
	need := s.RingRows + 16
	if v.pairs == 1 {
		need -= (s.Window - 1) * 3 * s.SegmentSteps
	} else if v.cols == 32 {
		need -= (s.Window-1)*2*s.SegmentSteps + 1
	}
	return need <= int(v.ring)/128
}

// inStaged returns the variant of staged.cu that suits a matrix and a number of columns, nil if none does.
func inStaged(v *spec.Variant, s lanestream.Shape, n int) *spec.Variant {
	if !staged(v) || s.Layout == lanestream.Places && n > mostTurns {
		return nil
	}
	width := widths[0]
	for _, w := range widths[1:] {
		if int(width) < n {
			width = w
		}
	}
	for _, x := range stagedKernels {
		if x.cols != width || int(x.pairs) != s.Layout || !x.fits(s) {
			continue
		}
		for _, of := range cuda {
			if of.Kind == stagedKind && of.In == v.In && of.Tile.Cols == int(width) && sizesOf(of).layout == x.pairs {
				return of
			}
		}
	}
	return nil
}

// mostFew is the most columns that kernel.cu, staged.cu and few.cu multiply in one pass over A. Up to mostTurns
// columns, several passes are faster than prefill.cu and filled.cu for layout Places.
const mostFew, mostTurns = 32, 64

// forColumns returns the variant of v's packing and type that suits a problem. prefill.cu takes only layout Places.
func forColumns(v *spec.Variant, s lanestream.Shape, p spec.Problem) *spec.Variant {
	if x := suitsFilled(v, s, p); x != nil {
		return x
	}
	if x := linesFor(v, s, p); x != nil {
		return x
	}
	if isFew(v) {
		return fewFor(v, p)
	}
	if x := inStaged(v, s, p.N); x != nil {
		return x
	}
	many := p.N > mostTurns && s.Layout == lanestream.Places
	best := v
	for _, x := range cuda { // kernel.cu's first, the narrowest first
		if x.In != v.In || sizesOf(x).warps != sizesOf(v).warps || x.Kind != streamsKind &&
			!(x.Kind == prefillKind && many && x.Met(p.Caps)) {
			continue
		}
		if best = x; x.Tile.Cols >= p.N {
			break
		}
	}
	return best
}

// withColumns gives the kernels for few columns on compute capability 9.0 their forms for column-major operands. For
// more columns than one a pass that transposes B takes less than reading each element of the remainder's rows by
// itself.
func withColumns(vs []*spec.Variant) []*spec.Variant {
	for _, v := range vs {
		if v.Kind != stagedKind && v.Kind != fewKind {
			continue
		}
		v.ColumnsOfC, v.IntoColumns = true, v.Form("_columns", "C_COLUMNS")
		if v.Tile.Cols == int(widths[0]) {
			v.Vector = v.Form("_vector", "B_VECTOR")
		}
	}
	return vs
}
