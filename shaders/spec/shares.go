// Packing on several cores.

package spec

import (
	"runtime"

	"golang.org/x/sync/errgroup"
)

// MemoryCores is how many cores are worth having for what moves more than it computes: more wait for memory.
const MemoryCores = 16

// Shares calls f for 0 to n-1, in shares of size numbers from first to last-1: so many at a time, or, if most is 0, as
// there are cores.
func Shares(n, size, most int, f func(first, last int)) {
	var g errgroup.Group
	if most == 0 {
		most = runtime.GOMAXPROCS(0)
	}
	g.SetLimit(most)
	for first := 0; first < n; first += size {
		g.Go(func() error {
			f(first, min(first+size, n))
			return nil
		})
	}
	_ = g.Wait() // f returns no error
}
