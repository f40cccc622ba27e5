// Walking a panel's rows group by group.

package nm

import (
	"github.com/spmmrun/spmm/formats"
)

// panel is the rows of one panel at one group of columns. It is reused from panel to panel.
type panel struct {
	Pattern
	first, rows int // of the matrix
	units       uint64
	lo, hi      [MaxV]int64 // each row's entries in the group
}

// start puts a panel before its first group.
func start[T formats.Value](p *panel, a *formats.CSR[T], number int) {
	p.first = number * p.V
	p.rows = min(p.V, a.Rows-p.first)
	copy(p.hi[:], a.RowPtr[p.first:p.first+p.rows])
}

// step moves to group g, the one after the last step's.
func step[T formats.Value](p *panel, a *formats.CSR[T], g int) {
	base := g * p.M * p.W
	limit := base + p.M*p.W // may exceed the columns, not int64
	p.units = 0
	for r := range p.rows {
		i, end := p.hi[r], a.RowPtr[p.first+r+1]
		p.lo[r] = i
		for i < end && int(a.ColIdx[i]) < limit {
			p.units |= 1 << p.unit(int(a.ColIdx[i])-base)
			i++
		}
		p.hi[r] = i
	}
}

// unit returns the unit that a column of a group belongs to.
func (p *Pattern) unit(col int) int {
	if p.W == 1 {
		return col
	}
	return col / p.W
}
