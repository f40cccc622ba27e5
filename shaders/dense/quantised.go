// Quantised matrices of which every element is stored: 8-bit values, with a scale for each row and 128 columns.

package dense

import (
	"fmt"
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/simd"
	"github.com/spmmrun/spmm/shaders/host"
	"github.com/spmmrun/spmm/shaders/spec"
)

// The tile of a workgroup on the CPU.
const (
	quantisedRows = 64
	quantisedCols = 128
)

// quantisedPlaces are the numbers of the places of a group of columns.
var quantisedPlaces = func() (p [formats.ScaleCols]uint32) {
	for k := range p {
		p[k] = uint32(k)
	}
	return p
}()

// byteAlign is what the bytes of a row of a quantised A are a multiple of.
const byteAlign = 16

// packQuantised lays out the values row after row, a multiple of 16 bytes each, and the scales behind them.
func packQuantised(a *formats.Quantised, v *spec.Variant) (*spec.Packed, error) {
	for i := range a.Rows {
		if n := a.RowPtr[i+1] - a.RowPtr[i]; n != int64(a.Cols) {
			return nil, fmt.Errorf("kernel dense/%s: %w", v.Name, notFull{fmt.Errorf("row %d stores %d of %d elements: %w", i, n, a.Cols, formats.ErrNotFull)})
		}
	}
	stats, items, err := measureQuantised(a.Rows, a.Cols, a.NNZ(), v)
	if err != nil {
		return nil, err
	}
	ld := spec.Ceil(a.Cols, byteAlign) * byteAlign
	data := make([]byte, a.Rows*ld, a.Rows*ld+4*len(a.Scales))
	for i := range a.Rows {
		copy(data[i*ld:], a.Q[i*a.Cols:][:a.Cols])
	}
	array := spec.NewArray("a", append(data, backend.Bytes(a.Scales)...))
	return &spec.Packed{
		Rows: a.Rows, Cols: a.Cols, NNZ: a.NNZ(), Arrays: []spec.Array{array, spec.NewArray[uint32]("stored", nil)}, Items: items, Stats: stats,
	}, nil
}

// measureQuantised is measure for quantised matrices, which must store every element.
func measureQuantised(rows, cols int, nnz int64, v *spec.Variant) (formats.Stats, int64, error) {
	ld := int64(spec.Ceil(int64(cols), byteAlign) * byteAlign)
	switch {
	case nnz != int64(rows)*int64(cols):
		return formats.Stats{}, 0, fmt.Errorf("kernel dense/%s: %w", v.Name, notFull{formats.ErrNotFull})
	case ld > spec.MaxLD:
		return formats.Stats{}, 0, fmt.Errorf("kernel dense/%s: %d columns exceed %d: %w", v.Name, cols, spec.MaxLD, backend.ErrUnsupported)
	}
	s, tiles := stats(rows, cols, ld, nnz, v)
	s.StoredBytes = int64(rows) * (ld + 4*int64(spec.Ceil(cols, formats.ScaleCols)))
	return s, tiles, nil
}

func quantisedVariants() []*spec.Variant {
	var vs []*spec.Variant
	for _, kind := range []dtype.Type{dtype.S8, dtype.E4M3} {
		for _, t := range []dtype.Type{dtype.F16, dtype.BF16} {
			vs = append(vs, &spec.Variant{
				Name: "cpu_" + kind.String() + "_" + t.String(), In: t, Quant: kind, Code: backend.CodeGo,
				Func:  host.For(t, quantisedGroup(kind, host.F16), quantisedGroup(kind, host.BF16), nil),
				Local: [3]uint32{1, 1, 1}, Consts: []spec.Const{spec.Define("ROWS", quantisedRows), spec.Define("COLS", quantisedCols)},
				Out: []dtype.Type{dtype.F16, dtype.BF16},
			})
		}
	}
	return vs
}

// quantisedScratch is the sums of one workgroup; of a group of columns, eight rows of A, by places; and a row of C.
type quantisedScratch struct {
	acc  [quantisedRows * quantisedCols]float32
	left [formats.ScaleCols * simd.PanelRows]float32
	line [quantisedCols]float32
}

var quantisedScratches = sync.Pool{New: func() any { return new(quantisedScratch) }}

// quantisedGroup returns the function of one workgroup on the CPU. Values are multiplied by their scales before they are multiplied.
func quantisedGroup[T formats.Value](kind dtype.Type, loops host.Loops[T]) backend.GroupFunc {
	levels := formats.Levels(kind)
	return func(args [][]byte, block []byte, at [3]uint32) {
		p := spec.View[params](block)
		tile := at[0] + at[2]*p.width
		row, col := int(tile/p.across)*quantisedRows, int(tile%p.across)*quantisedCols
		if row >= int(p.rows) {
			return
		}
		rows, n, lda := min(quantisedRows, int(p.rows)-row), min(quantisedCols, int(p.n)-col), spec.Ceil(p.cols, byteAlign)*byteAlign
		values, b := args[0], backend.View[T](args[2])
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
				loops.Panel(s.acc[i*quantisedCols:], quantisedCols, s.left[:], simd.PanelRows, quantisedPlaces[:count], b[k*int(p.ldb)+col:], int(p.ldb), host.Pad(n))
			}
		}
		out := host.Out{C: args[4], Bias: args[3], Store: p.store, LDC: p.ldc, Alpha: p.alpha, Beta: p.beta}
		for i := range rows {
			acc := s.acc[i*quantisedCols:][:n]
			host.Repair(acc, func(j int, add func(x, y float32)) {
				for k := range int(p.cols) {
					add(value(row+i, k), loops.Wide(b[k*int(p.ldb)+col+j]))
				}
			})
			out.Row(row+i, col, acc, s.line[:n])
		}
	}
}
