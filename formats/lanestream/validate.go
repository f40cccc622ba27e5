// Validation of arrays that may come from a file.

package lanestream

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/par"
	"github.com/spmmrun/spmm/formats/internal/slots"
)

// Validate checks the arrays against the package comment. It trusts nothing: a matrix that passes can be
// decoded and multiplied without touching memory outside its arrays. Errors name the array, and the stream or the row.
func (m *Matrix[T]) Validate() error {
	o := Options{Layout: m.Layout, Splits: m.Splits, SegmentSteps: m.SegmentSteps, Window: m.Window}
	if err := o.check(); err != nil {
		return err
	}
	if err := m.checkLengths(); err != nil {
		return err
	}
	if err := m.checkRest(); err != nil {
		return err
	}
	var mu sync.Mutex
	var first error
	at := m.Groups()
	par.Each(m.Groups(), 1, func(g int) {
		err := m.checkGroup(g)
		mu.Lock()
		defer mu.Unlock()
		if err != nil && g < at {
			first, at = err, g
		}
	})
	return first
}

func (m *Matrix[T]) checkLengths() error {
	if err := slots.CheckSize(name, m.Rows, m.Cols); err != nil {
		return err
	}
	streams, steps := m.Groups()*m.Splits, int64(m.Segments())*int64(m.SegmentSteps)
	switch {
	case int64(m.Groups())*max(1, steps) > int64(formats.MaxSlots/stepWords(m.Layout)) ||
		int64(m.Rows) >= formats.MaxSlots:
		return fmt.Errorf("%w: %d×%d", ErrTooLarge, m.Rows, m.Cols)
	case len(m.StreamPtr) != streams+1:
		return fmt.Errorf("lanestream: %d stream pointers for %d streams: need %d", len(m.StreamPtr), streams, streams+1)
	case len(m.SegmentRows) != streams:
		return fmt.Errorf("lanestream: %d numbers of rows a segment for %d streams", len(m.SegmentRows), streams)
	case int64(len(m.Mask)) != int64(m.Groups())*steps*int64(stepWords(m.Layout)):
		return fmt.Errorf("lanestream: %d mask words for %d groups of %d steps: need %d", len(m.Mask), m.Groups(), steps, int64(m.Groups())*steps*int64(stepWords(m.Layout)))
	case len(m.Values) < len(m.RemainderCol) || (len(m.Values)-len(m.RemainderCol))%Chains != 0:
		return fmt.Errorf("lanestream: %d values with %d in the COO remainder: need a multiple of %d more", len(m.Values), len(m.RemainderCol), Chains)
	case len(m.Stored) != (len(m.Values)-len(m.RemainderCol))/32:
		return fmt.Errorf("lanestream: %d words say which of %d values are entries", len(m.Stored),
			len(m.Values)-len(m.RemainderCol))
	case len(m.RemainderPtr) != m.Rows+1:
		return fmt.Errorf("lanestream: %d pointers to the COO remainder for %d rows: need %d", len(m.RemainderPtr), m.Rows, m.Rows+1)
	}
	all := slots.Panels{Format: name, One: "stream", Of: "row"}
	if err := all.CheckPointers(m.StreamPtr, len(m.Stored)/storedBits); err != nil {
		return err
	}
	return slots.Panels{Format: name, One: "row", Of: "remainder entry"}.CheckPointers(m.RemainderPtr, len(m.RemainderCol))
}

func (m *Matrix[T]) checkRest() error {
	for i := range m.Rows {
		last := int64(-1)
		cols, _ := m.Remainder(i)
		for _, c := range cols {
			if int64(c) <= last || int64(c) >= int64(m.Cols) {
				return fmt.Errorf("lanestream: the COO remainder of row %d has column %d after %d: need ascending ones below %d", i, c, last, m.Cols)
			}
			last = int64(c)
		}
	}
	return nil
}

// checkGroup checks that the chains of a group's streams stay within their windows, and then the group's entries.
func (m *Matrix[T]) checkGroup(g int) error {
	most := MaxSegmentRows(m.Layout, m.SegmentSteps, m.Window)
	for q := range m.Splits {
		s := m.stream(g, q)
		fail := func(format string, args ...any) error {
			return fmt.Errorf("lanestream: stream %d of group %d %w", q, g, fmt.Errorf(format, args...))
		}
		if s.segmentRows < 1 || s.segmentRows > most {
			return fail("has %d rows a segment: need 1 to %d", m.SegmentRows[g*m.Splits+q], most)
		}
		if s.count == 0 && s.rows > 0 || s.rows > s.segmentRows*(s.count-1+m.Window) {
			return fail("has %d rows for %d segments of %d", s.rows, s.count, s.segmentRows)
		}
		check := m.checkPlaces
		if m.Layout == Pairs {
			check = m.checkPairs
		}
		if err := check(g*m.Splits+q, s); err != nil {
			return fail("%w", err)
		}
	}
	return m.checkRows(g)
}

// checkPlaces checks that the chains of a stream stay within their windows, and their values.
func (m *Matrix[T]) checkPlaces(number int, s streamOf) error {
	var reached [Chains]int
	var w words
	for j := range s.count {
		least, most := limits(j, s.count, s.segmentRows, m.Window, s.rows, 0)
		for c := range Chains {
			w.of(s.mask[j*m.SegmentSteps*stepWords(Places):], c, m.SegmentSteps)
			if reached[c] += w.count(m.SegmentSteps * chainWords); reached[c] < least || reached[c] > most {
				return fmt.Errorf("takes %d values of chain %d by the end of segment %d: need %d to %d", reached[c], c, j, least, most)
			}
		}
	}
	return m.checkValues(number, &reached)
}

// checkValues checks that values which no chain takes are no entries, and that values which are no entries are +0.
func (m *Matrix[T]) checkValues(s int, taken *[Chains]int) error {
	for j := int(m.StreamPtr[s]); j < int(m.StreamPtr[s+1]); j++ {
		row := j - int(m.StreamPtr[s])
		for c := range Chains {
			switch stored := m.isStored(Chains*j + c); {
			case stored && row >= taken[c]:
				return fmt.Errorf("has an entry in row %d of chain %d, which takes %d values", row, c, taken[c])
			case !stored && !isZero(m.Values[Chains*j+c]):
				return fmt.Errorf("has a value in row %d of chain %d that is no entry", row, c)
			}
		}
	}
	return nil
}

// isZero reports whether v is +0.
func isZero[T formats.Value](v T) bool {
	if unsafe.Sizeof(v) == 2 {
		return *(*uint16)(unsafe.Pointer(&v)) == 0
	}
	return *(*uint32)(unsafe.Pointer(&v)) == 0
}
