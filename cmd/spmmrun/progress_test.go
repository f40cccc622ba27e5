// What progress shows.

package main

import (
	"testing"
	"time"
)

func TestRemaining(t *testing.T) {
	for _, c := range []struct {
		took      time.Duration
		done, all int
		want      time.Duration
	}{
		{10 * time.Second, 1, 4, 30 * time.Second},
		{1400 * time.Millisecond, 7, 9, 0},
		{time.Minute, 9, 9, 0},
		{time.Hour, 30000, 30001, 0},
		{time.Second, 1, 100000, 99999 * time.Second},
	} {
		if got := remaining(c.took, c.done, c.all); got != c.want {
			t.Errorf("%d of %d in %v: %v left, want %v", c.done, c.all, c.took, got, c.want)
		}
	}
}
