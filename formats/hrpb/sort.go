// Sorting a panel's entries by column.

package hrpb

// sorter merges the rows of a panel. It keeps its memory from panel to panel.
type sorter struct{ keys, other []uint64 }

// sort returns the entries of the rows that ptr, their RowPtr, bounds as keys column·PanelRows + row,
// ascending. Rows are merged by pairs, then pairs of rows, and so on: four comparisons an entry.
func (s *sorter) sort(ptr []int64, colIdx []int32) []uint64 {
	rows := len(ptr) - 1
	s.keys = s.keys[:0]
	for r := range rows {
		for _, c := range colIdx[ptr[r]:ptr[r+1]] {
			s.keys = append(s.keys, uint64(c)*PanelRows+uint64(r))
		}
	}
	if n := len(s.keys); cap(s.other) < n {
		s.other = make([]uint64, n, cap(s.keys))
	}
	s.other = s.other[:len(s.keys)]
	at := func(r int) int { return int(ptr[min(r, rows)] - ptr[0]) }
	for w := 1; w < rows; w *= 2 {
		for r := 0; r < rows; r += 2 * w {
			lo, mid, hi := at(r), at(r+w), at(r+2*w)
			merge(s.other[lo:hi], s.keys[lo:mid], s.keys[mid:hi])
		}
		s.keys, s.other = s.other, s.keys
	}
	return s.keys
}

// merge merges ascending x and y to dst, which is as long as both.
func merge(dst, x, y []uint64) {
	for len(x) > 0 && len(y) > 0 {
		if x[0] < y[0] {
			dst[0], x = x[0], x[1:]
		} else {
			dst[0], y = y[0], y[1:]
		}
		dst = dst[1:]
	}
	copy(dst, x)
	copy(dst[len(x):], y)
}
