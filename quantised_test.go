// Quantised matrices by the front door.

package spmm_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
)

// weights is a matrix of half zeros.
func weights(t *testing.T, rows, cols int) *formats.CSR[float32] {
	t.Helper()
	s, err := gen.Parse(fmt.Sprintf("gen:uniform,rows=%d,cols=%d,density=0.5", rows, cols), 1)
	if err != nil {
		t.Fatal(err)
	}
	a, err := s.Generate(context.Background(), formats.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestQuantise: a matrix that is quantised when it is prepared, and one that comes so, give the product of its 8-bit
// values and scales, on either side.
func TestQuantise(t *testing.T) {
	ctx := context.Background()
	dev, err := spmm.Open(ctx, "cpu")
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	a := weights(t, 190, 300)
	for _, kind := range []dtype.Type{dtype.S8, dtype.E4M3} {
		q, _, err := formats.Quantise(a, kind)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name string
			a    formats.Encoded
			o    spmm.Options
		}{
			{"quantised by Prepare", a, spmm.Options{Quantise: kind}},
			{"bf16", a, spmm.Options{Quantise: kind, Precision: dtype.BF16, Format: "lanestream"}},
			{"given", q, spmm.Options{}},
			{"filled with zeros", q, spmm.Options{Format: "dense"}},
			{"given, on the right of a transpose", q, spmm.Options{Right: true, Transpose: true}},
			{"the transpose of the transpose", a.Transpose(), spmm.Options{Quantise: kind, Transpose: true}},
		} {
			p, err := spmm.Prepare(ctx, dev, c.a, c.o)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if i := p.Info(); i.Quantised != kind || i.NNZ != a.NNZ() {
				t.Errorf("%s: %+v", c.name, i)
			}
			b := formats.ConvertDense[half.F16](gen.Dense(300, 21, 2, gen.Values{}))
			wide := formats.ConvertDense[float32](b)
			if c.o.Precision == dtype.BF16 {
				wide = formats.ConvertDense[float32](formats.ConvertDense[half.BF16](b))
			}
			out := formats.NewDense[float32](190, 21)
			if c.o.Right {
				turned := out.Transpose()
				_, err = spmm.Multiply(ctx, p, 1, b.Transpose(), 0, turned)
			} else {
				_, err = spmm.Multiply(ctx, p, 1, b, 0, out)
			}
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			r, err := oracle.Check(ctx, oracle.Problem{A: a, Quantised: q, B: wide, Alpha: 1, Compute: dtype.F16,
				Out: dtype.F32}, out, 0)
			if err != nil || !r.OK() {
				t.Errorf("%s: %+v %v", c.name, r.First, err)
			}
			if err := spmm.SetValues(ctx, p, a.Val); !errors.Is(err, spmm.ErrUnsupported) ||
				!strings.Contains(err.Error(), "quantise") {
				t.Errorf("%s: SetValues: %v", c.name, err)
			}
			p.Close()
		}
		for _, c := range []struct {
			a    formats.Encoded
			o    spmm.Options
			want string
		}{
			{q, spmm.Options{Transpose: true}, "Options.Transpose: a matrix that is quantised"},
			{q, spmm.Options{Right: true}, "Options.Right: a matrix that is quantised"},
			{q, spmm.Options{Precision: dtype.TF32}, "Options.Precision: tf32"},
			{q, spmm.Options{Mode: spmm.Reproducible}, "Options.Mode: a quantised matrix"},
			{q, spmm.Options{Quantise: dtype.S8 + dtype.E4M3 - kind}, "Options.Quantise: "},
			{q, spmm.Options{Format: "csr"}, "no kernel for format csr with values of " + kind.String()},
			{&formats.CSR[float32]{Rows: 1, Cols: 1, RowPtr: []int64{0, 1}, ColIdx: []int32{0},
				Val: []float32{float32(math.Inf(1))}}, spmm.Options{Quantise: kind},
				"Options.Quantise: row 0, columns from 0 on: +Inf"},
		} {
			if p, err := spmm.Prepare(ctx, dev, c.a, c.o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%+v: %v, want an error with %q", c.o, err, c.want)
				if p != nil {
					p.Close()
				}
			}
		}
	}
}
