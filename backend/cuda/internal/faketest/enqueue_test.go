// The calls that enqueued products make.

//go:build cuda && cgo && linux && (amd64 || arm64)

package faketest

import (
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/backendtest"
	"github.com/spmmrun/spmm/formats"
)

// Products, sampled products and new values like those before are a launch each: nothing is allocated, recorded or
// awaited, wherever their tensors are moved.
func TestEnqueueCalls(t *testing.T) {
	t.Setenv("SPMM_CACHE", t.TempDir())
	b := open(t)
	dev, ctx := spmm.NewDevice(b), t.Context()
	a := &formats.CSR[float32]{Rows: 64, Cols: 64, RowPtr: make([]int64, 65)}
	for i := range a.Rows {
		for j := i % 8; j < a.Cols; j += 8 {
			a.ColIdx, a.Val = append(a.ColIdx, int32(j)), append(a.Val, 1)
		}
		a.RowPtr[i+1] = int64(len(a.Val))
	}
	plan, err := spmm.Prepare(ctx, dev, a, spmm.Options{Format: "csr"})
	if err != nil {
		t.Fatal(err)
	}
	defer plan.Close()
	// The memory of buffers stands for that of the program.
	over := func(rows, cols int) (spmm.Operand, [2]uintptr) {
		var at [2]uintptr
		for i := range at {
			buffer := backendtest.Alloc(t, b, int64(rows*cols*4))
			if at[i], err = b.(backend.Sharer).Address(buffer); err != nil {
				t.Fatal(err)
			}
		}
		x, err := spmm.TensorOver[float32](dev, at[0], rows, cols, cols, false)
		if err != nil {
			t.Fatal(err)
		}
		return x, at
	}
	x, ats := over(64, 32)
	y, _ := over(64, 32)
	c, _ := over(64, 32)
	s, _ := over(1, len(a.Val))
	round := func(i int) {
		for _, err := range []error{
			spmm.Move(x, ats[i%2]), plan.Enqueue(0, 1, x, 0, c), plan.EnqueueSample(0, x, y, s), plan.EnqueueValues(0, s),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	round(0)
	round(1)
	logged := calls(t)
	const rounds = 100
	for i := range rounds {
		round(i)
	}
	list := logged()
	if launches := count(list, "cuLaunchKernel"); launches != 3*rounds {
		t.Errorf("%d launches, want %d", launches, 3*rounds)
	}
	for _, call := range list {
		switch call {
		case "cuLaunchKernel", "cuStreamIsCapturing", "cuCtxPushCurrent_v2", "cuCtxPopCurrent_v2", "":
		default:
			t.Errorf("a call of %s", call)
		}
	}
}
