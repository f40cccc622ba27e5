// The line of a step that runs.

package main

import (
	"testing"
	"time"
	"unicode/utf8"
)

// A step's line, which is never longer than besides allows.
func TestBar(t *testing.T) {
	for _, c := range []struct {
		counts      bool
		done, total int64
		took        time.Duration
		want        string
	}{
		{false, 0, -1, time.Second, "step …"},
		{true, 0, 8, 0, "step   0% |          | 0/8, 0s"},
		{true, 2, 8, 2 * time.Second, "step  25% |██        | 2/8, 2s, 6s left"},
		{false, 8, 8, 75 * time.Second, "step 100% |██████████| 1m15s"},
		{true, 9, 8, time.Second, "step 100% |██████████| 9/8, 1s"},
		{true, 1e12, 1e13, 1000 * time.Hour, "step  10% |█         | 1000000000000/10000000000000, 100"},
	} {
		begun := time.Now()
		b := bar{what: "step", width: leastBar, counts: c.counts, done: c.done, total: c.total, begun: begun}
		got := b.text(begun.Add(c.took))
		if got != c.want {
			t.Errorf("%d of %d is %q, want %q", c.done, c.total, got, c.want)
		}
		if n := utf8.RuneCountInString(got); n > len("step")+leastBar+besides {
			t.Errorf("%q has %d characters", got, n)
		}
	}
}
