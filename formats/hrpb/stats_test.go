// Stats, and the synergy that they tell.

package hrpb_test

import (
	"context"
	"os"
	"testing"

	diff "github.com/google/go-cmp/cmp"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/hrpb"
	"github.com/spmmrun/spmm/formats/load"
)

func TestStats(t *testing.T) {
	m, err := hrpb.Encode(small(), hrpb.Options{BlockCols: 8})
	if err != nil {
		t.Fatal(err)
	}
	want := hrpb.Stats{
		// 8 columns, 2 sizes, 12 words of the block, a part of 4.
		Stats:  formats.Stats{StoredBytes: 4 * (8 + 2 + 12 + 4), Slots: 128, Fill: 5. / 128, MACs: 128, Gathers: 5},
		Bricks: 2, ActiveCols: 5, Alpha: 5. / 128, Intensity: 20, Heaviest: 1, Parts: 1,
	}
	if d := diff.Diff(want, m.Stats()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for alpha, want := range map[float64]string{0: "low", 0.12: "low", 0.125: "medium", 0.25: "high", 1: "high"} {
		if got := (hrpb.Stats{Alpha: alpha}).Synergy().String(); got != want {
			t.Errorf("synergy of %v is %s, want %s", alpha, got, want)
		}
	}
}

// TestSynergy holds the synergy of real matrices against what is known of them: a graph of co-authors, numbered without
// regard to the graph, is barely denser than one entry a column; a structure's stiffness matrix is in between. Where
// SPMM_NOTREDAME names a copy of SuiteSparse's NotreDame_www.mtx.gz, that of the web graph is checked too: the paper
// says "nearly 10 %" (§1).
func TestSynergy(t *testing.T) {
	files := map[string][2]float64{ // least and greatest alpha
		"../../testdata/matrices/ca-CondMat.mtx.gz": {0.0625, 0.066},
		"../../testdata/matrices/dwt_992.mtx.gz":    {0.125, 0.25},
	}
	if f := os.Getenv("SPMM_NOTREDAME"); f != "" {
		files[f] = [2]float64{0.09, 0.13}
	}
	for file, want := range files {
		a, err := load.File(context.Background(), file, load.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m, err := hrpb.Encode(a, hrpb.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s := m.Stats()
		t.Logf("%s: alpha %.4f (%v), intensity %.0f, %d bricks, %.2f active columns an entry",
			file, s.Alpha, s.Synergy(), s.Intensity, s.Bricks, float64(s.ActiveCols)/float64(a.NNZ()))
		if s.Alpha < want[0] || s.Alpha > want[1] {
			t.Errorf("%s: alpha %v, want %v to %v", file, s.Alpha, want[0], want[1])
		}
		if err := m.Validate(); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}
