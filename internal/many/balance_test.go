// Rows are cut for several devices by what the device model predicts, not by their entries alone.

package many_test

import (
	"testing"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/many"
	"github.com/spmmrun/spmm/internal/work"
)

func TestCutByPrediction(t *testing.T) {
	t.Setenv("SPMM_CACHE", t.TempDir())
	const rows, short = 20000, 15000
	a := &formats.CSR[float32]{Rows: rows, Cols: 64, RowPtr: []int64{0}}
	for i := range rows {
		n := 1
		if i >= short {
			n = 30
		}
		for j := range n {
			a.ColIdx, a.Val = append(a.ColIdx, int32(i%32+j)), append(a.Val, 1)
		}
		a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
	}
	for name, tt := range map[string]struct {
		model  string
		lo, hi int // of the first device's rows
	}{
		"rows take all the time": {`{"version": 3, "code": "go", "measured": {"device": "slow rows"}, "costs": [{"variants": ["csr/*"], "start_us": 500}]}`, rows * 9 / 20, rows * 11 / 20},
		"entries do":             {`{"version": 3, "code": "go", "measured": {"device": "slow entries"}, "costs": [{"variants": ["csr/*"], "entry_columns": 1e4}]}`, short, rows},
	} {
		devs := []*device.Device{openCPU(t), openCPU(t)}
		writeModel(t, devs[0], tt.model)
		w := resolve(t, a, work.Work{Format: "csr", Cols: 8})
		g, err := many.New(t.Context(), devs, w, many.Sharing{Split: api.ByRows})
		if err != nil {
			t.Fatal(err)
		}
		if n := g.Parts()[0].Rows; n < tt.lo || n > tt.hi {
			t.Errorf("%s: the first of two devices has %d of %d rows, want %d to %d", name, n, rows, tt.lo, tt.hi)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	}
}
