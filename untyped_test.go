// Calls whose element types are values, and streams where there are none.

package spmm_test

import (
	"errors"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
)

// smallPlan is a plan for [[1 0 2] [0 3 0]] on the CPU.
func smallPlan(t *testing.T) (*spmm.Device, *spmm.Plan) {
	t.Helper()
	dev := openCPU(t)
	p, err := spmm.Prepare(t.Context(), dev, &formats.CSR[float32]{
		Rows: 2, Cols: 3, RowPtr: []int64{0, 2, 3}, ColIdx: []int32{0, 2, 1}, Val: []float32{1, 2, 3},
	}, spmm.Options{Format: "csr"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return dev, p
}

func TestBytes(t *testing.T) {
	dev, p := smallPlan(t)
	b32, b64 := []float32{1, 10, 100}, []float64{1, 10, 100}
	b16 := []half.F16{half.F16From(1), half.F16From(10), half.F16From(100)}
	bb := []half.BF16{half.BF16From(1), half.BF16From(10), half.BF16From(100)}
	for _, b := range []spmm.Bytes{
		{Type: dtype.F32, Data: backend.Bytes(b32)}, {Type: dtype.F64, Data: backend.Bytes(b64)},
		{Type: dtype.F16, Data: backend.Bytes(b16)}, {Type: dtype.BF16, Data: backend.Bytes(bb)},
	} {
		b.Rows, b.Cols, b.LD = 3, 1, 1
		if err := spmm.SetValuesBytes(t.Context(), p, dtype.F64, backend.Bytes([]float64{1, 2, 3})); err != nil {
			t.Fatal(err)
		}
		c := make([]float32, 2)
		out := spmm.Bytes{Rows: 2, Cols: 1, LD: 1, Type: dtype.F32, Data: backend.Bytes(c)}
		if _, err := spmm.MultiplyBytes(t.Context(), p, 1, b, 0, out); err != nil || c[0] != 201 || c[1] != 30 {
			t.Errorf("B of %v: %v, %v; want [201 30]", b.Type, c, err)
		}
		o, err := spmm.NewTensorOf(dev, b.Type, 3, 1, false)
		if err != nil {
			t.Fatal(err)
		}
		back := b
		back.Data = make([]byte, len(b.Data))
		err = errors.Join(spmm.Transfer(t.Context(), o, b, true), spmm.Transfer(t.Context(), o, back, false))
		if err != nil {
			t.Error(err)
		}
		if string(back.Data) != string(b.Data) {
			t.Errorf("%v: a tensor gave back % x of % x", b.Type, back.Data, b.Data)
		}
		if err := spmm.CloseOperand(o); err != nil {
			t.Error(err)
		}
	}
}

func TestBytesRefusals(t *testing.T) {
	dev, p := smallPlan(t)
	ok := spmm.Bytes{Rows: 3, Cols: 1, LD: 1, Type: dtype.F32, Data: make([]byte, 12)}
	c := spmm.Bytes{Rows: 2, Cols: 1, LD: 1, Type: dtype.F32, Data: make([]byte, 8)}
	short, typed := ok, ok
	short.Data, typed.Type = make([]byte, 8), dtype.S8
	for name, b := range map[string]spmm.Bytes{"too little data": short, "8-bit elements": typed} {
		if _, err := spmm.MultiplyBytes(t.Context(), p, 1, b, 0, c); err == nil {
			t.Errorf("B with %s was taken", name)
		}
	}
	if spmm.SetValuesBytes(t.Context(), p, dtype.S8, make([]byte, 3)) == nil ||
		spmm.SetValuesBytes(t.Context(), p, dtype.F32, make([]byte, 8)) == nil {
		t.Error("wrong values were taken")
	}
	if _, err := spmm.NewTensorOf(dev, dtype.TF32, 1, 1, false); err == nil {
		t.Error("a tensor of tf32 was made")
	}
	if _, err := spmm.TensorOverOf(dev, dtype.F32, 4096, 1, 1, 1, false); !errors.Is(err, spmm.ErrUnsupported) {
		t.Errorf("memory of others on the CPU: %v", err)
	}
}

func TestNoStreams(t *testing.T) {
	_, p := smallPlan(t)
	b, c, err := spmm.TensorsFor[float32, float32](p, 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"Enqueue": p.Enqueue(0, 1, b, 0, c), "Ready": p.Ready(0, 1, b, 0, c), "EnqueueValues": p.EnqueueValues(0, b),
	} {
		if !errors.Is(err, spmm.ErrUnsupported) {
			t.Errorf("%s on the CPU: %v", name, err)
		}
	}
	if spmm.Move(b, 4096) == nil {
		t.Error("a tensor with memory of its own was moved")
	}
}
