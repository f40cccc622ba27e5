// Copies of rows.

package rowcopy_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/backendtest"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/rowcopy"
	"github.com/spmmrun/spmm/internal/tensor"
	_ "github.com/spmmrun/spmm/portable/cpu"
)

func TestCopyRows(t *testing.T) {
	dev, ctx := device.New(backendtest.Open(t, backendtest.Find(t, "cpu"))), t.Context()
	numbered := func(rows int) *tensor.Tensor {
		x, err := tensor.New(dev, tensor.Shape{Rows: rows, Cols: 2, Type: dtype.F32})
		data := make([]float32, 2*rows)
		for i := range data {
			data[i] = float32(i + 10*rows)
		}
		if err == nil {
			err = x.Write(ctx, tensor.Host{Data: backend.Bytes(data), LD: 2})
		}
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	src, dst := numbered(3), numbered(4)
	list, err := rowcopy.NewList(ctx, dev, []int32{2, 0})
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	p, err := rowcopy.Start(ctx, dev, dst, src, rowcopy.Rows{From: list, Dst: 1})
	if err == nil {
		_, err = p.Wait(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	got := make([]float32, 8)
	err = dst.Read(ctx, tensor.Host{Data: backend.Bytes(got), LD: 2})
	if err != nil || !slices.Equal(got, []float32{40, 41, 34, 35, 30, 31, 46, 47}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, c := range []rowcopy.Rows{
		{Count: 4}, {Count: -1}, {Count: 1, Src: 3}, {Count: 1, Dst: -1}, {From: list, Dst: 3}, {To: list,
			Dst: 2}, {From: list, To: list},
	} {
		if _, err := rowcopy.Start(ctx, dev, dst, src, c); err == nil {
			t.Errorf("%+v is not refused", c)
		}
	}
	if _, err := rowcopy.NewList(ctx, dev, []int32{1, -1}); err == nil {
		t.Error("a row -1 is not refused")
	}
	src.Close()
	if _, err := rowcopy.Start(ctx, dev, dst, src, rowcopy.Rows{Count: 1}); !errors.Is(err, backend.ErrClosed) {
		t.Errorf("from a closed tensor: %v", err)
	}
	if err := dst.Close(); err != nil { // which waits for calls that use it
		t.Error(err)
	}
}
