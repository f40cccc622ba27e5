// Quantised matrices: lane streams whose values have 8 bits, with a scale for each row and 128 columns.

package lanestream

import (
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/lanestream"
	"github.com/spmmrun/spmm/internal/simd"
	"github.com/spmmrun/spmm/shaders/host"
	"github.com/spmmrun/spmm/shaders/include"
	"github.com/spmmrun/spmm/shaders/spec"
)

// The columns of a workgroup on the CPU, and the panels of a group of rows.
const (
	quantisedCols = 128
	panels        = rows / simd.PanelRows
)

// shape describes a quantised matrix to launches.
type shape lanestream.Shape

func (s shape) Shape() lanestream.Shape { return lanestream.Shape(s) }

// packQuantised packs the 8-bit values in the order of lane streams, and the scales behind the index.
func packQuantised(a *formats.Quantised, v *spec.Variant) (*spec.Packed, error) {
	if v.Code == backend.CodePTX {
		return packPairs(a, v)
	}
	m, err := lanestream.Encode(a.Levels(), lanestream.Options{Splits: splitsFor(a.Rows, v)})
	if err != nil {
		return nil, err
	}
	e, err := arrange(m, v)
	if err != nil {
		return nil, err
	}
	values := bytesOf(m.Values, a.Kind)
	index := backend.View[uint32](e.Arrays[0].Data)[:len(m.StreamPtr)+len(m.SegmentRows)+len(m.RemainderPtr)+len(m.RemainderCol)+len(m.Stored)]
	index = append(index[:len(index):len(index)], backend.View[uint32](backend.Bytes(a.Scales))...)
	e.Arrays[0], e.Arrays[2] = spec.NewArray("index", index), spec.NewArray("values", values)
	e.Stats.StoredBytes += 4*int64(len(a.Scales)) - int64(len(values))
	e.Format = shape(m.Shape())
	return e, nil
}

// bytesOf returns values as their 8 bits.
func bytesOf(values []half.F16, kind dtype.Type) []uint8 {
	table := make([]uint8, 1<<16)
	for q := range 256 {
		if x := half.F16From(formats.Level(kind, uint8(q))); q != 0x80 || kind == dtype.S8 { // -0 of e4m3 is +0
			table[x] = uint8(q)
		}
	}
	out := make([]uint8, len(values))
	for i, x := range values {
		out[i] = table[x]
	}
	return out
}

func quantisedVariants() []*spec.Variant {
	vs := slices.Clone(pairsCUDA)
	for _, v := range append(vulkanScalars(), webgpuVariants()...) {
		for _, kind := range quants {
			if v.In != dtype.F32 {
				vs = append(vs, quantise(v, kind))
			}
		}
	}
	for _, kind := range quants {
		for _, t := range []dtype.Type{dtype.F16, dtype.BF16} {
			f := host.For(t, quantisedGroup(kind, host.F16), quantisedGroup(kind, host.BF16), nil)
			v := onCPU(fmt.Sprintf("cpu_%v_%v", kind, t), t, f, quantisedCols)
			v.Quant = kind
			vs = append(vs, v)
		}
	}
	return vs
}

// quantise returns the form of a variant of the scalar kernels for quantised values.
func quantise(of *spec.Variant, kind dtype.Type) *spec.Variant {
	v := *of
	v.Name = fmt.Sprintf("%s_%v_%v", strings.TrimSuffix(v.Name, "_"+v.In.String()), kind, v.In)
	v.Quant, v.Unit.Defines = kind, maps.Clone(v.Unit.Defines)
	v.Unit.Defines["QUANT"] = include.Quant(kind)
	if v.Code == backend.CodeWGSL {
		v.Unit.Defines["QUANTISED"] = include.QuantisedWGSL
	} else {
		v.Unit.Blob = fmt.Sprintf("scalar_%v_%v.spv", kind, v.In)
	}
	return &v
}

// quantisedGroup returns the function of one workgroup on the CPU, a group of 64 rows and some columns. Values are
// multiplied by their scales when they are expanded.
func quantisedGroup[T formats.Value](kind dtype.Type, loops host.Loops[T]) backend.GroupFunc {
	levels := formats.Levels(kind)
	pool := sync.Pool{New: func() any { return new(quantisedScratch) }}
	return func(args [][]byte, block []byte, at [3]uint32) {
		x, ok := groupOf(args, block, at)
		if !ok {
			return
		}
		w := quantisedWork[T]{
			groupStreams: x, quantisedScratch: pool.Get().(*quantisedScratch), levels: levels, loops: loops,
			scales: backend.View[float32](backend.Bytes(x.stored[x.slots/32:])),
			values: args[2][:x.slots], remainder: args[2][x.slots:], b: backend.View[T](args[3]),
			firstColumn: int(at[1]) * quantisedCols,
		}
		defer pool.Put(w.quantisedScratch)
		w.columns = min(quantisedCols, int(w.n)-w.firstColumn)
		w.multiply()
		out := host.Out{C: args[5], Bias: args[4], Store: w.store, LDC: w.ldc, Alpha: w.alpha, Beta: w.beta}
		for r := range min(rows, int(w.rows)-w.number*rows) {
			acc := w.acc[r*quantisedCols:][:w.columns]
			host.Repair(acc, func(j int, add func(x, y float32)) {
				y := func(col int) float32 { return loops.Wide(w.b[col*int(w.ldb)+w.firstColumn+j]) }
				for split := range int(w.splits) {
					w.each(split, func(row, col, at int) {
						if row == r && w.stored[at/32]>>(at%32)&1 != 0 {
							add(w.value(row, col, w.values[at]), y(col))
						}
					}, nil)
				}
				w.eachRemainder(r, func(col int, q uint8) { add(w.value(r, col, q), y(col)) })
			})
			out.Row(w.number*rows+r, w.firstColumn, acc, w.c[:w.columns])
		}
	}
}

// quantisedScratch is the memory of a workgroup: its sums, the vectors of a step, and a row of C.
type quantisedScratch struct {
	acc   [rows * quantisedCols]float32
	dense [panels][stepCols * simd.PanelRows]float32
	cols  [stepCols]uint32
	c     [quantisedCols]float32
}

// quantisedWork is a workgroup's work.
type quantisedWork[T formats.Value] struct {
	groupStreams
	*quantisedScratch
	levels               *[256]float32
	scales               []float32
	values, remainder    []uint8
	b                    []T
	loops                host.Loops[T]
	firstColumn, columns int // of C
}

// value returns the number that q stands for in row r of the group.
func (w *quantisedWork[T]) value(r, col int, q uint8) float32 {
	of := (int(w.params.cols)-1)/formats.ScaleCols + 1
	return w.scales[(w.number*rows+r)*of+col/formats.ScaleCols] * w.levels[q]
}

// each calls f with each value of a split of the group: its row in the group, its column, and its index in values.
// After each step it calls done, if that is not nil, with the step's first column.
func (w *quantisedWork[T]) each(split int, f func(r, col, at int), done func(col int)) {
	first := chains * int(w.ptr[w.number*int(w.splits)+split])
	var next [chains]int
	for c := range next {
		next[c] = first + c
	}
	segment := func(q int) int { return int(uint64(w.segments) * uint64(q) / uint64(w.splits)) }
	for s := segment(split) * int(w.steps); s < segment(split+1)*int(w.steps); s++ {
		for n, word := range w.mask[(w.number*int(w.segments*w.steps)+s)*chains:][:chains] {
			for ; word != 0; word &= word - 1 {
				bit := bits.TrailingZeros32(word) // 8·t + 4·k + 2·r + h
				chain := n/2*2 + bit&1
				f(16*(bit>>3)+8*(bit>>1&1)+n/8, s*stepCols+16*(n%2)+8*(bit>>2&1)+4*(bit&1)+n/2%4, next[chain])
				next[chain] += chains
			}
		}
		if done != nil {
			done(s * stepCols)
		}
	}
}

func (w *quantisedWork[T]) eachRemainder(r int, f func(col int, q uint8)) {
	for at := w.remainderPtr[w.number*rows+r]; at < w.remainderPtr[w.number*rows+r+1]; at++ {
		f(int(w.remainderCol[at]), w.remainder[at])
	}
}

func (w *quantisedWork[T]) multiply() {
	clear(w.acc[:])
	for p := range w.dense {
		clear(w.dense[p][:])
	}
	last := int(w.params.rows) - w.number*rows // of the group
	for split := range int(w.splits) {
		w.each(split, func(r, col, at int) {
			if r < last && col < int(w.params.cols) { // else a filler
				w.dense[r/simd.PanelRows][col%stepCols*simd.PanelRows+r%simd.PanelRows] = w.value(r, col, w.values[at])
			}
		}, w.flush)
	}
	for r := range min(rows, last) {
		w.eachRemainder(r, func(col int, q uint8) {
			x := w.value(r, col, q)
			for j := range w.columns {
				w.acc[r*quantisedCols+j] += x * w.loops.Wide(w.b[col*int(w.ldb)+w.firstColumn+j])
			}
		})
	}
}

// flush multiplies a step's vectors.
func (w *quantisedWork[T]) flush(col int) {
	n := min(stepCols, int(w.params.cols)-col)
	if n <= 0 {
		return // places past the last column
	}
	for i := range n {
		w.quantisedScratch.cols[i] = uint32(col + i)
	}
	for p := range panels {
		w.loops.Panel(w.acc[p*simd.PanelRows*quantisedCols:], quantisedCols, w.dense[p][:n*simd.PanelRows], simd.PanelRows,
			w.quantisedScratch.cols[:n],
			w.b[w.firstColumn:], int(w.ldb), host.Pad(w.columns))
		clear(w.dense[p][:])
	}
}
