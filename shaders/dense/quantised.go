// Quantised matrices: 8-bit values, with a scale for each row and 128 columns. Matrices that do not store all elements
// are filled with zeros.

package dense

import (
	"fmt"
	"slices"
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/internal/simd"
	"github.com/spmmrun/spmm/shaders/host"
	"github.com/spmmrun/spmm/shaders/spec"
)

// The tile of a workgroup on the CPU.
const (
	quantisedRows = 64
	quantisedCols = 128
)

// quantisedPlaces has the numbers 0, 1, 2 and so on of the columns that share a scale.
var quantisedPlaces = func() (p [formats.ScaleCols]uint32) {
	for k := range p {
		p[k] = uint32(k)
	}
	return p
}()

// The bytes of a row of a quantised A are a multiple of byteAlign.
const byteAlign = 16

// packQuantised packs the values by rows, each a multiple of 16 bytes long, and the scales behind them. Elements that
// are not stored become zeros.
func packQuantised(a *formats.Quantised, v *spec.Variant) (*spec.Packed, error) {
	stats, items, err := measureQuantised(a.Rows, a.Cols, v)
	if err != nil {
		return nil, err
	}
	if s := stats.Slots; s > 0 {
		stats.Fill = float64(a.NNZ()) / float64(s)
	}
	e := &spec.Packed{Rows: a.Rows, Cols: a.Cols, NNZ: a.NNZ(), Items: items, Stats: stats}
	var stored []uint32
	if w := words(a.Cols); a.NNZ() != int64(a.Rows)*int64(a.Cols) {
		stored = make([]uint32, a.Rows*w)
		e.Format = filled[half.F16]{&formats.CSR[half.F16]{Rows: a.Rows, Cols: a.Cols}, stored}
	}
	data := make([]byte, stats.StoredBytes)
	lay := layRows
	if v.Code == backend.CodePTX {
		lay = layBlocks
	}
	spec.Shares(a.Rows, blockRows, spec.MemoryCores, func(lo, hi int) {
		lay(a, lo, hi, data)
		for i := lo; i < hi && stored != nil; i++ {
			line := stored[i*words(a.Cols):]
			for _, j := range a.ColIdx[a.RowPtr[i]:a.RowPtr[i+1]] {
				line[j>>5] |= 1 << (j & 31)
			}
		}
	})
	e.Arrays = []spec.Array{spec.NewArray("a", data), spec.NewArray("stored", stored)}
	return e, nil
}

// layRows packs rows lo to hi-1.
func layRows(a *formats.Quantised, lo, hi int, data []byte) {
	ld, groups := spec.Ceil(a.Cols, byteAlign)*byteAlign, a.Groups()
	for i := lo; i < hi; i++ {
		line := data[i*ld:]
		for e := a.RowPtr[i]; e < a.RowPtr[i+1]; e++ {
			line[a.ColIdx[e]] = a.Q[e]
		}
	}
	scales := backend.View[float32](data[a.Rows*ld:])
	copy(scales[lo*groups:hi*groups], a.Scales[lo*groups:])
}

// measureQuantised is measure for quantised matrices.
func measureQuantised(rows, cols int, v *spec.Variant) (formats.Stats, int64, error) {
	ld, lines := int64(spec.Ceil(int64(cols), byteAlign)*byteAlign), int64(rows)
	if v.Code == backend.CodePTX {
		ld, lines = int64(spec.Ceil(int64(cols), formats.ScaleCols)*formats.ScaleCols),
			int64(spec.Ceil(rows, blockRows)*blockRows)
	}
	if ld > spec.MaxLD {
		return formats.Stats{}, 0, fmt.Errorf("kernel dense/%s: %d columns exceed %d: %w", v.Name, cols, spec.MaxLD,
			backend.ErrUnsupported)
	}
	s, tiles := stats(rows, cols, ld, int64(rows)*int64(cols), v)
	s.StoredBytes = lines * (ld + 4*int64(spec.Ceil(cols, formats.ScaleCols)))
	return s, tiles, nil
}

func quantisedVariants() []*spec.Variant {
	vs := slices.Clone(quantisedCUDA)
	for _, kind := range quants {
		for _, t := range []dtype.Type{dtype.F16, dtype.BF16} {
			f := host.For(t, quantisedGroup(kind, host.F16), quantisedGroup(kind, host.BF16), nil)
			v := spec.CPU(fmt.Sprintf("cpu_%v_%v", kind, t), t, f,
				spec.Define("ROWS", quantisedRows), spec.Define("COLS", quantisedCols))
			v.Quant, v.Kind, v.Tile = kind, cpuKind, spec.Tile{Rows: quantisedRows, Cols: quantisedCols}
			vs = append(vs, v)
		}
	}
	return vs
}

// quantisedScratch is the memory of one workgroup: its sums, eight rows of A for the columns of a scale, and a row of
// C.
type quantisedScratch struct {
	acc  [quantisedRows * quantisedCols]float32
	left [formats.ScaleCols * simd.PanelRows]float32
	line [quantisedCols]float32
}

var quantisedScratches = sync.Pool{New: func() any { return new(quantisedScratch) }}

// quantisedGroup returns the function of one workgroup on the CPU. Values are multiplied by their scales before they
// are multiplied.
func quantisedGroup[T formats.Value](kind dtype.Type, loops host.Loops[T]) backend.GroupFunc {
	levels := formats.Levels(kind)
	return func(args [][]byte, block []byte, at [3]uint32) {
		p := spec.View[params](block)
		tile := at[0] + at[2]*p.width
		row, col := int(tile/p.across)*quantisedRows, int(tile%p.across)*quantisedCols
		if row >= int(p.rows) {
			return
		}
		rows, n, lda := min(quantisedRows, int(p.rows)-row), min(quantisedCols, int(p.n)-col),
			spec.Ceil(p.cols, byteAlign)*byteAlign
		values, stored, b := args[0], backend.View[uint32](args[1]), backend.View[T](args[2])
		scales, groups := backend.View[float32](args[0][int(p.rows)*int(lda):]), spec.Ceil(p.cols, formats.ScaleCols)
		value := func(i, k int) float32 {
			return scales[i*int(groups)+k/formats.ScaleCols] * levels[values[i*int(lda)+k]]
		}
		s := quantisedScratches.Get().(*quantisedScratch)
		defer quantisedScratches.Put(s)
		clear(s.acc[:])
		for k := 0; k < int(p.cols); k += formats.ScaleCols {
			count := min(formats.ScaleCols, int(p.cols)-k)
			for i := 0; i < rows; i += simd.PanelRows {
				for r := range simd.PanelRows {
					for q := range count {
						x := float32(0)
						if i+r < rows {
							x = value(row+i+r, k+q)
						}
						s.left[q*simd.PanelRows+r] = x
					}
				}
				loops.Panel(s.acc[i*quantisedCols:], quantisedCols, s.left[:], simd.PanelRows, quantisedPlaces[:count],
					b[k*int(p.ldb)+col:], int(p.ldb), host.Pad(n))
			}
		}
		out := host.Out{C: args[4], Bias: args[3], Store: p.store, LDC: p.ldc, Alpha: p.alpha, Beta: p.beta}
		for i := range rows {
			acc := s.acc[i*quantisedCols:][:n]
			host.Repair(acc, func(j int, add func(x, y float32)) {
				for k := range int(p.cols) {
					if p.words > 0 && stored[(row+i)*int(p.words)+k/32]>>(k%32)&1 == 0 {
						continue
					}
					add(value(row+i, k), loops.Wide(b[k*int(p.ldb)+col+j]))
				}
			})
			out.Row(row+i, col, acc, s.line[:n])
		}
	}
}
