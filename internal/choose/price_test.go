// How many uses decide what is chosen, and what of a sample is kept.

package choose

import (
	"testing"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/internal/work"
)

// TestUses checks that for one use the matrix is in the format that packs at once, and for many in that which
// multiplies the fastest.
func TestUses(t *testing.T) {
	a, err := gen.CSR("gen:vector,rows=4096,cols=4096,v=8,density=0.05")
	if err != nil {
		t.Fatal(err)
	}
	d := snapshotDevices()["cuda-9.0"]
	first := map[int]*Candidate{}
	for _, uses := range []int{0, 1, 1 << 30} {
		cs, err := Choose(t.Context(), d, resolve(t, a, work.Work{Precision: dtype.F16, Cols: 128, Uses: uses}))
		if err != nil {
			t.Fatal(err)
		}
		first[uses] = cs[0]
	}
	if got := first[1].Kernel.Name; got != "csr" {
		t.Errorf("for one use: %s, want csr", got)
	}
	if first[0].Kernel.Name == "csr" || first[1<<30].Kernel.Name != first[0].Kernel.Name {
		t.Errorf("for unknown and 2³⁰ uses: %s and %s, want one other than csr", first[0].name(), first[1<<30].name())
	}
}

// TestPackedOnce checks that a matrix that is its own sample is not packed again.
func TestPackedOnce(t *testing.T) {
	a, err := gen.CSR("gen:uniform,rows=1000,cols=1000,nnz-per-row=8")
	if err != nil {
		t.Fatal(err)
	}
	w := resolve(t, a, work.Work{Precision: dtype.F32, Cols: 32})
	cs, err := Choose(t.Context(), snapshotDevices()["cuda-9.0"], w)
	if err != nil {
		t.Fatal(err)
	}
	p, err := cs[0].Pack(t.Context(), w.A)
	if err != nil {
		t.Fatal(err)
	}
	if p != cs[0].packed || p.Data.NNZ != a.NNZ() {
		t.Errorf("packed anew with %d entries, want what the sample gave with %d", p.Data.NNZ, a.NNZ())
	}
}
