// Quantised matrices as the kernels for CUDA read them: every entry is in its place, with its scale, and all else is
// zero.

package dense_test

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/shaders/dense"
)

func TestQuantisedCUDA(t *testing.T) {
	done := map[dtype.Type]bool{dtype.Invalid: true}
	for _, v := range dense.Format.Variants {
		if v.Code != backend.CodePTX || done[v.Quant] { // A is laid out alike for all of a kind
			continue
		}
		done[v.Quant] = true
		t.Run(v.Name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				rows, cols := rapid.IntRange(0, 150).Draw(t, "rows"), rapid.IntRange(0, 300).Draw(t, "cols")
				r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
				zeros := rapid.IntRange(0, 3).Draw(t, "zeros")
				a := &formats.Quantised{Rows: rows, Cols: cols, Kind: v.Quant, RowPtr: make([]int64, rows+1)}
				for i := range rows {
					for j := range cols {
						if r.IntN(4) >= zeros {
							a.ColIdx, a.Q = append(a.ColIdx, int32(j)), append(a.Q, uint8(r.IntN(0x7f)))
						}
					}
					a.RowPtr[i+1] = int64(len(a.Q))
				}
				a.Scales = make([]float32, rows*a.Groups())
				for i := range a.Scales {
					a.Scales[i] = r.Float32() + 1
				}
				e, err := dense.Format.EncodeQuantised(a, v)
				if err != nil {
					t.Fatal(err)
				}
				var stored []uint32
				if e.Format != nil {
					stored = backend.View[uint32](e.Arrays[1].Data)
				} else if int(a.NNZ()) != rows*cols {
					t.Fatal("nothing tells which elements are entries")
				}
				check(t, a, e.Arrays[0].Data, stored)
			})
		})
	}
}

// check takes the arrays apart as quantised.cu does.
func check(t *rapid.T, a *formats.Quantised, data []byte, stored []uint32) {
	const block = 64 * formats.ScaleCols
	groups, steps := (a.Rows+63)/64, a.Groups()
	scales := backend.View[float32](data[groups*steps*block:])
	flip := uint8(0)
	if a.Kind == dtype.S8 {
		flip = 0x80
	}
	for row := range groups * 64 {
		p := int64(len(a.Q))
		if row < a.Rows {
			p = a.RowPtr[row]
		}
		for k := range steps * formats.ScaleCols {
			of, r, at := row/64*steps+k/formats.ScaleCols, row%64, k%16
			lane := r/16*32 + r%8*4 + at/2%4
			code := data[of*block+k%formats.ScaleCols/32*2048+lane*16+k/16%2*8+at/8*4+r/8%2*2+k%2]
			want, has := flip, false
			if row < a.Rows && p < a.RowPtr[row+1] && int(a.ColIdx[p]) == k {
				want, has = a.Q[p]^flip, true
				p++
			}
			if code != want {
				t.Fatalf("element %d,%d has code %d, want %d", row, k, code, want)
			}
			if !has {
				continue
			}
			if s := scales[of*64+r]; s != a.Scale(row, k) {
				t.Fatalf("element %d,%d has scale %g, want %g", row, k, s, a.Scale(row, k))
			}
			if w := (a.Cols + 31) / 32; stored != nil && stored[row*w+k/32]>>(k%32)&1 == 0 {
				t.Fatalf("element %d,%d is no entry", row, k)
			}
		}
	}
}
