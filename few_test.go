// Tensors of few columns, which on some devices have their rows side by side: every plan takes them.

package spmm_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/formats"
)

func TestFewColumns(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev *spmm.Device) {
		r := rand.New(rand.NewPCG(5, 6))
		a := sparse[float32](r, 300, 170, 9)
		plans := map[string]*spmm.Plan{}
		for _, format := range []string{"csr", "hrpb", "cvse"} {
			p, err := spmm.Prepare(ctx, dev, a, spmm.Options{Format: format})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			plans[format] = p
		}
		for n := 1; n <= 5; n++ {
			b := dense[float32](r, a.Cols, n, 0, false)
			x, y, err := spmm.TensorsFor[float32, float32](plans["csr"], n)
			if err != nil {
				t.Fatal(err)
			}
			if err := x.Upload(ctx, b); err != nil {
				t.Fatal(err)
			}
			for format, p := range plans {
				t.Run(fmt.Sprintf("%s, %d columns", format, n), func(t *testing.T) {
					got := formats.NewDense[float32](a.Rows, n)
					want := expected(2, a, b, 0, got)
					if _, err := p.Run(ctx, 2, x, 0, y); err != nil {
						t.Fatal(err)
					}
					if err := y.Download(ctx, got); err != nil {
						t.Fatal(err)
					}
					if !got.Equal(want) {
						t.Error("wrong result")
					}
				})
			}
			if err := errors.Join(x.Close(), y.Close()); err != nil {
				t.Fatal(err)
			}
		}
	})
}
