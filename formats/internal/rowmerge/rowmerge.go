// Package rowmerge walks several rows of a sparse matrix together, by ascending column.
package rowmerge

import "math"

// MaxRows is the most rows a Walk takes: the rows with an entry in a column are the bits of a word.
const MaxRows = 32

// Walk walks rows together. It looks at every row at each step, which is as much work as writing a
// value slot for each of them, and needs no memory that grows with the columns.
//
//	w.Reset()
//	for each row: w.Add(start, end, cols)
//	for w.Next(cols) { … w.Col, w.Took, w.Entry(r) … }
type Walk struct {
	Col  int32  // the step's column
	Took uint32 // bit r: row r, in the order of Add, has an entry there

	rows    int
	at, end [MaxRows]int64 // next entry and end of each row
	head    [MaxRows]int32 // its column; noColumn at the end
}

const noColumn = math.MaxInt32 // columns are less: there are at most MaxInt32 of them

// Reset makes a walk of no rows.
func (w *Walk) Reset() { w.rows = 0 }

// Add adds a row: entries start to end of cols, the column numbers of the whole matrix.
func (w *Walk) Add(start, end int64, cols []int32) {
	w.at[w.rows], w.end[w.rows] = start, end
	w.load(w.rows, cols)
	w.rows++
}

func (w *Walk) load(r int, cols []int32) {
	w.head[r] = noColumn
	if w.at[r] < w.end[r] {
		w.head[r] = cols[w.at[r]]
	}
}

// Next steps to the next column that any row has an entry in. It reports false when there is none.
func (w *Walk) Next(cols []int32) bool {
	w.Col, w.Took = noColumn, 0
	for _, c := range w.head[:w.rows] {
		w.Col = min(w.Col, c)
	}
	if w.Col == noColumn {
		return false
	}
	for r, c := range w.head[:w.rows] {
		if c == w.Col {
			w.Took |= 1 << r
			w.at[r]++
			w.load(r, cols)
		}
	}
	return true
}

// Entry returns the number of row r's entry in the step's column, which Took says it has.
func (w *Walk) Entry(r int) int64 { return w.at[r] - 1 }
