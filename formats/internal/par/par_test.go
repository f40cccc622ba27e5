// Every element once, whatever the split.

package par_test

import (
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/spmmrun/spmm/formats/internal/par"
	"pgregory.net/rapid"
)

// Every element is handed out once, however many goroutines there are.
func TestEachOnce(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	rapid.Check(t, func(t *rapid.T) {
		runtime.GOMAXPROCS(rapid.IntRange(1, 9).Draw(t, "cores"))
		lengths := rapid.SliceOfN(rapid.IntRange(0, 5), 0, 60).Draw(t, "row lengths")
		ptr := []int64{0}
		for _, n := range lengths {
			ptr = append(ptr, ptr[len(ptr)-1]+int64(n))
		}
		grain := rapid.IntRange(0, 20).Draw(t, "grain")
		for name, split := range map[string]func(f func(lo, hi int)){
			"Range": func(f func(lo, hi int)) { par.Range(len(lengths), grain, f) },
			"Each": func(f func(lo, hi int)) {
				par.Each(len(lengths), grain, func(i int) { f(i, i+1) })
			},
			"Rows": func(f func(lo, hi int)) { par.Rows(ptr, grain, f) },
		} {
			seen := make([]atomic.Int32, len(lengths))
			split(func(lo, hi int) {
				for i := lo; i < hi; i++ {
					seen[i].Add(1)
				}
			})
			for i := range seen {
				if n := seen[i].Load(); n != 1 {
					t.Fatalf("%s: element %d of %d is handed out %d times", name, i, len(seen), n)
				}
			}
		}
	})
}
