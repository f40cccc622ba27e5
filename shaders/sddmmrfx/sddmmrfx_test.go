// Sampled products in fixed point, to the last bit, on every device present.

package sddmmrfx_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/shaders/sddmmrfx"
	"github.com/spmmrun/spmm/shaders/shadertest"
)

// operand returns a rows×k matrix of numbers of many sizes, with NaN in the padding. Every seventh row has one that is
// not finite.
func operand(r *rand.Rand, t dtype.Type, rows, k, ld int) shadertest.Array {
	x := make([]float64, rows*ld)
	for i := range x {
		switch {
		case i%ld >= k:
			x[i] = math.NaN()
		case i/ld%7 == 6 && i%ld == i/ld%k:
			x[i] = []float64{math.Inf(1), math.Inf(-1), math.NaN()}[i/ld%3]
		case r.IntN(4) > 0:
			x[i] = math.Ldexp(r.Float64()-0.5, r.IntN(30)-20)
		}
	}
	return shadertest.NewArray(t, x)
}

// row returns k elements of a matrix, and their range.
func row(m shadertest.Array, i, ld, k int) (x []float32, r rfx.Range) {
	for j := range k {
		x = append(x, float32(m.At(i*ld+j)))
		r = r.Join(rfx.RangeOf(x[j]))
	}
	return x, r
}

func TestSampled(t *testing.T) {
	shadertest.Each(t, func(t *testing.T, dev backend.Device) {
		for _, v := range shadertest.Variants(dev, sddmmrfx.Program) {
			for _, elem := range []dtype.Type{dtype.F32, dtype.F16, dtype.BF16} {
				for _, p := range rfx.All {
					for _, k := range []int{1, 31, 130} {
						for _, scaled := range []bool{false, true} {
							t.Run(fmt.Sprintf("%s/%v/p=%d/K=%d/%v", v.Name, elem, p, k, scaled), func(t *testing.T) {
								sampled(t, dev, elem, p, k, scaled)
							})
						}
					}
				}
			}
		}
	})
}

func sampled(t *testing.T, dev backend.Device, elem dtype.Type, p rfx.P, k int, scaled bool) {
	const m, n, entries = 33, 21, 200
	r := rand.New(rand.NewPCG(uint64(k), uint64(p)))
	op := sddmmrfx.Op{Entries: entries, M: m, N: n, K: k, Type: elem, LDX: (k + 7) &^ 7, LDY: (k+7)&^7 + 8, P: p,
		Scaled: scaled}
	x, y := operand(r, elem, m, k, op.LDX), operand(r, elem, n, k, op.LDY)
	rows, cols, factors := make([]uint32, entries), make([]uint32, entries), make([]float32, entries)
	for e := range rows {
		rows[e], cols[e], factors[e] = uint32(e*m/entries), r.Uint32N(n), float32(math.Ldexp(r.Float64()-0.5, r.IntN(90)-70))
	}
	v, err := sddmmrfx.Variant(dev.Caps())
	if err != nil {
		t.Fatal(err)
	}
	l, err := sddmmrfx.Launch(v, op)
	if err != nil {
		t.Fatal(err)
	}
	shadertest.Fold(sddmmrfx.Program, &l)
	got := make([]float32, entries+4)
	for e := range got {
		got[e] = -77
	}
	shadertest.Run(t, dev, sddmmrfx.Program, l, backend.Bytes(rows), backend.Bytes(cols), x.Data, y.Data,
		backend.Bytes(factors), make([]byte, 4*(m+n+2)), backend.Bytes(got))
	for e, s := range got {
		want := float32(-77) // behind the last entry
		if e < entries {
			a, ra := row(x, int(rows[e]), op.LDX, k)
			b, rb := row(y, int(cols[e]), op.LDY, k)
			want = rfx.Dot(p, ra, rb, a, b)
			if scaled {
				want = rfx.Scale(factors[e], want, 0, 0)
			}
		}
		if math.Float32bits(s) != math.Float32bits(want) {
			t.Fatalf("entry %d is %v, %#x, want %v, %#x", e, s, math.Float32bits(s), want, math.Float32bits(want))
		}
	}
}

func TestRefuses(t *testing.T) {
	good := sddmmrfx.Op{Entries: 1, M: 1, N: 1, K: 8, Type: dtype.F32, LDX: 8, LDY: 8, P: rfx.P23}
	for _, v := range sddmmrfx.Program.Variants {
		if _, err := sddmmrfx.Launch(v, good); err != nil {
			t.Error(err)
		}
		for what, x := range map[string]struct {
			change      func(op *sddmmrfx.Op)
			unsupported bool
		}{
			"no precision":              {func(op *sddmmrfx.Op) { op.P = 5 }, false},
			"a short leading dimension": {func(op *sddmmrfx.Op) { op.LDX = 0 }, false},
			"f64":                       {func(op *sddmmrfx.Op) { op.Type = dtype.F64 }, true},
			"too many entries":          {func(op *sddmmrfx.Op) { op.Entries = math.MaxUint32 }, true},
		} {
			op := good
			x.change(&op)
			_, err := sddmmrfx.Launch(v, op)
			shadertest.Refused(t, v.Name+", "+what, err, x.unsupported)
		}
	}
}
