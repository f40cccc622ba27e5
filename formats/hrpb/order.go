// The order of rows: which come to lie in one panel.

package hrpb

import (
	"cmp"
	"slices"

	"github.com/spmmrun/spmm/formats/internal/par"
)

const (
	// commonCols: a column with more rows than this does not tell which rows are alike.
	commonCols = 64
	// orderGain is the share of active columns that another order must leave out to be taken, as a fraction of them.
	orderGain = 1. / 16
	// orderWork bounds the steps that ordering takes, for each entry and row; rows that are left then stay in their order.
	orderWork = 128
	// orderCols bounds the columns of a matrix that is ordered, for each entry and row, since ordering takes memory for
	// all of them; up to fewCols are always possible.
	orderCols, fewCols = 16, 1 << 20
	// smallGain and largeGain are the shares of the active columns of the order by pairs that another must leave out, for
	// matrices of up to nearRows rows and for larger ones. Small ones take as long as their longest panels, which come out
	// more even by pairs.
	smallGain, largeGain = 1. / 8, 1. / 32
	// fewEntries: a matrix with more is not ordered in the way that takes longest.
	fewEntries = 1 << 19
	// manyRows, manyEntries: of a matrix with more, probes tell first whether another order can leave out the share
	// probeGain of its active columns. Each of probeStarts fills probePanels panels.
	manyRows, manyEntries    = 1 << 15, 1 << 20
	probeGain                = 0.18
	probeStarts, probePanels = 64, 8
	// nearRows is about how many neighbouring rows find the rows of B that they fetch in a GPU's second-level cache. Where
	// panels are sorted, `together` of them stay together, because panels that a multiprocessor works on side by side
	// share columns in its first-level cache.
	nearRows, together = 1 << 15, 4
)

// orderRows returns the rows in an order in which those of a panel share columns, or nil if they share about as many in
// the order of the matrix.
func orderRows(rowPtr []int64, colIdx []int32, cols int) []uint32 {
	rows := len(rowPtr) - 1
	if rows <= PanelRows || len(colIdx) == 0 || cols > fewCols && cols/orderCols > len(colIdx)+rows {
		return nil
	}
	natural := activeCols(rowPtr, colIdx, cols, nil, PanelRows)
	if natural <= int64(len(colIdx))/PanelRows { // each panel's rows are all alike
		return nil
	}
	o := newOrderer(rowPtr, colIdx, cols)
	if rows > manyRows && len(colIdx) > manyEntries && o.probe() < probeGain {
		return nil
	}
	order := bestOrder(o)
	if float64(activeCols(rowPtr, colIdx, cols, order, PanelRows)) > (1-orderGain)*float64(natural) {
		return nil
	}
	if rows <= nearRows {
		return order
	}
	if sorted := sortGroups(order); activeCols(rowPtr, colIdx, cols, sorted, nearRows) < activeCols(rowPtr, colIdx, cols,
		order, nearRows) {
		return sorted
	}
	return order
}

// bestOrder returns the order by pairs, unless another leaves enough of its active columns out: the one that fills
// panels one after the other or, of large matrices with few entries, by pairs of the most alike first. It is then the
// one with the fewest.
func bestOrder(o *orderer) []uint32 {
	rowPtr, colIdx, cols := o.rowPtr, o.colIdx, len(o.inCol)
	ways := []func() []uint32{
		func() []uint32 { return pairRows(rowPtr, colIdx, cols, false) },
		o.order,
	}
	gain := smallGain
	if len(rowPtr)-1 > nearRows {
		gain = largeGain
		if len(colIdx) <= fewEntries {
			ways = append(ways, func() []uint32 { return pairRows(rowPtr, colIdx, cols, true) })
		}
	}
	orders := make([][]uint32, len(ways))
	par.Each(len(ways), 1, func(i int) { orders[i] = ways[i]() })
	best, most := orders[0], (1-gain)*float64(activeCols(rowPtr, colIdx, cols, orders[0], PanelRows))
	for _, other := range orders[1:] {
		if n := float64(activeCols(rowPtr, colIdx, cols, other, PanelRows)); n <= most {
			best, most = other, n
		}
	}
	return best
}

// sortGroups returns the groups of panels of an order by where their rows lie in the matrix, the median of them, which
// is better where the matrix has them in a good order on the large scale.
func sortGroups(order []uint32) []uint32 {
	const rows = together * PanelRows
	whole := len(order) / rows
	middle, groups := make([]uint32, whole), make([]int, whole)
	for g := range groups {
		sorted := slices.Sorted(slices.Values(order[g*rows : (g+1)*rows]))
		groups[g], middle[g] = g, sorted[rows/2]
	}
	slices.SortStableFunc(groups, func(x, y int) int { return cmp.Compare(middle[x], middle[y]) })
	out := make([]uint32, 0, len(order))
	for _, g := range groups {
		out = append(out, order[g*rows:(g+1)*rows]...)
	}
	return append(out, order[whole*rows:]...)
}

// activeCols counts the columns with entries of each group of rows, in an order of some rows; nil are all in the
// matrix's own.
func activeCols(rowPtr []int64, colIdx []int32, cols int, order []uint32, group int) int64 {
	rows := len(order)
	if order == nil {
		rows = len(rowPtr) - 1
	}
	groups := (rows + group - 1) / group
	counts := make([]int64, groups)
	par.Range(groups, max(1, 1<<14/group), func(lo, hi int) {
		seen := make([]uint32, cols) // the last group that had the column, plus 1
		for p := lo; p < hi; p++ {
			for place := p * group; place < min(rows, (p+1)*group); place++ {
				r := place
				if order != nil {
					r = int(order[place])
				}
				for _, c := range colIdx[rowPtr[r]:rowPtr[r+1]] {
					if seen[c] != uint32(p)+1 {
						seen[c] = uint32(p) + 1
						counts[p]++
					}
				}
			}
		}
	})
	var sum int64
	for _, n := range counts {
		sum += n
	}
	return sum
}

// orderer fills one panel after the other. Into a panel comes next the row, among those that share a column with it,
// that adds the fewest columns beyond those it shares; of several the one that shares most with the panel's first row,
// which keeps the panels of meshes compact. A new panel begins with the row that would have come next.
type orderer struct {
	rowPtr []int64
	colIdx []int32
	colPtr []int64  // of each column: where its rows start in rowIdx
	rowIdx []uint32 // ascending

	inCol []uint32   // the last panel that has the column
	alike []likeness // of each row
	near  []uint32   // rows that share a column with the panel; some are placed already
	panel uint32
	next  int // rows before it are placed
	work  int64
}

// likeness is how a row fits a panel: twice the columns that it shares with it, less all that it has, and the columns
// that it shares with the panel's first row.
type likeness struct {
	panel        uint32 // or placed
	score, first int32
}

// placed is the panel of a row that is in its place.
const placed = 1<<32 - 1

func newOrderer(rowPtr []int64, colIdx []int32, cols int) *orderer {
	rows := len(rowPtr) - 1
	o := &orderer{
		rowPtr: rowPtr, colIdx: colIdx, colPtr: make([]int64, cols+1), rowIdx: make([]uint32, len(colIdx)),
		inCol: make([]uint32, cols), alike: make([]likeness, rows),
	}
	o.reset()
	for _, c := range colIdx {
		o.colPtr[c+1]++
	}
	for c := range cols {
		o.colPtr[c+1] += o.colPtr[c]
	}
	at := make([]int64, cols)
	copy(at, o.colPtr)
	for r := range rows {
		for _, c := range colIdx[rowPtr[r]:rowPtr[r+1]] {
			o.rowIdx[at[c]] = uint32(r)
			at[c]++
		}
	}
	return o
}

// reset has no row placed.
func (o *orderer) reset() {
	clear(o.alike)
	o.near, o.next, o.work = o.near[:0], 0, orderWork*int64(len(o.colIdx)+len(o.alike))
}

// order places all rows.
func (o *orderer) order() []uint32 { return o.fill(make([]uint32, 0, len(o.alike)), len(o.alike)) }

// fill places as many rows behind those of an order, which fill whole panels.
func (o *orderer) fill(order []uint32, rows int) []uint32 {
	for range rows {
		r, ok := o.best()
		if !ok {
			for o.alike[o.next].panel == placed {
				o.next = (o.next + 1) % len(o.alike)
			}
			r = uint32(o.next)
		}
		first := len(order)%PanelRows == 0
		if first {
			o.panel++
			o.near = o.near[:0]
		}
		o.place(r, first)
		order = append(order, r)
	}
	return order
}

// probe returns about the share of active columns that another order leaves out at most: as the first panels do that
// are filled with all rows to choose from, at several places of the matrix. No row is placed then.
func (o *orderer) probe() float64 {
	const rows = probePanels * PanelRows // of a place
	var natural, order []uint32
	for i := range probeStarts {
		o.next = len(o.alike) / probeStarts * i
		for r := range rows {
			natural = append(natural, uint32(o.next+r))
		}
		o.near = o.near[:0]
		order = o.fill(order, rows)
	}
	o.reset()
	perEntry := func(order []uint32) float64 {
		var entries int64
		for _, r := range order {
			entries += o.rowPtr[r+1] - o.rowPtr[r]
		}
		return float64(activeCols(o.rowPtr, o.colIdx, len(o.inCol), order, PanelRows)) / float64(max(1, entries))
	}
	return 1 - perEntry(order)/perEntry(natural)
}

// best returns the row that fits the panel best, if one shares a column with it. It drops those that are placed.
func (o *orderer) best() (row uint32, ok bool) {
	if o.work < 0 {
		return 0, false
	}
	o.work -= int64(len(o.near))
	most, left := int64(0), o.near[:0]
	for _, r := range o.near {
		l := o.alike[r]
		if l.panel == placed {
			continue
		}
		left = append(left, r)
		score := int64(l.score)<<32 + int64(l.first)
		if !ok || score > most || score == most && r < row {
			row, most, ok = r, score, true
		}
	}
	o.near = left
	return row, ok
}

// place puts a row into the panel, as its first or not, and brings what its columns tell of others up to date.
func (o *orderer) place(r uint32, first bool) {
	o.alike[r].panel = placed
	if o.work < 0 {
		return
	}
	for _, c := range o.colIdx[o.rowPtr[r]:o.rowPtr[r+1]] {
		if o.inCol[c] == o.panel {
			continue
		}
		o.inCol[c] = o.panel
		rows := o.rowIdx[o.colPtr[c]:o.colPtr[c+1]]
		if len(rows) > commonCols {
			continue
		}
		o.work -= int64(len(rows))
		for _, s := range rows {
			l := &o.alike[s]
			if l.panel == placed {
				continue
			}
			if l.panel != o.panel {
				*l = likeness{panel: o.panel, score: -int32(o.rowPtr[s+1] - o.rowPtr[s])}
				o.near = append(o.near, s)
			}
			l.score += 2
			if first {
				l.first++
			}
		}
	}
}
