// Packing as twins, which kernels for Vulkan read that no software driver runs.

package lanestream_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	format "github.com/spmmrun/spmm/formats/lanestream"
	"github.com/spmmrun/spmm/shaders/lanestream"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/spec"
)

// twinVariants returns the variants that take twins.
func twinVariants() (vs []*spec.Variant) {
	for _, v := range lanestream.Format.Variants {
		if v.Const("TWINS") == 1 {
			vs = append(vs, v)
		}
	}
	return vs
}

// entriesOf reads packed twins as the kernels do: what each element is the sum of. It fails where a value is read
// before or after the segments that are in shared memory then, or where those are too long for the variant that
// multiplies.
func entriesOf(t *testing.T, e *spec.Packed, most int) []float32 {
	s := e.Format.(interface{ Shape() format.Shape }).Shape()
	index, mask, values := backend.View[uint32](e.Arrays[0].Data), backend.View[uint32](e.Arrays[1].Data),
		backend.View[half.F16](e.Arrays[2].Data)
	streams := s.Groups * s.Splits
	tail := index[2*streams+1:]
	stored := tail[e.Rows+1+int(tail[e.Rows]):]
	got := make([]float32, e.Rows*e.Cols)
	for st := range streams {
		g, split, segment := st/s.Splits, st%s.Splits, int(index[streams+1+st])
		if segment > most {
			t.Fatalf("stream %d has segments of %d rows, more than %d", st, segment, most)
		}
		first, end := s.Segments*split/s.Splits*s.SegmentSteps, s.Segments*(split+1)/s.Splits*s.SegmentSteps
		for chain := range 64 {
			lane, h, at := chain%32, chain/32, 0
			for w := first; w < end; w++ {
				for i := range 16 {
					if mask[(g*s.Segments*s.SegmentSteps+w)*32+lane]>>(2*i+h)&1 == 0 {
						continue
					}
					if j := (w - first) / s.SegmentSteps; at < j*segment || at >= (j+2)*segment {
						t.Fatalf("row %d is read with segment %d of %d rows", at, j, segment)
					}
					row, col, value := 64*g+16*(i>>2)+8*(i&1)+lane/4, 32*w+2*(8*(i>>1&1)+4*h+lane%4), (int(index[st])+at)*64+chain
					for half := range 2 {
						x := values[2*value+half]
						if stored[value/16]>>(2*(value%16)+half)&1 != 0 {
							got[row*e.Cols+col+half] += x.Float32()
						} else if x != 0 {
							t.Fatalf("value %v in row %d and column %d is no entry", x, row, col+half)
						}
					}
					at++
				}
			}
		}
	}
	for i := range e.Rows {
		for k := tail[i]; k < tail[i+1]; k++ {
			got[i*e.Cols+int(tail[e.Rows+1:][k])] += values[int(index[streams])*128+int(k)].Float32()
		}
	}
	return got
}

func TestTwins(t *testing.T) {
	patterns := map[string][][]int32{"uneven": uneven(300, 700),
		"half full": append(shadertest.Scattered(128, 700, 0.05), shadertest.Scattered(128, 700, 0.9)...)}
	for _, d := range []float64{0, 0.02, 0.06, 0.1, 0.15, 0.19} {
		patterns[fmt.Sprint("even ", d)] = shadertest.Scattered(129, 700, d)
	}
	for name, pattern := range patterns {
		const k = 700
		r := rand.New(rand.NewPCG(1, 2))
		a := &formats.CSR[half.F16]{Rows: len(pattern), Cols: k, RowPtr: []int64{0}}
		want := make([]float32, len(pattern)*k)
		for i, row := range pattern {
			for _, c := range row {
				x := half.F16From(float32(r.IntN(100))) // zeros, too
				a.ColIdx, a.Val, want[i*k+int(c)] = append(a.ColIdx, c), append(a.Val, x), x.Float32()
			}
			a.RowPtr = append(a.RowPtr, int64(len(a.ColIdx)))
		}
		e, err := lanestream.Format.Encode(a, twinVariants()[0])
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if f := e.Format.(formats.Encoded).Format(); f != "twins" {
			if strings.HasPrefix(name, "even") {
				t.Errorf("%s is packed as %s", name, f)
			}
			continue
		}
		l, err := lanestream.Format.LaunchSuited(twinVariants()[0], e,
			spec.Problem{M: a.Rows, K: k, N: 8, LDB: 8, LDC: 8, Out: dtype.F32, Alpha: 1})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		most := int(l.Passes[0].Variant.Const("MOST"))
		if got := entriesOf(t, e, most); !slices.Equal(got, want) {
			t.Errorf("%s: packed otherwise", name)
		}
		f := e.Format.(formats.Encoded)
		if b := f.Sparse().(*formats.CSR[half.F16]); !slices.Equal(b.RowPtr, a.RowPtr) ||
			!slices.Equal(b.ColIdx, a.ColIdx) || !slices.Equal(b.Val, a.Val) || f.NNZ() != a.NNZ() || f.Validate() != nil {
			t.Errorf("%s: what is kept is another matrix", name)
		}
		again, err := lanestream.Format.Adopt(formats.Clone(f), twinVariants()[0])
		if err != nil || !slices.EqualFunc(e.Arrays, again.Arrays, func(x, y spec.Array) bool {
			return slices.Equal(x.Data, y.Data)
		}) {
			t.Errorf("%s: packed otherwise when it comes packed: %v", name, err)
		}
	}
}
