// The variant for a column-major B of few columns, the X of X·Wᵀ: few.cu with lines.cuh.

package lanestream

import (
	"fmt"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/lanestream"
	"github.com/spmmrun/spmm/shaders/spec"
)

// lineCols is the most columns of B, mostPitch the most bytes from one to the next: an entry of the COO remainder has
// 16 bits for the place.
const lineCols, mostPitch = 8, 1 << 16

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
		if x.Kind == linesKind && x.In == v.In && x.Packing == v.Packing && fitsFew(s, linesRing(x, s, p.N), 0) {
			return x
		}
	}
	return nil
}

// linesRing returns the bytes of a warp's stage buffer: what the barriers, the sums of the remainder and n lines leave;
// 0 if the lines are too long.
func linesRing(v *spec.Variant, s lanestream.Shape, n int) int {
	const rowBytes, sums = 128, lanestream.GroupRows * (lineCols + 4) * 4
	x := sizesOf(v)
	warps, each := int(x.warps), eachOf(v, s)
	row := func(split int) int { // the first row of B that a split multiplies
		return s.Segments * min(split, s.Splits) / s.Splits * s.SegmentSteps * lanestream.StepCols
	}
	longest := 0
	for r := range int(x.cluster) {
		longest = max(longest, row(((r+1)*warps-1)/each+1)-row(r*warps/each))
	}
	pitch := 2*longest + 16
	room := int(v.Shared) - warps*8*(slots+1) - each*sums - n*pitch
	if pitch > mostPitch || room < 0 {
		return 0
	}
	return room / warps / rowBytes * rowBytes
}
