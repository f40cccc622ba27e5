// Package slots has what formats share that store values in slots, panel by panel: how many slots hold entries, in
// which order panels are multiplied, and what arrays must hold.
package slots

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/spmmrun/spmm/formats"
)

// Stored returns how many bits of a mask are set: one for each slot that holds an entry.
func Stored(mask []uint32) (n int64) {
	for _, w := range mask {
		n += int64(bits.OnesCount32(w))
	}
	return n
}

// Stats returns the costs of a format that multiplies each slot. It stores the values and `words` other words, and its
// kernels gather `gathers` rows of B; nnz of its slots hold entries.
func Stats[T formats.Value](values []T, words, gathers int, nnz int64) formats.Stats {
	s := formats.Stats{
		StoredBytes: 4*int64(words) + int64(unsafe.Sizeof(*new(T)))*int64(len(values)),
		Slots:       int64(len(values)),
		MACs:        int64(len(values)),
		Gathers:     int64(gathers),
	}
	if s.Slots > 0 {
		s.Fill = float64(nnz) / float64(s.Slots)
	}
	return s
}

// Ceil returns a/b, rounded up: how many panels of b rows a rows make.
func Ceil(a, b int) int { return a/b + (a%b+b-1)/b }

// HeaviestFirst returns n panels by falling weight, so that a device starts the long ones first.
func HeaviestFirst(n int, weight func(p uint32) uint32) []uint32 {
	order := make([]uint32, n)
	for p := range order {
		order[p] = uint32(p)
	}
	slices.SortStableFunc(order, func(x, y uint32) int { return cmp.Compare(weight(y), weight(x)) })
	return order
}

// Panels are the groups of rows that a format divides a matrix into, in the words of its errors.
type Panels struct {
	Format string // the format's name
	One    string // "panel", "block"
	Of     string // what one consists of: "vector", "step"
	Unit   int    // its length is a multiple of this; 0 means 1
}

// CheckPointers checks that ptr starts at 0, does not fall, and ends at end.
func (p Panels) CheckPointers(ptr []uint32, end int) error {
	unit := uint32(max(1, p.Unit))
	if ptr[0] != 0 {
		return fmt.Errorf("%s: %s 0 starts at %s %d", p.Format, p.One, p.Of, ptr[0])
	}
	for i, stop := range ptr[1:] {
		if stop < ptr[i] {
			return fmt.Errorf("%s: %s %d ends at %s %d, before its start %d", p.Format, p.One, i, p.Of, stop, ptr[i])
		}
		if stop%unit != 0 {
			return fmt.Errorf("%s: %s %d ends at %s %d, no multiple of %d", p.Format, p.One, i, p.Of, stop, unit)
		}
	}
	if last := ptr[len(ptr)-1]; int64(last) != int64(end) {
		return fmt.Errorf("%s: the %ss end at %s %d of %d", p.Format, p.One, p.Of, last, end)
	}
	return nil
}

// CheckOrder checks that order equals HeaviestFirst's for this number of panels.
func (p Panels) CheckOrder(order []uint32, weight func(p uint32) uint32) error {
	for i, this := range order {
		if int64(this) >= int64(len(order)) {
			return fmt.Errorf("%s: order names %s %d at %d: there are %d", p.Format, p.One, this, i, len(order))
		}
		if i == 0 {
			continue
		}
		// Strictly falling by weight, then rising by number: so none can come twice.
		if last := order[i-1]; weight(last) < weight(this) || weight(last) == weight(this) && last >= this {
			return fmt.Errorf("%s: order has %s %d (%d %ss) before %s %d (%d), at %d",
				p.Format, p.One, last, weight(last), p.Of, p.One, this, weight(this), i)
		}
	}
	return nil
}

// CheckSize checks a matrix's size.
func CheckSize(format string, rows, cols int) error {
	if rows < 0 || rows > formats.MaxDim || cols < 0 || cols > formats.MaxDim {
		return fmt.Errorf("%s: a matrix of %d×%d", format, rows, cols)
	}
	return nil
}

// Columns checks the columns of a panel one after the other: those with entries ascend, and those of padding, which
// follow them, repeat the last.
type Columns struct {
	Cols    int   // of the matrix
	Padding int   // columns of padding so far
	next    int64 // one after the last
}

// Next returns what is wrong with the next column, which holds entries or does not; "" if nothing is.
func (c *Columns) Next(column uint32, entries bool) string {
	col, last := int64(column), c.next-1
	switch {
	case col >= int64(c.Cols):
		return fmt.Sprintf("the matrix has %d columns", c.Cols)
	case !entries && col != last:
		return fmt.Sprintf("no entry, and padding would repeat column %d", last)
	case !entries:
		c.Padding++
	case c.Padding > 0:
		return "an entry after padding"
	case col <= last:
		return fmt.Sprintf("not after column %d", last)
	}
	c.next = col + 1
	return ""
}
