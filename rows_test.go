// Copies of rows.

package spmm_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
)

func TestCopyRows(t *testing.T) {
	dev := openCPU(t)
	tensor := func(rows int) *spmm.Tensor[float32] {
		x := newTensor[float32](t, dev, rows, 2, false)
		d := formats.NewDense[float32](rows, 2)
		for i := range d.Data {
			d.Data[i] = float32(i + 10*rows)
		}
		must(t, x.Upload(ctx, d))
		return x
	}
	src, dst := tensor(3), tensor(4)
	list, err := spmm.NewRowList(ctx, dev, []int32{2, 0})
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	p, err := spmm.CopyRows(ctx, dst, src, spmm.RowCopy{From: list, Dst: 1})
	if err != nil {
		t.Fatal(err)
	}
	must(t, second(p.Wait(ctx)))
	got := formats.NewDense[float32](4, 2)
	if err := dst.Download(ctx, got); err != nil || !slices.Equal(got.Data, []float32{40, 41, 34, 35, 30, 31, 46, 47}) {
		t.Errorf("%v, %v", got.Data, err)
	}
	for _, c := range []spmm.RowCopy{
		{Count: 4}, {Count: -1}, {Count: 1, Src: 3}, {Count: 1, Dst: -1}, {From: list, Dst: 3}, {To: list, Dst: 2}, {From: list, To: list},
	} {
		if _, err := spmm.CopyRows(ctx, dst, src, c); err == nil {
			t.Errorf("%+v is not refused", c)
		}
	}
	if _, err := spmm.NewRowList(ctx, dev, []int32{1, -1}); err == nil {
		t.Error("a row -1")
	}
	src.Close()
	if _, err := spmm.CopyRows(ctx, dst, src, spmm.RowCopy{Count: 1}); !errors.Is(err, backend.ErrClosed) {
		t.Errorf("from a closed tensor: %v", err)
	}
	if err := dst.Close(); err != nil { // which waits for calls that use it
		t.Error(err)
	}
}
