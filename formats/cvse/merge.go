// Walking the rows of a panel together, and panels at once.

package cvse

import (
	"math"
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"
)

// merge walks the rows of one panel by ascending column. It looks at every row at each step, which
// is as much work as writing the vector, and needs no memory that grows with the columns.
type merge struct {
	rows    int
	at, end [MaxV]int64 // next entry and end of each row
	head    [MaxV]int32 // its column; noColumn at the end
	col     int32       // the step's column
	took    uint32      // bit r: row r has an entry there, at[r]-1
}

const noColumn = math.MaxInt32 // columns are less: there are at most MaxInt32 of them

// start puts the walk before the first column of the rows that ptr, their RowPtr, bounds.
func (m *merge) start(ptr []int64, cols []int32) {
	m.rows = len(ptr) - 1
	for r := range m.rows {
		m.at[r], m.end[r] = ptr[r], ptr[r+1]
		m.load(r, cols)
	}
}

func (m *merge) load(r int, cols []int32) {
	m.head[r] = noColumn
	if m.at[r] < m.end[r] {
		m.head[r] = cols[m.at[r]]
	}
}

// next steps to the next column that any row has an entry in. It reports false when there is none.
func (m *merge) next(cols []int32) bool {
	m.col, m.took = noColumn, 0
	for _, c := range m.head[:m.rows] {
		m.col = min(m.col, c)
	}
	if m.col == noColumn {
		return false
	}
	for r, c := range m.head[:m.rows] {
		if c == m.col {
			m.took |= 1 << r
			m.at[r]++
			m.load(r, cols)
		}
	}
	return true
}

func trailing(w uint32) int { return bits.TrailingZeros32(w) }

// parallel calls f for 0 to n-1 on all cores, a few neighbours at a time.
func parallel(n int, f func(i int)) {
	const grain = 16
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), (n+grain-1)/grain) {
		wg.Go(func() {
			for {
				start := int(next.Add(grain)) - grain
				if start >= n {
					return
				}
				for i := start; i < min(n, start+grain); i++ {
					f(i)
				}
			}
		})
	}
	wg.Wait()
}
