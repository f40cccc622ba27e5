package work

import (
	"math"
	"testing"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/cvse"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/hrpb"
)

// Rows near each other that share columns fetch a row of B once.
func TestDistinct(t *testing.T) {
	for spec, want := range map[string][2]float64{
		"gen:diagonal,rows=1000":                               {1, 1},
		"gen:vector,rows=1024,cols=100000,v=128,nnz-per-row=5": {1.0 / 128, 1.0 / 128},
		"gen:uniform,rows=5000,cols=1000000,nnz-per-row=4":     {0.99, 1},
		"gen:uniform,rows=1000,cols=10,nnz-per-row=10":         {0.007, 0.01},
		"gen:uniform,rows=10,nnz-per-row=0":                    {1, 1},
	} {
		a, err := gen.CSR(spec)
		if err != nil {
			t.Fatal(err)
		}
		if got := float64(Distinct(a)); got < want[0]*float64(a.NNZ()) || got > math.Ceil(want[1]*float64(a.NNZ())) {
			t.Errorf("%s: %v of %d entries, want %v of them", spec, got, a.NNZ(), want)
		}
		for _, f := range []formats.Format{cvse.Format, hrpb.Format} { // which keep the order of rows
			e, err := f.Encode(a, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := Distinct(e), Distinct(a); got != want {
				t.Errorf("%s in %s: %d, want %d", spec, f.Name, got, want)
			}
		}
	}
}
