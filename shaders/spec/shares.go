// Packing on several cores.

package spec

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// MemoryCores is the most cores for work that is bound by memory: more would only wait.
const MemoryCores = 16

// Shares calls f for shares of the numbers 0 to n-1: for first to last-1, `size` numbers or fewer. It makes `most`
// calls at a time or, if most is 0, one for each core.
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
