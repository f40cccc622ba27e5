package rowmerge_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/formats/internal/rowmerge"
)

// A walk meets every entry of its rows once, by ascending column.
func TestWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(rapid.SliceOfDistinct(rapid.Int32Range(0, 30), rapid.ID[int32]), 0, rowmerge.MaxRows).Draw(t,
			"rows")
		var cols []int32
		var w rowmerge.Walk
		w.Reset()
		for _, r := range rows {
			slices.Sort(r)
			cols = append(cols, r...)
		}
		at := 0
		for _, r := range rows {
			w.Add(int64(at), int64(at+len(r)), cols)
			at += len(r)
		}
		found, last := make([][]int32, len(rows)), int32(-1)
		for w.Next(cols) {
			if w.Col <= last || w.Took == 0 || uint64(w.Took)>>len(rows) != 0 {
				t.Fatalf("column %d after %d, rows %b of %d", w.Col, last, w.Took, len(rows))
			}
			last = w.Col
			for r := range rows {
				if w.Took>>r&1 == 1 {
					found[r] = append(found[r], cols[w.Entry(r)])
				}
			}
		}
		for r := range rows {
			if !slices.Equal(found[r], rows[r]) {
				t.Fatalf("row %d: met %v of %v", r, found[r], rows[r])
			}
		}
	})
}
