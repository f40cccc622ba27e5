// How many uses decide what is chosen, and what of a sample is kept.

package choose

import (
	"fmt"
	"testing"
	"time"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/internal/device"
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

// TestAtBest checks that no sample is predicted to take less than what rules candidates out before they are packed,
// and so that what is chosen is the fastest of all.
func TestAtBest(t *testing.T) {
	devices := snapshotDevices()
	for _, m := range snapshotMatrices {
		a, err := gen.CSR(m)
		if err != nil {
			t.Fatal(err)
		}
		for _, prec := range []dtype.Type{dtype.F16, dtype.F32} {
			p := packingsOf(t, formats.ConvertTo(a, prec.Storage()), work.Work{Precision: prec}, smallSample(a.NNZ()))
			for _, name := range []string{"cuda-9.0", "vulkan-lanes"} {
				for _, n := range []int{1, 128} {
					checkAtBest(t, fmt.Sprintf("%s, %s, %v, N=%d", name, m, prec, n), devices[name], p, n)
				}
			}
		}
	}
}

func checkAtBest(t *testing.T, what string, d *device.Device, p *packings, n int) {
	w, pr := *p.w, p.predictor(t, d, n)
	w.Cols = n
	chosen, err := Choose(t.Context(), d, &w)
	if err != nil {
		t.Fatal(err)
	}
	over := map[string]time.Duration{} // of those that were not packed
	for _, c := range chosen {
		over[c.name()] = c.over
		if c.over == 0 && !c.quick() && c.atBest(d, pr, &w) > c.cost {
			t.Errorf("%s: %s takes %v at best, and is predicted to take %v", what, c.name(), c.atBest(d, pr, &w), c.cost)
		}
	}
	for _, c := range p.candidates(t, d) {
		p.predict(t, c, d, pr)
		if !c.quick() && c.atBest(d, pr, &w) > c.cost {
			t.Errorf("%s: %s takes %v at best, and is predicted to take %v", what, c.name(), c.atBest(d, pr, &w), c.cost)
		}
		if over[c.name()] > 0 && chosen[0].cost > c.cost {
			t.Errorf("%s: %s is chosen, %v, and %s, which was not packed, takes %v", what, chosen[0].name(),
				chosen[0].cost, c.name(), c.cost)
		}
	}
}
