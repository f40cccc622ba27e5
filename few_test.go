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
			p := prepare(t, dev, a, spmm.Options{Format: format})
			defer p.Close()
			plans[format] = p
		}
		for n := 1; n <= 5; n++ {
			b := dense[float32](r, a.Cols, n, 0, false)
			x, y := tensorsFor[float32, float32](t, plans["csr"], n)
			must(t, x.Upload(ctx, b))
			for format, p := range plans {
				t.Run(fmt.Sprintf("%s, %d columns", format, n), func(t *testing.T) {
					got := formats.NewDense[float32](a.Rows, n)
					want := expected(2, a, b, 0, got)
					must(t, second(p.Run(ctx, 2, x, 0, y)))
					must(t, y.Download(ctx, got))
					if !got.Equal(want) {
						t.Error("wrong result")
					}
				})
			}
			must(t, errors.Join(x.Close(), y.Close()))
		}
	})
}
