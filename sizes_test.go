// Sizes that cannot be: one error, at once, and nothing allocated.

package spmm_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/half"
)

func TestSizes(t *testing.T) {
	const huge = math.MaxInt
	dev, s := openSmall(t, 100_000)
	plan := prepare(t, dev, sparse[float32](rand.New(rand.NewPCG(1, 2)), 700, 200, 3), spmm.Options{Format: "csr"})
	defer plan.Close()
	tensor := func(rows, cols int) error {
		_, err := spmm.NewTensor[float32](dev, rows, cols, false)
		return err
	}
	column := func(rows, cols int) error {
		_, err := spmm.NewTensor[half.F16](dev, rows, cols, true)
		return err
	}
	pair := func(n int) error {
		_, _, err := spmm.TensorsFor[float32, float32](plan, n)
		return err
	}
	before := s.live
	type test struct {
		name string
		err  error
		is   error
		says string
	}
	tests := []test{
		{"rows below 0", tensor(-1, 5), nil, "tensor of -1×5: -1 rows: must be 0 or more"},
		{"columns below 0", column(5, -7), nil, "tensor of 5×-7: -7 columns: must be 0 or more"},
		{"a product beyond memory", tensor(math.MaxInt32, math.MaxInt32), spmm.ErrOutOfMemory, "2147483647×2147483647"},
		{"a product beyond memory by columns", column(math.MaxInt32, math.MaxInt32), spmm.ErrOutOfMemory, "2147483647×2147483647"},
		{"more than a buffer", tensor(1000, 1000), spmm.ErrUnsupported, "at most 100000"},
		{"n below 0", pair(-1), nil, "-1 columns of B: must be 0 or more"},
		{"attainable time of C in tf32", second(plan.Attainable(ctx, 1, dtype.TF32)), nil,
			"C of tf32: want f16, bf16, f32 or f64"},
		{"observing n below 0", second(plan.Observe(ctx, -1, dtype.F32, time.Second)), nil, "-1 columns of B: must be 0 or more"},
		{"observing C in s8", second(plan.Observe(ctx, 1, dtype.S8, time.Second)), nil, "C of s8: want f16, bf16, f32 or f64"},
		{"attainable time of n below 0", second(plan.Attainable(ctx, -1, dtype.F32)), nil,
			"-1 columns of B: must be 0 or more"},
		{"B and C beyond memory", pair(math.MaxInt32), spmm.ErrOutOfMemory, "tensors of 200×2147483647 and 700×2147483647"},
	}
	if huge > math.MaxInt32 {
		tests = append(tests,
			test{"rows beyond 32 bits", tensor(huge, 1), spmm.ErrUnsupported, "rows: at most 2147483647"},
			test{"columns beyond 32 bits", column(0, huge), spmm.ErrUnsupported, "columns: at most 2147483647"},
			test{"n beyond 32 bits", pair(huge), spmm.ErrUnsupported, "columns of B: at most 2147483647"})
	}
	for _, test := range tests {
		switch {
		case test.err == nil || !strings.Contains(test.err.Error(), test.says) || strings.Contains(test.err.Error(), "\n"):
			t.Errorf("%s: %v, want one line with %q", test.name, test.err, test.says)
		case test.is != nil && !errors.Is(test.err, test.is), test.is == nil &&
			(errors.Is(test.err, backend.ErrUnsupported) || errors.Is(test.err, backend.ErrOutOfMemory)):
			t.Errorf("%s: %v, want %v", test.name, test.err, test.is)
		}
	}
	if s.live != before || s.allocated != before {
		t.Errorf("%d buffers were allocated, %d are left", s.allocated-before, s.live-before)
	}
	if err := errors.Join(tensor(0, 0), tensor(0, math.MaxInt32), pair(0), pair(1000)); err != nil {
		t.Errorf("possible sizes: %v", err)
	}
}
