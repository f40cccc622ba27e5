// Copies of rows.

package plan_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/internal/plan"
)

func TestCopyRows(t *testing.T) {
	dev, ctx := openCPU(t), t.Context()
	tensor := func(rows int) *plan.Tensor {
		x, err := dev.NewTensor(plan.Shape{Rows: rows, Cols: 2, Type: dtype.F32})
		data := make([]float32, 2*rows)
		for i := range data {
			data[i] = float32(i + 10*rows)
		}
		if err == nil {
			err = x.Write(ctx, plan.Host{Data: backend.Bytes(data), LD: 2})
		}
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	src, dst := tensor(3), tensor(4)
	list, err := dev.NewRowList(ctx, []int32{2, 0})
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	p, err := dev.CopyRows(ctx, dst, src, plan.RowCopy{From: list, Dst: 1})
	if err == nil {
		_, err = p.Wait(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	got := make([]float32, 8)
	err = dst.Read(ctx, plan.Host{Data: backend.Bytes(got), LD: 2})
	if err != nil || !slices.Equal(got, []float32{40, 41, 34, 35, 30, 31, 46, 47}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, c := range []plan.RowCopy{
		{Count: 4}, {Count: -1}, {Count: 1, Src: 3}, {Count: 1, Dst: -1}, {From: list, Dst: 3}, {To: list,
			Dst: 2}, {From: list, To: list},
	} {
		if _, err := dev.CopyRows(ctx, dst, src, c); err == nil {
			t.Errorf("%+v is not refused", c)
		}
	}
	if _, err := dev.NewRowList(ctx, []int32{1, -1}); err == nil {
		t.Error("a row -1 is not refused")
	}
	src.Close()
	if _, err := dev.CopyRows(ctx, dst, src, plan.RowCopy{Count: 1}); !errors.Is(err, backend.ErrClosed) {
		t.Errorf("from a closed tensor: %v", err)
	}
	if err := dst.Close(); err != nil { // which waits for calls that use it
		t.Error(err)
	}
}
