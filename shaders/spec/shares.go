// Packing on several cores.

package spec

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// MemoryCores is how many cores are worth having for what moves more than it computes: more wait for memory.
const MemoryCores = 16

// Shares calls f for 0 to n-1, in shares of size numbers from first to last-1: `most` at a time, or, if most is 0, as
// there are cores.
func Shares(n, size, most int, f func(first, last int)) {
	if most == 0 {
		most = runtime.GOMAXPROCS(0)
	}
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(most, Ceil(n, max(1, size))) {
		all.Go(func() {
			for first := 0; first < n; {
				last := int(next.Add(int64(size)))
				if first = last - size; first < n {
					f(first, min(last, n))
				}
			}
		})
	}
	all.Wait()
}
