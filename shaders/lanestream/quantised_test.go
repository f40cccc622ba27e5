// Quantised matrices as the kernels for CUDA read them: every entry is there once, as its code, with its scale.

package lanestream_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	format "github.com/spmmrun/spmm/formats/lanestream"
	"github.com/spmmrun/spmm/shaders/lanestream"
	"github.com/spmmrun/spmm/shaders/spec"
)

// quantised draws a matrix with some empty rows and some full ones.
func quantised(t *rapid.T, kind dtype.Type) *formats.Quantised {
	rows, cols := rapid.IntRange(0, 200).Draw(t, "rows"), rapid.IntRange(0, 700).Draw(t, "cols")
	m := &formats.Quantised{Rows: rows, Cols: cols, Kind: kind, RowPtr: make([]int64, rows+1)}
	r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	for i := range rows {
		density := []float64{0, 0.05, 0.3, 0.6, 1}[r.IntN(5)]
		for j := range cols {
			if r.Float64() < density {
				q := uint8(r.Uint32())
				if kind == dtype.E4M3 && q&0x7f == 0x7f {
					q = 0 // no NaN
				}
				m.ColIdx, m.Q = append(m.ColIdx, int32(j)), append(m.Q, q)
			}
		}
		m.RowPtr[i+1] = int64(len(m.Q))
	}
	m.Scales = make([]float32, rows*m.Groups())
	for i := range m.Scales {
		m.Scales[i] = float32(i%1000 + 1)
	}
	return m
}

// entry is a kernel's value of an entry.
type entry struct {
	row, col int
	q        uint8
	scale    float32
}

func TestQuantisedCUDA(t *testing.T) {
	done := map[dtype.Type]bool{dtype.Invalid: true}
	for _, v := range lanestream.Format.Variants {
		if v.Code != backend.CodePTX || done[v.Quant] { // packed alike for all of a kind
			continue
		}
		done[v.Quant] = true
		t.Run(v.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				a := quantised(t, v.Quant)
				e, err := lanestream.Format.EncodeQuantised(a, v)
				if err != nil {
					t.Fatal(err)
				}
				var want []entry
				for i := range a.Rows {
					for p := a.RowPtr[i]; p < a.RowPtr[i+1]; p++ {
						col := int(a.ColIdx[p])
						want = append(want, entry{i, col, a.Q[p], a.Scale(i, col)})
					}
				}
				got := read(t, a, e)
				slices.SortFunc(got, func(x, y entry) int { return (x.row-y.row)*a.Cols + x.col - y.col })
				if !slices.Equal(got, want) {
					t.Fatalf("%d entries became %d others", len(want), len(got))
				}
			})
		})
	}
}

// read takes the arrays apart as quantised.cu does.
func read(t *rapid.T, a *formats.Quantised, e *spec.Packed) []entry {
	s := e.Format.(interface{ Shape() format.Shape }).Shape()
	index, mask, values := backend.View[uint32](e.Arrays[0].Data), backend.View[uint32](e.Arrays[1].Data),
		backend.View[uint16](e.Arrays[2].Data)
	scales := backend.View[float32](e.Arrays[0].Data)
	index = index[s.Groups*a.Groups()*format.GroupRows:]
	streams := s.Groups * s.Splits
	ptr, rows := index[:streams+1], index[streams+1:][:streams]
	remainderPtr := index[2*streams+1:][:a.Rows+1]
	remainderCol := index[2*streams+1+a.Rows+1:][:remainderPtr[a.Rows]]
	stored := index[2*streams+1+a.Rows+1+len(remainderCol):]
	none := uint16(0)
	flip := uint8(0)
	if a.Kind == dtype.S8 {
		none, flip = 0x8080, 0x80
	}
	var got []entry
	add := func(row, col int, code uint8) {
		at := (row/format.GroupRows*a.Groups()+col/formats.ScaleCols)*format.GroupRows + row%8*8 + row%format.GroupRows/8
		got = append(got, entry{row, col, code ^ flip, scales[at]})
	}
	for g := range s.Groups {
		for split := range s.Splits {
			stream := g*s.Splits + split
			var next [format.Chains]int
			first, last := s.Segments*split/s.Splits, s.Segments*(split+1)/s.Splits
			for segment := first; segment < last; segment++ {
				for step := segment * s.SegmentSteps; step < (segment+1)*s.SegmentSteps; step++ {
					for chain := range format.Chains {
						for w := range 2 {
							word := mask[(g*s.Segments*s.SegmentSteps+step)*64+chain/2*2+w] >> (chain % 2)
							for i := range 16 {
								if word>>(2*i)&1 == 0 {
									continue
								}
								at := (int(ptr[stream])+next[chain])*format.Chains + chain
								if next[chain] >= int(rows[stream])*(segment-first+s.Window) {
									t.Fatalf("chain %d of stream %d runs ahead of the ring", chain, stream)
								}
								next[chain]++
								row, col := format.Place(chain, w, i)
								has := stored[at/16] >> (2 * (at % 16)) & 3
								for half := range 2 {
									code := uint8(values[at] >> (8 * half))
									if has>>half&1 != 0 {
										add(g*format.GroupRows+row, 2*(step*format.StepCols+col)+half, code)
									} else if code != uint8(none) {
										t.Fatalf("a place without an entry has code %d", code)
									}
								}
							}
						}
					}
				}
			}
		}
	}
	remainder := backend.Bytes(values[format.Chains*int(ptr[streams]):])
	for i := range a.Rows {
		for p := remainderPtr[i]; p < remainderPtr[i+1]; p++ {
			add(i, int(remainderCol[p]), remainder[p])
		}
	}
	return got
}
