// Sampled products on every device present.

package sddmm_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/shaders/sddmm"
	"github.com/spmmrun/spmm/shaders/shadertest"
)

// operand returns a rows×k matrix of small integers with NaN in the padding, whose products and sums are exact.
func operand(r *rand.Rand, t dtype.Type, rows, k, ld int) shadertest.Array {
	x := make([]float64, rows*ld)
	for i := range x {
		if x[i] = float64(r.IntN(9) - 4); i%ld >= k {
			x[i] = math.NaN()
		}
	}
	return shadertest.NewArray(t, x)
}

// sums is the type of the results for X and Y of a type.
func sums(t dtype.Type) dtype.Type {
	if t == dtype.F64 {
		return t
	}
	return dtype.F32
}

func TestSampled(t *testing.T) {
	shadertest.Each(t, func(t *testing.T, dev backend.Device) {
		for _, v := range shadertest.Variants(dev, sddmm.Program) {
			for _, k := range []int{0, 1, 3, 7, 8, 32, 65, 128, 300} {
				for _, entries := range []int{1, 7, 129, 1500} {
					for _, scaled := range []bool{false, true} {
						t.Run(fmt.Sprintf("%s/K=%d/%d/%v", v.Name, k, entries, scaled), func(t *testing.T) {
							r := rand.New(rand.NewPCG(uint64(k), uint64(entries)))
							const m, n = 70, 50
							ldx, ldy := (k+7)&^7, (k+7)&^7+8
							x, y := operand(r, v.In, m, k, ldx), operand(r, v.In, n, k, ldy)
							rows, cols, scale := make([]uint32, entries), make([]uint32, entries), make([]float64, entries)
							for e := range rows { // ascending rows, of very different lengths
								rows[e], cols[e], scale[e] = uint32(e*e*m/(entries*entries)), r.Uint32N(n), float64(r.IntN(5)-2)
							}
							l, err := sddmm.Launch(v, sddmm.Op{Entries: int64(entries), K: k, LDX: ldx, LDY: ldy, Scaled: scaled})
							if err != nil {
								t.Fatal(err)
							}
							s := shadertest.NewArray(sums(v.In), make([]float64, entries+4))
							for e := range s.Len() {
								s.Set(e, -77)
							}
							shadertest.Fold(sddmm.Program, &l)
							shadertest.Run(t, dev, sddmm.Program, l, backend.Bytes(rows), backend.Bytes(cols), x.Data, y.Data,
								shadertest.NewArray(sums(v.In), scale).Data, s.Data)
							for e := range s.Len() {
								want := -77.0 // behind the last entry
								if e < entries {
									want = 0
									for i := range k {
										want += x.At(int(rows[e])*ldx+i) * y.At(int(cols[e])*ldy+i)
									}
									if scaled {
										want *= scale[e]
									}
								}
								if s.At(e) != want {
									t.Fatalf("entry %d is %v, want %v", e, s.At(e), want)
								}
							}
						})
					}
				}
			}
		}
	})
}

func TestRefuses(t *testing.T) {
	for _, v := range sddmm.Program.Variants {
		for op, unsupported := range map[sddmm.Op]bool{
			{Entries: -1}: false, {Entries: 1, K: 9, LDX: 8, LDY: 16}: false, {Entries: 1, K: 3, LDX: 8, LDY: 4}: false,
			{Entries: math.MaxUint32, K: 8, LDX: 8, LDY: 8}: true, {Entries: 1, K: 8, LDX: 8, LDY: 1 << 30}: true,
		} {
			_, err := sddmm.Launch(v, op)
			shadertest.Refused(t, fmt.Sprintf("%s, %+v", v.Name, op), err, unsupported)
		}
	}
}
