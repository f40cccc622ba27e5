// The softmax of rows on every device present.

package softmax_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/softmax"
)

func TestSoftmax(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var rows []uint32
	var numbers []float64
	for i, n := range []int{1, 2, 7, 8, 9, 0, 31, 100, 255, 256, 1000, 1, 5000, 64} {
		for k := range n {
			rows, numbers = append(rows, uint32(i)), append(numbers, float64(float32(r.NormFloat64()*10)))
			if k%17 == 5 {
				numbers[len(numbers)-1] = -500 // whose exp is 0 in f32
			}
		}
	}
	shadertest.Each(t, func(t *testing.T, dev backend.Device) {
		for _, v := range shadertest.Variants(dev, softmax.Program) {
			t.Run(v.Name, func(t *testing.T) {
				spans, op := softmax.Spans(rows)
				l, err := softmax.Launch(v, op)
				if err != nil {
					t.Fatal(err)
				}
				s := shadertest.NewArray(v.In, numbers)
				shadertest.Fold(softmax.Program, &l)
				shadertest.Run(t, dev, softmax.Program, l, backend.Bytes(spans), s.Data)
				u := 0x1p-23
				if v.In == dtype.F64 {
					u = 0x1p-46
				}
				for first := 0; first < len(rows); {
					last, most, sum := first, math.Inf(-1), 0.0
					for ; last < len(rows) && rows[last] == rows[first]; last++ {
						most = max(most, numbers[last])
					}
					for _, x := range numbers[first:last] {
						sum += math.Exp(x - most)
					}
					for i := first; i < last; i++ {
						want := math.Exp(numbers[i]-most) / sum
						bound := (float64(last-first)+2*math.Abs(numbers[i]-most)+80)*u*want + 0x1p-120
						if !(math.Abs(s.At(i)-want) <= bound) {
							t.Fatalf("number %d of a row of %d is %v, want %v within %v", i-first, last-first, s.At(i), want, bound)
						}
					}
					first = last
				}
			})
		}
	})
}

func TestRefuses(t *testing.T) {
	for _, v := range softmax.Program.Variants {
		for op, unsupported := range map[softmax.Op]bool{{Short: -1}: false, {Longs: -1}: false, {Short: 1 << 31}: true} {
			_, err := softmax.Launch(v, op)
			shadertest.Refused(t, v.Name, err, unsupported)
		}
	}
}
