// How times compare with limits.

package main

import "testing"

func TestMet(t *testing.T) {
	for _, x := range []struct {
		us, limit float64
		want      string
	}{{50, 100, "met, 2.00×"}, {100, 100, "met, 1.00×"}, {100, 90, "missed, 0.90×"}, {0, 90, "not measured"}, {90, 0, "not measured"}} {
		if got := met(x.us, x.limit); got != x.want {
			t.Errorf("%v of %v: %s, want %s", x.us, x.limit, got, x.want)
		}
	}
	var g geomean
	g.add(4, 1)
	g.add(1, 1)
	g.add(0, 1) // not measured
	if got, want := g.String(), "2.00 of 2 (met, 2.00×)"; got != want {
		t.Errorf("the mean is %s, want %s", got, want)
	}
}
