// What tests make on the way to what they test: an error ends them.

package spmm_test

import (
	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/formats"
)

// tester is a test, a benchmark, or a property's.
type tester interface {
	Helper()
	Fatal(...any)
}

func must(t tester, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// second returns the error of a call that returns something else too.
func second[T any](_ T, err error) error { return err }

func prepare(t tester, dev *spmm.Device, a formats.Encoded, o spmm.Options) *spmm.Plan {
	t.Helper()
	plan, err := spmm.Prepare(ctx, dev, a, o)
	must(t, err)
	return plan
}

func newTensor[T formats.Value](t tester, dev *spmm.Device, rows, cols int, colMajor bool) *spmm.Tensor[T] {
	t.Helper()
	x, err := spmm.NewTensor[T](dev, rows, cols, colMajor)
	must(t, err)
	return x
}

func tensorsFor[B, C formats.Value](t tester, plan *spmm.Plan, n int) (*spmm.Tensor[B], *spmm.Tensor[C]) {
	t.Helper()
	b, c, err := spmm.TensorsFor[B, C](plan, n)
	must(t, err)
	return b, c
}
