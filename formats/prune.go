// Pruning by magnitude, wherever the large elements are.

package formats

import (
	"fmt"
	"math"
	"sync"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats/internal/number"
	"github.com/spmmrun/spmm/formats/internal/par"
	"github.com/spmmrun/spmm/formats/internal/rowptr"
)

// Prune returns the elements of largest magnitude as a sparse matrix: round(keep·Rows·Cols) of them, where keep is from
// 0 to 1. Zeros are never entries. Among elements of equal magnitude the first in row-major order are kept. A NaN
// counts as larger than all other elements. Package nm prunes to N:M patterns.
func (d *Dense[T]) Prune(keep float64) (*CSR[T], error) {
	if !(keep >= 0 && keep <= 1) {
		return nil, fmt.Errorf("keeping a share of %v: want 0 to 1", keep)
	}
	if err := d.Validate(); err != nil {
		return nil, err
	}
	d = d.Compact()
	least, ties := d.smallestKept(int64(math.Round(keep * float64(len(d.Data)))))
	return d.keepFrom(least, ties), nil
}

// magnitude orders elements by their absolute value: it is 0 for zeros alone. It has the element type's bits.
func magnitude[T Value](v T) uint64 {
	if x, ok := any(v).(float64); ok {
		return math.Float64bits(x) &^ (1 << 63)
	}
	return uint64(math.Float32bits(float32(number.Float64(v))) &^ (1 << 31))
}

// magnitudeBits is how many bits magnitudes of T have.
func magnitudeBits[T Value]() int {
	if TypeOf[T]() == dtype.F64 {
		return 64
	}
	return 32
}

// smallestKept returns the least magnitude of the n largest elements, and how many elements of just that magnitude
// are among them. Magnitudes are counted by their upper 16 bits, and then those of the interval that this finds by the
// next ones, and so on.
func (d *Dense[T]) smallestKept(n int64) (least uint64, ties int64) {
	if n == 0 {
		return math.MaxUint64, 0
	}
	for shift := magnitudeBits[T]() - 16; shift >= 0; shift -= 16 {
		var next uint64
		next, n = last(d.count(func(m uint64) (uint16, bool) { return uint16(m >> shift), m>>shift>>16 == least }), n)
		least = least<<16 | next
	}
	return least, n
}

// last returns in which interval the nth largest is, and which of that interval's elements it is.
func last(counts []int64, n int64) (interval uint64, rest int64) {
	i := len(counts) - 1
	for ; counts[i] < n; i-- {
		n -= counts[i]
	}
	return uint64(i), n
}

// count counts the elements by intervals of their magnitude.
func (d *Dense[T]) count(interval func(magnitude uint64) (i uint16, counts bool)) []int64 {
	all := make([]int64, 1<<16)
	var mu sync.Mutex
	par.Range(len(d.Data), 1<<20, func(lo, hi int) {
		counts := make([]int64, 1<<16)
		for _, v := range d.Data[lo:hi] {
			if i, ok := interval(magnitude(v)); ok {
				counts[i]++
			}
		}
		mu.Lock()
		defer mu.Unlock()
		for i, n := range counts {
			all[i] += n
		}
	})
	return all
}

// keepFrom returns the elements of a magnitude above least, and the first `ties` of exactly that magnitude.
func (d *Dense[T]) keepFrom(least uint64, ties int64) *CSR[T] {
	a := &CSR[T]{Rows: d.Rows, Cols: d.Cols, RowPtr: make([]int64, d.Rows+1)}
	// elements of just that magnitude in each row, and then how many may be kept from there on
	equal := make([]int64, d.Rows)
	rows := func(f func(i int)) {
		par.Range(d.Rows, grain/max(1, d.Cols), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				f(i)
			}
		})
	}
	rows(func(i int) {
		for _, v := range d.Line(i) {
			switch m := magnitude(v); {
			case m == 0:
			case m > least:
				a.RowPtr[i]++
			case m == least:
				equal[i]++
			}
		}
	})
	for i, n := range equal {
		a.RowPtr[i] += max(0, min(n, ties))
		equal[i] = ties
		ties -= n
	}
	rowptr.Starts(a.RowPtr)
	a.ColIdx, a.Val = make([]int32, a.RowPtr[d.Rows]), make([]T, a.RowPtr[d.Rows])
	rows(func(i int) {
		at, left := a.RowPtr[i], equal[i]
		for j, v := range d.Line(i) {
			m := magnitude(v)
			if m == least {
				left--
			}
			if m != 0 && (m > least || m == least && left >= 0) {
				a.ColIdx[at], a.Val[at] = int32(j), v
				at++
			}
		}
	})
	return a
}
