package rfx_test

import (
	"testing"

	"github.com/spmmrun/spmm/formats/rfx"
)

// 64 bits are used while no sum of that number of the largest products reaches 2⁶².
func TestNarrow(t *testing.T) {
	for _, p := range rfx.All {
		square := float64(p.Max()) * float64(p.Max())
		for _, entries := range []int64{0, 1, 1 << 10, 1 << 16, 66115, 66116, 1 << 31} {
			want := p <= rfx.P23 && float64(entries)*square < 1<<62
			if got := p.Narrow(entries); got != want {
				t.Errorf("p = %d, %d entries: %t, want %t", p, entries, got, want)
			}
		}
	}
	// The largest sums, and every class, survive.
	last := int64(1)<<62 - 1
	for _, x := range []int64{0, 1, -1, last, -last} {
		s := rfx.Sum(rfx.Int(x))
		if got := rfx.Unpack64(s.Pack64()); got != s {
			t.Errorf("%d comes back as %v", x, got)
		}
	}
}
