// Sparsity patterns, each built to reach something in kernels: panels, stages, heavy rows, nothing.

package conformance

// patterns tell which columns row i of an m×k matrix stores, ascending.
var patterns = map[string]func(seed uint64, i, m, k int) []int32{
	"dense": func(_ uint64, _, _, k int) []int32 { return spread(k, k) },
	"empty": func(uint64, int, int, int) []int32 { return nil },
	// Entries anywhere, one in eight and one in forty places.
	"eighth":   func(seed uint64, i, _, k int) []int32 { return chance(seed, i, k, 8) },
	"fortieth": func(seed uint64, i, _, k int) []int32 { return chance(seed, i, k, 40) },
	// Rows alike in groups of 8 or 16: whole vectors.
	"vec8":  func(seed uint64, i, _, k int) []int32 { return chance(seed, i/8, k, 4) },
	"vec16": func(seed uint64, i, _, k int) []int32 { return chance(seed, i/16, k, 4) },
	// Short rows, a run of forty empty ones, and one that is full.
	"ragged": func(seed uint64, i, m, k int) []int32 {
		switch {
		case i == m/2:
			return spread(k, k)
		case i >= m/3 && i < m/3+40:
			return nil
		}
		return spread(int(below(7, seed, streamPattern, i, 0)), k)
	},
	// One full row, all others empty.
	"onerow": func(_ uint64, i, m, k int) []int32 {
		if i == m/2 {
			return spread(k, k)
		}
		return nil
	},
	// Of each 16 rows one has entries; their numbers are 0, 1, 2 and so on, past every stage's length.
	"ladder": func(_ uint64, i, _, k int) []int32 {
		if n := i / 16; i%16 == n%16 {
			return spread(n, k)
		}
		return nil
	},
	// Rows whose numbers of entries lie at the borders of the segments that kernels cut rows into, and of stages.
	"borders": func(_ uint64, i, _, k int) []int32 { return spread(borders[i%len(borders)], k) },
	// The same for groups of 16 rows that are alike but for one.
	"borders16": func(_ uint64, i, _, k int) []int32 {
		n := borders[i/16%len(borders)]
		if i%16 == 5 {
			n = min(n, 3)
		}
		return spread(n, k)
	},
	// Five diagonals, across the whole width.
	"band": func(_ uint64, i, m, k int) []int32 {
		var cols []int32
		for j := i*k/m - 2; j <= i*k/m+2; j++ {
			if j >= 0 && j < k {
				cols = append(cols, int32(j))
			}
		}
		return cols
	},
	// Rows of very different lengths: row i stores one place in 1+i%97.
	"skewed": func(seed uint64, i, _, k int) []int32 { return chance(seed, i, k, 1+int64(i%97)) },
}

// borders are one less than, as many as, and one more than the entries of a segment or a stage.
var borders = []int{256, 257, 255, 0, 512, 511, 513, 1024, 1, 1025, 1023, 32, 31, 33, 64, 63, 65, 128, 127, 129}

// spread returns n columns at equal distances in k.
func spread(n, k int) []int32 {
	n = min(n, k)
	cols := make([]int32, n)
	for t := range cols {
		cols[t] = int32(t * k / n)
	}
	return cols
}

// chance returns columns of row i, each with a chance of one in n.
func chance(seed uint64, i, k int, n int64) []int32 {
	var cols []int32
	row := lineOf(seed, streamPattern, i)
	for j := range k {
		if row.at(j)>>1%uint64(n) == 0 {
			cols = append(cols, int32(j))
		}
	}
	return cols
}
