// What is chosen on a device that has an H200's description and rates.

package reproducible

import (
	"slices"
	"testing"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/model"
	"github.com/spmmrun/spmm/internal/work"
	kernel "github.com/spmmrun/spmm/shaders/rfx"
)

// described is a device that has a description and nothing else.
type described struct {
	backend.Device
	caps backend.Caps
}

func (d described) Caps() backend.Caps            { return d.caps }
func (d described) Info() backend.Info            { return backend.Info{Backend: "described", Name: "large GPU"} }
func (d described) Memory() (int64, int64, error) { return 100 << 30, 140 << 30, nil }

// largeGPU has what an NVIDIA H200 lists and what was measured on it.
func largeGPU() *device.Device {
	var shapes []backend.MatrixShape
	for _, k := range []uint32{16, 32} {
		shapes = append(shapes, backend.MatrixShape{M: 16, N: 8, K: k, A: dtype.S8, B: dtype.S8, C: dtype.S32, D: dtype.S32})
	}
	d := device.New(described{caps: backend.Caps{
		Code: backend.CodePTX, Arch: 90, SubgroupMin: 32, SubgroupMax: 32, SharedBytes: 227 << 10, MaxInvocations: 1024,
		MaxLocal: [3]uint32{1024, 1024, 64}, F16: true, Int8: true, Units: 132, Matrix: shapes, MaxBinding: 1 << 40,
	}})
	d.Speed.Rates = &model.Rates{Rates: api.Rates{
		Copy: []api.Bandwidth{{Bytes: 1 << 21, PerSecond: 0.55e12}, {Bytes: 1 << 23, PerSecond: 2e12},
			{Bytes: 1 << 25, PerSecond: 4.9e12}, {Bytes: 1 << 27, PerSecond: 3.7e12}, {Bytes: 1 << 29, PerSecond: 3.9e12}},
		Cache: 14e12, FMA: 6.5e13, FMA64: 6.4e13,
		Matrix: map[string]float64{"16×8×32 s8": 1.33e15, "16×8×16 s8": 1e15},
	}}
	return d
}

// alike has rows of 24 entries, every eight in the same columns. The first row has that many more.
func alike(more int) *formats.CSR[float32] {
	const rows, each, step = 17000, 24, 677
	a := &formats.CSR[float32]{Rows: rows, Cols: rows, RowPtr: []int64{0}}
	for i := range rows {
		var columns []int32
		for j := range each {
			columns = append(columns, int32((i/8*7919+j*step)%rows))
		}
		for j := 0; i == 0 && j < more; j++ {
			columns = append(columns, int32(2*j+1))
		}
		slices.Sort(columns)
		columns = slices.Compact(columns)
		a.ColIdx = append(a.ColIdx, columns...)
		a.RowPtr = append(a.RowPtr, int64(len(a.ColIdx)))
	}
	a.Val = slices.Repeat([]float32{1}, len(a.ColIdx))
	return a
}

// A panel with a long row takes long, whatever the others: then rows are taken.
func TestLongPanels(t *testing.T) {
	for more, panels := range map[int]bool{0: true, 7000: false} {
		w, err := work.Work{P: rfx.P15, Precision: dtype.F32, Cols: 128}.Resolve(alike(more), work.Form{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := New(largeGPU(), w)
		if err != nil {
			t.Fatal(err)
		}
		kind, why, err := r.Choose(t.Context(), w)
		if err != nil || (kind == kernel.Panels) != panels {
			t.Errorf("%d more entries: %v, %s, %v", more, kind, why, err)
		}
	}
}
