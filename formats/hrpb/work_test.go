// Parts of panels, and teams for them.

package hrpb_test

import (
	"cmp"
	"slices"
	"testing"

	diff "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/hrpb"
	"github.com/spmmrun/spmm/formats/internal/formatstest"
)

// TestParts: every block is in one part; parts of a panel are balanced; slots are dealt in order.
func TestParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := formatstest.Draw[float32](t, size)
		m, err := hrpb.Encode(a, drawOptions(t))
		if err != nil {
			t.Fatal(err)
		}
		byPanel := slices.Clone(m.Parts)
		slices.SortFunc(byPanel, func(x, y hrpb.Part) int {
			return cmp.Or(cmp.Compare(x.Panel, y.Panel), cmp.Compare(x.First, y.First))
		})
		slots := 0
		for _, s := range m.Splits {
			var of []hrpb.Part
			for _, p := range byPanel {
				if p.Panel == s.Panel {
					of = append(of, p)
				}
			}
			for i, p := range of {
				if int(p.Slot) != int(s.Slot)+i || p.Last-p.First+1 < of[0].Last-of[0].First {
					t.Fatalf("split panel %+v: part %d is %+v", s, i, p)
				}
			}
			if len(of) < 2 {
				t.Fatalf("split panel %+v has %d parts", s, len(of))
			}
			slots += len(of)
		}
		if slots != m.Work().Slots {
			t.Fatalf("%d slots in use, want %d", slots, m.Work().Slots)
		}
		next := uint32(0)
		for _, p := range byPanel {
			if p.First != next || p.Last < p.First || m.PartBlocks > 0 && int(p.Last-p.First) > m.PartBlocks {
				t.Fatalf("part %+v after block %d, at most %d blocks", p, next, m.PartBlocks)
			}
			next = p.Last
		}
		if int(next) != len(m.SizePtr)-1 {
			t.Fatalf("parts end at block %d of %d", next, len(m.SizePtr)-1)
		}
	})
}

// TestWavePart has the paper's example (§5): a panel ten times the others needs no splitting when there
// are ten waves, and much when all panels run at once.
func TestWavePart(t *testing.T) {
	for _, test := range []struct{ panels, blocks, workers, want int }{
		{991, 1000, 100, 11}, // the paper: ten blocks need no splitting
		{991, 1000, 991, 2},
		{100, 700, 0, 0},
		{0, 0, 10, 0},
	} {
		if got := hrpb.WavePart(test.panels, test.blocks, test.workers); got != test.want {
			t.Errorf("WavePart(%d, %d, %d) is %d, want %d", test.panels, test.blocks, test.workers, got, test.want)
		}
	}
}

func TestTeams(t *testing.T) {
	// Panels of 1, 25, 0, 18, 30 and 1 active columns.
	a := &formats.CSR[float32]{Rows: 96, Cols: 40, RowPtr: []int64{0}}
	for i := range a.Rows {
		if i%16 == 5 {
			for c := range []int{1, 25, 0, 18, 30, 1}[i/16] {
				a.ColIdx, a.Val = append(a.ColIdx, int32(c)), append(a.Val, 1)
			}
		}
		a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
	}
	m, err := hrpb.Encode(a, hrpb.Options{BlockCols: 4, PartBlocks: 7})
	if err != nil {
		t.Fatal(err)
	}
	no := uint32(hrpb.NoSlot)
	for _, test := range []struct {
		team        int
		want        []hrpb.Part
		fours, twos int
	}{
		{0, []hrpb.Part{{0, 0, 1, no}, {1, 1, 8, no}, {2, 8, 8, no}, {3, 8, 13, no}, {4, 13, 17, 0}, {4, 17, 21, 1},
			{5, 21, 22, no}}, 0, 0},
		{4, []hrpb.Part{{1, 1, 8, no}, {3, 8, 13, no}, {0, 0, 1, no}, {2, 8, 8, no}, {4, 13, 17, 0}, {4, 17, 21, 1},
			{5, 21, 22, no}}, 0, 2},
		{3, []hrpb.Part{{1, 1, 8, no}, {3, 8, 13, no}, {4, 13, 17, 0}, {4, 17, 21, 1}, {0, 0, 1, no}, {2, 8, 8, no},
			{5, 21, 22, no}}, 1, 3},
	} {
		m.TeamBlocks = test.team
		m.Parts, m.Splits = hrpb.WorkList(m.BlockPtr, m.PartBlocks, m.TeamBlocks)
		if d := diff.Diff(test.want, m.Parts); d != "" {
			t.Errorf("teams from %d blocks: parts (-want +got):\n%s", test.team, d)
		}
		if d := diff.Diff([]hrpb.Part{{4, 13, 21, 0}}, m.Splits); d != "" {
			t.Errorf("split panels (-want +got):\n%s", d)
		}
		want := hrpb.Work{Parts: 7, Splits: 1, Slots: 2, PartBlocks: 7, Fours: test.fours, Twos: test.twos}
		if got := m.Work(); got != want {
			t.Errorf("teams from %d blocks: %+v, want %+v", test.team, got, want)
		}
	}
}
