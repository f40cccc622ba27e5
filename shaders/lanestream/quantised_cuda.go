// Quantised matrices on CUDA: lane streams of pairs of codes, for quantised.cu.

package lanestream

import (
	"fmt"
	"math"
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/lanestream"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

// pairsKernel is a kernel of quantised.cu. Its fields are those of stagedKernel.
type pairsKernel struct{ cols, ring, bytes, remainderWarps, aProducers uint32 }

// pairsKernels is sorted by columns, the fewest first. With more columns a thread has no registers for its sums.
var pairsKernels = []pairsKernel{
	{cols: 8, ring: 15232, bytes: 8192, remainderWarps: 4, aProducers: 1},
	{cols: 16, ring: 15232, bytes: 8192, remainderWarps: 1},
}

// pairsRows returns the rows of values that a variant's stage buffers have room for, without those that are repeated.
func pairsRows(v *spec.Variant) int { return int(sizesOf(v).ring)/128 - 16 }

// quants are the kinds of quantised values.
var quants = []dtype.Type{dtype.S8, dtype.E4M3}

// pairsCUDA is the variants of quantised.cu.
var pairsCUDA = func() (vs []*spec.Variant) {
	for _, kind := range quants {
		for _, t := range []dtype.Type{dtype.F16, dtype.BF16} {
			for _, x := range pairsKernels {
				v := machines[0].staged(t, stagedKernel{cols: x.cols, ring: x.ring, bytes: x.bytes, producers: 1,
					remainderWarps: x.remainderWarps, aProducers: x.aProducers})
				v.Name = fmt.Sprintf("cuda_n%d_%v_%v", x.cols, kind, t)
				v.Kind = quantisedKind
				v.Quant, v.Unit.Source, v.Unit.Blob = kind, "quantised.cu", v.Name+".ptx"
				v.Unit.Defines["QUANT"] = include.Quant(kind)
				vs = append(vs, v)
			}
		}
	}
	return vs
}()

// pairsFor returns the variant of v's types that suits n columns.
func pairsFor(v *spec.Variant, n int) *spec.Variant {
	best := v
	for _, x := range pairsCUDA { // the narrowest first
		if x.In != v.In || x.Quant != v.Quant {
			continue
		}
		if best = x; x.Tile.Cols >= n {
			break
		}
	}
	return best
}

// pairSteps returns the steps of a segment. Three segments of two steps fit the stage buffer if few pairs have an
// entry.
func pairSteps(pairs, rows, cols int) int {
	if float64(pairs) < 0.44*float64(rows)*float64(cols) {
		return 2
	}
	return 1
}

// packPairs packs the codes as lane streams of pairs (two neighbouring columns), with two bits for each pair that say
// which of its codes are entries. The scales are before the index: 64 for each group of rows and formats.ScaleCols
// columns, in which those of rows r, r + 8, r + 16 and so on are neighbours.
func packPairs(a *formats.Quantised, v *spec.Variant) (*spec.Packed, error) {
	p := pairsOf(a)
	m, err := lanestream.Encode(p, lanestream.Options{
		Splits: splitsFor(a.Rows, v), RingRows: pairsRows(v), SegmentSteps: pairSteps(len(p.Val), p.Rows, p.Cols),
	})
	if err != nil {
		return nil, err
	}
	slots := m.Slots()
	values, stored := make([]uint16, slots), make([]uint32, spec.Ceil(slots, 16))
	const some = 1 << 16 // values of a share of the work
	spec.Shares(slots, some, 0, func(first, last int) {
		for i := first; i < last; i++ {
			x := math.Float32bits(m.Values[i])
			if x == 0 { // a filler
				x = noPair(a.Kind)
			}
			values[i] = uint16(x)
			stored[i/16] |= x >> 16 << (2 * (i % 16))
		}
	})
	remainderPtr, remainderCol, remainder := splitRemainder(m)
	values = append(values, remainder...)
	scales := groupScales(a)
	index := slices.Concat(backend.View[uint32](backend.Bytes(scales)), m.StreamPtr, m.SegmentRows, remainderPtr,
		remainderCol, stored)
	e := &spec.Packed{
		Rows: a.Rows, Cols: a.Cols, NNZ: a.NNZ(), Stats: m.Stats(), Items: int64(m.Groups()), Format: shape(m.Shape()),
		Arrays: []spec.Array{spec.NewArray("index", index), spec.NewArray("mask", m.Mask), spec.NewArray("values", values)},
	}
	// stored is read only if B is not finite
	e.Stats.StoredBytes = 4*int64(len(index)-len(stored)+len(m.Mask)) + 2*int64(len(values))
	e.Stats.Slots = 2 * int64(len(values))
	e.Stats.MACs = int64(m.Groups()*m.Segments()*m.SegmentSteps)*2*rows*stepCols + int64(len(remainderCol))
	e.Stats.Gathers = int64(m.Groups())*int64(a.Cols) + int64(len(remainderCol))
	e.Stats.Staged = true
	if e.Stats.Slots > 0 {
		e.Stats.Fill = float64(e.NNZ) / float64(e.Stats.Slots)
	}
	return e, nil
}

// noCode returns the code of an element without an entry, noPair that of two; see shaders/include/quantised.cuh.
func noCode(kind dtype.Type) uint32 {
	if kind == dtype.S8 {
		return 0x80
	}
	return 0
}

func noPair(kind dtype.Type) uint32 { return noCode(kind) * 0x101 }

// code returns the byte that kernels read for a value. They read integers with 128 added.
func code(kind dtype.Type, q uint8) uint32 { return uint32(q) ^ noCode(kind) }

// pairPtr returns the row pointers of the matrix of pairs: an element of it is two neighbouring columns of the matrix
// with one entry or two.
func pairPtr(rowPtr []int64, colIdx []int32) []int64 {
	m := len(rowPtr) - 1
	ptr := make([]int64, m+1)
	spec.Shares(m, rows, 0, func(first, last int) {
		for i := first; i < last; i++ {
			last := int32(-1)
			for _, c := range colIdx[rowPtr[i]:rowPtr[i+1]] {
				if c>>1 != last {
					last = c >> 1
					ptr[i+1]++
				}
			}
		}
	})
	for i := range m {
		ptr[i+1] += ptr[i]
	}
	return ptr
}

// pairsOf returns the matrix of pairs. The bits of its values are two codes and, from bit 16 on, whether they are
// entries.
func pairsOf(a *formats.Quantised) *formats.CSR[float32] {
	p := &formats.CSR[float32]{Rows: a.Rows, Cols: spec.Ceil(a.Cols, 2), RowPtr: pairPtr(a.RowPtr, a.ColIdx)}
	p.ColIdx, p.Val = make([]int32, p.RowPtr[a.Rows]), make([]float32, p.RowPtr[a.Rows])
	spec.Shares(a.Rows, rows, 0, func(first, last int) {
		for i := first; i < last; i++ {
			at := p.RowPtr[i] - 1
			last := int32(-1)
			x := uint32(0)
			for e := a.RowPtr[i]; e < a.RowPtr[i+1]; e++ {
				c := a.ColIdx[e]
				if c>>1 != last {
					last = c >> 1
					at++
					p.ColIdx[at], x = last, noPair(a.Kind)
				}
				half := uint(c & 1)
				x = x&^(0xff<<(8*half)) | code(a.Kind, a.Q[e])<<(8*half) | 1<<(16+half)
				p.Val[at] = math.Float32frombits(x)
			}
		}
	})
	return p
}

// splitRemainder returns the COO remainder with single entries in place of pairs; two codes share an element of codes.
func splitRemainder(m *lanestream.Matrix[float32]) (ptr, cols []uint32, codes []uint16) {
	ptr = make([]uint32, m.Rows+1)
	for i := range m.Rows {
		pairs, values := m.Remainder(i)
		for k, c := range pairs {
			x := math.Float32bits(values[k])
			for half := range uint32(2) {
				if x>>(16+half)&1 == 0 {
					continue
				}
				if len(cols)%2 == 0 {
					codes = append(codes, 0)
				}
				codes[len(cols)/2] |= uint16(x >> (8 * half) & 0xff << (8 * (len(cols) % 2)))
				cols = append(cols, 2*c+half)
			}
		}
		ptr[i+1] = uint32(len(cols))
	}
	return ptr, cols, codes
}

// groupScales returns the scales in the order in which quantised.cu reads them.
func groupScales(a *formats.Quantised) []float32 {
	of := a.Groups()
	scales := make([]float32, spec.Ceil(a.Rows, rows)*of*rows)
	for i := range a.Rows {
		r := i % rows
		for g, s := range a.Scales[i*of : (i+1)*of] {
			scales[((i/rows)*of+g)*rows+r%8*8+r/8] = s
		}
	}
	return scales
}
