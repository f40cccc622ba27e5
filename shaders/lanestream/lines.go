// The variant for a column-major B of few columns, the X of X·Wᵀ: few.cu with lines.cuh.

package lanestream

import (
	"fmt"
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/lanestream"
	"github.com/spmmrun/spmm/shaders/spec"
)

// lineCols is the most columns of B.
const lineCols = 8

// lines returns the variant for matrices that are packed in layout Pairs, for staged.cu or few.cu.
func (m machine) lines(t dtype.Type, staged bool) *spec.Variant {
	v := m.few(t, lanestream.Pairs, lineCols)
	v.Name = fmt.Sprintf("cuda_%spairs_n%d_lines_%v", map[bool]string{false: "few_"}[staged], lineCols, t)
	v.Lines, v.Unit.Blob = true, v.Name+".ptx"
	for i, c := range v.Consts {
		if c.Name == "BUFFER_BYTES" { // the launch says how many
			v.Consts[i] = spec.Define("B_LINES", 1)
		}
	}
	s := sizesOf(v)
	s.staged = staged
	return s.sized(v, linesKind)
}

// linesFor returns the variant of v's packing and type for a problem, nil if there is none or the lines leave too
// little shared memory to the streams.
func linesFor(v *spec.Variant, s lanestream.Shape, p spec.Problem) *spec.Variant {
	if !p.BCol || p.N < 2 || p.N > lineCols || s.Layout != lanestream.Pairs {
		return nil
	}
	for _, x := range cuda {
		if x.Kind == linesKind && x.In == v.In && x.Packing == v.Packing && fitsFew(s, linesRing(x, s), 0) {
			return x
		}
	}
	return nil
}

// linesRing returns the bytes of a warp's stage buffer: what the barriers, the sums of the remainder and the rows of B
// of a CTA leave; 0 if there are too many.
func linesRing(v *spec.Variant, s lanestream.Shape) int {
	const buffers, rowOfB, sums = 128, 2 * lineCols, lanestream.GroupRows * (lineCols + 4) * 4
	x := sizesOf(v)
	warps, each := int(x.warps), eachOf(v, s)
	most := 0
	for r := range int(x.cluster) {
		most = max(most, firstRow(s, ((r+1)*warps-1)/each+1)-firstRow(s, r*warps/each))
	}
	room := int(v.Shared) - warps*8*slots - each*sums - most*rowOfB
	return max(0, room/warps/buffers*buffers)
}

// firstRow returns the first row of B that a split multiplies.
func firstRow(s lanestream.Shape, split int) int {
	return s.Segments * min(split, s.Splits) / s.Splits * s.SegmentSteps * lanestream.StepCols
}

// inLines returns the parameters of a launch.
func inLines(v *spec.Variant, e *spec.Packed, p spec.Problem) params {
	s := shapeOf(e)
	x := paramsOf(s, p)
	x.each, x.width = uint32(eachOf(v, s)), uint32(linesRing(v, s))
	x.maskLayout = uint32(e.Work.(middlesAt))
	return x
}

// hasMiddles reports whether a packing includes middles.
func hasMiddles(v *spec.Variant, s lanestream.Shape) bool {
	return v.Code == backend.CodePTX && v.Quant == dtype.Invalid && s.Layout == lanestream.Pairs && sizesOf(v).cluster == 2
}

// middlesAt is where the middles begin in the array index, in words; Packed.Work has it.
type middlesAt uint32

// middles has for each row its first entry of the COO remainder in column `from` or behind, the first whose row of B the
// second CTA of a cluster has.
func middles[T formats.Value](m *lanestream.Matrix[T], from int) []uint32 {
	at := make([]uint32, m.Rows)
	for i := range at {
		begin, end := m.RemainderPtr[i], m.RemainderPtr[i+1]
		n, _ := slices.BinarySearch(m.RemainderCol[begin:end], uint32(from))
		at[i] = begin + uint32(n)
	}
	return at
}
