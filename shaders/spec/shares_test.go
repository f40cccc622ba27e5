package spec_test

import (
	"sync/atomic"
	"testing"

	"github.com/spmmrun/spmm/shaders/spec"
)

func TestShares(t *testing.T) {
	for _, n := range []int{0, 1, 7, 8, 9, 1000} {
		for _, most := range []int{0, 1, 3} {
			seen := make([]atomic.Int32, n)
			var calls atomic.Int32
			spec.Shares(n, 8, most, func(first, last int) {
				calls.Add(1)
				if last-first > 8 {
					t.Errorf("a share of %d", last-first)
				}
				for i := first; i < last; i++ {
					seen[i].Add(1)
				}
			})
			for i := range seen {
				if seen[i].Load() != 1 {
					t.Errorf("%d of %d was given %d times", i, n, seen[i].Load())
				}
			}
			if int(calls.Load()) != spec.Ceil(n, 8) {
				t.Errorf("%d in %d shares", n, calls.Load())
			}
		}
	}
}
