// What is chosen on a device that has an H200's description and rates.

package reproducible

import (
	"slices"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/device/devicetest"
	"github.com/spmmrun/spmm/internal/model"
	"github.com/spmmrun/spmm/internal/work"
	kernel "github.com/spmmrun/spmm/shaders/rfx"
)

// largeGPU has what an NVIDIA H200 lists and what was measured on it.
func largeGPU() *device.Device {
	var shapes []backend.MatrixShape
	for _, k := range []uint32{16, 32} {
		shapes = append(shapes, backend.MatrixShape{M: 16, N: 8, K: k, A: dtype.S8, B: dtype.S8, C: dtype.S32, D: dtype.S32})
	}
	caps := devicetest.H200(backend.CodePTX, shapes...)
	caps.MaxBinding = 1 << 40
	rates := devicetest.H200Rates(map[string]float64{"16×8×32 s8": 1.33e15, "16×8×16 s8": 1e15})
	rates.FMA64 = 6.4e13
	return devicetest.New(caps, rates)
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

// All of B is brought to fixed point, also where a kernel fetches few of its rows, or whole blocks.
func TestAllOfB(t *testing.T) {
	for _, v := range kernel.Format.Variants {
		w := inFixedPoint(model.Work{Bytes: 1000, B: 8}, v, dtype.F16, 100, 4, 1)
		if all := int64(100 * 4 * 2); w.B != all || w.Bytes < 1000-8+all {
			t.Errorf("%s: %+v, want a B of %d bytes", v.Name, w, all)
		}
	}
}

// A panel with a long row takes long, whatever the others: then rows are taken.
func TestLongPanels(t *testing.T) {
	for more, panels := range map[int]bool{0: true, 7000: false} {
		w, err := work.Work{P: rfx.P15, Precision: dtype.F32, Cols: 256}.Resolve(alike(more), work.Form{})
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
