// Data and sums of 64 bits through the front door.

package spmm_test

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
)

// Neither A, B and C nor alpha and beta lose digits on the way; devices without kernels for f64 say so.
func TestFloat64(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	a := &formats.CSR[float64]{Rows: 40, Cols: 30, RowPtr: []int64{0}}
	for i := range a.Rows {
		for j := range a.Cols {
			if (i+j)%3 == 0 {
				a.ColIdx, a.Val = append(a.ColIdx, int32(j)), append(a.Val, r.Float64()-0.5)
			}
		}
		a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
	}
	random := func(rows, cols int) *formats.Dense[float64] {
		d := formats.NewDense[float64](rows, cols)
		for i := range d.Data {
			d.Data[i] = r.Float64() - 0.5
		}
		return d
	}
	const alpha, beta = 1.0 / 3, -1.0 / 7
	b, c := random(30, 11), random(40, 11)
	eachDevice(t, func(t *testing.T, dev *spmm.Device) {
		plan, err := spmm.Prepare(ctx, dev, a, spmm.Options{})
		if errors.Is(err, spmm.ErrUnsupported) && dev.Info().Backend != "cpu" {
			if _, err := spmm.NewTensor[float64](dev, 2, 2, false); !errors.Is(err, spmm.ErrUnsupported) {
				t.Errorf("a tensor of f64: %v", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		defer plan.Close()
		if got := plan.Info().Precision; got != dtype.F64 {
			t.Errorf("precision %v", got)
		}
		out := c.Layout(false, 0)
		must(t, second(spmm.Multiply(ctx, plan, alpha, b, beta, out)))
		for i := range a.Rows {
			for j := range b.Cols {
				number := func(x float64) *big.Float { return new(big.Float).SetPrec(300).SetFloat64(x) }
				sum := number(0)
				for e := a.RowPtr[i]; e < a.RowPtr[i+1]; e++ {
					sum.Add(sum, new(big.Float).Mul(number(a.Val[e]), number(b.At(int(a.ColIdx[e]), j))))
				}
				sum.Mul(sum, number(alpha))
				sum.Add(sum, new(big.Float).Mul(number(beta), number(c.At(i, j))))
				want, _ := sum.Float64()
				if got := out.At(i, j); !(math.Abs(got-want) <= 0x1p-50) {
					t.Fatalf("C[%d,%d] is %v, want %v", i, j, got, want)
				}
			}
		}
	})
	if err := (spmm.Options{Mode: spmm.Reproducible, Precision: dtype.F64}).Validate(); err == nil {
		t.Error("reproducible mode takes f64")
	}
	dev, err := spmm.Open(ctx, "cpu")
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	if _, err := spmm.Prepare(ctx, dev, a, spmm.Options{Mode: spmm.Reproducible}); !errors.Is(err, spmm.ErrUnsupported) {
		t.Errorf("a matrix of f64 in reproducible mode: %v", err)
	}
	if _, err := spmm.Prepare(ctx, dev, a, spmm.Options{Format: "cvse"}); !errors.Is(err, spmm.ErrUnsupported) {
		t.Errorf("a matrix of f64 in cvse: %v", err)
	}
}
