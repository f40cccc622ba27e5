// Package par splits loops over rows among the processor's cores.
package par

import (
	"runtime"
	"sort"
	"sync"
	"sync/atomic"
)

// Range calls f for consecutive parts of 0 to n, at the same time on several goroutines when each
// gets at least grain elements, and returns when all are done.
func Range(n, grain int, f func(lo, hi int)) {
	run(Parts(n, grain), func(i, of int) {
		f(split(n, i, of), split(n, i+1, of))
	})
}

// Rows calls f for consecutive parts of the rows that ptr delimits (len(ptr)-1 of them), cut so that
// each part has about as many entries, at least grain of them when there is more than one part.
func Rows(ptr []int64, grain int, f func(lo, hi int)) {
	if len(ptr) == 0 {
		return
	}
	cuts := Cuts(ptr, Parts(int(ptr[len(ptr)-1]), grain))
	run(len(cuts)-1, func(i, _ int) {
		if lo, hi := cuts[i], cuts[i+1]; lo < hi {
			f(lo, hi)
		}
	})
}

// Cuts returns where to cut the rows that ptr delimits into `of` consecutive parts of about as many entries: part i is
// rows cuts[i] to cuts[i+1], which may be none.
func Cuts(ptr []int64, of int) []int {
	rows := len(ptr) - 1
	cuts := make([]int, of+1)
	for i := 1; i < of; i++ {
		want := int64(split(int(ptr[rows]), i, of))
		cuts[i] = sort.Search(rows, func(r int) bool { return ptr[r] >= want })
	}
	cuts[of] = rows
	return cuts
}

// Parts returns the number of parts, each of at least grain elements, that n elements are cut into: at most one for
// each core.
func Parts(n, grain int) int {
	return max(1, min(runtime.GOMAXPROCS(0), n/max(1, grain)))
}

// Each calls f for 0 to n-1 on several goroutines, which take grain neighbours at a time as they come
// free: for work that differs from one to the next.
func Each(n, grain int, f func(i int)) {
	grain = max(1, grain)
	var next atomic.Int64
	run(Parts(n, grain), func(int, int) {
		for {
			start := int(next.Add(int64(grain))) - grain
			for i := start; i < min(n, start+grain); i++ {
				f(i)
			}
			if start >= n {
				return
			}
		}
	})
}

func split(n, i, of int) int {
	q, r := n/of, n%of
	return i*q + min(i, r)
}

func run(of int, f func(i, of int)) {
	var wg sync.WaitGroup
	for i := 1; i < of; i++ {
		wg.Go(func() { f(i, of) })
	}
	f(0, of)
	wg.Wait()
}
