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
	run(parts(n, grain), func(i, of int) {
		f(split(n, i, of), split(n, i+1, of))
	})
}

// Rows calls f for consecutive parts of the rows that ptr delimits (len(ptr)-1 of them), cut so that
// each part has about as many entries, at least grain of them when there is more than one part.
func Rows(ptr []int64, grain int, f func(lo, hi int)) {
	rows := len(ptr) - 1
	if rows <= 0 {
		return
	}
	nnz := int(ptr[rows])
	cut := func(i, of int) int {
		if i == of {
			return rows
		}
		want := int64(split(nnz, i, of))
		return sort.Search(rows, func(r int) bool { return ptr[r] >= want })
	}
	run(parts(nnz, grain), func(i, of int) {
		lo, hi := cut(i, of), cut(i+1, of)
		if i == 0 {
			lo = 0
		}
		if lo < hi {
			f(lo, hi)
		}
	})
}

// Each calls f for 0 to n-1 on several goroutines, which take grain neighbours at a time as they come
// free: for work that differs from one to the next.
func Each(n, grain int, f func(i int)) {
	grain = max(1, grain)
	var next atomic.Int64
	run(parts(n, grain), func(int, int) {
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

func parts(n, grain int) int {
	return max(1, min(runtime.GOMAXPROCS(0), n/max(1, grain)))
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
