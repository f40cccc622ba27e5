// Checking arrays that somebody else made.

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
	if err := (Options{Layout: m.Layout, Parts: m.Parts, PieceSteps: m.PieceSteps, Window: m.Window}).check(); err != nil {
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
	streams, steps := m.Groups()*m.Parts, int64(m.Pieces())*int64(m.PieceSteps)
	switch {
	case int64(m.Groups())*max(1, steps) > int64(formats.MaxSlots/stepWords(m.Layout)) ||
		int64(m.Rows) >= formats.MaxSlots:
		return fmt.Errorf("%w: %d×%d", ErrTooLarge, m.Rows, m.Cols)
	case len(m.StreamPtr) != streams+1:
		return fmt.Errorf("lanestream: %d stream pointers for %d streams: need %d", len(m.StreamPtr), streams, streams+1)
	case len(m.PieceRows) != streams:
		return fmt.Errorf("lanestream: %d numbers of rows a segment for %d streams", len(m.PieceRows), streams)
	case int64(len(m.Mask)) != int64(m.Groups())*steps*int64(stepWords(m.Layout)):
		return fmt.Errorf("lanestream: %d mask words for %d groups of %d steps: need %d", len(m.Mask), m.Groups(), steps, int64(m.Groups())*steps*int64(stepWords(m.Layout)))
	case len(m.Values) < len(m.RestCol) || (len(m.Values)-len(m.RestCol))%Chains != 0:
		return fmt.Errorf("lanestream: %d values with %d in the COO remainder: need a multiple of %d more", len(m.Values), len(m.RestCol), Chains)
	case len(m.Stored) != (len(m.Values)-len(m.RestCol))/32:
		return fmt.Errorf("lanestream: %d words say which of %d values are entries", len(m.Stored),
			len(m.Values)-len(m.RestCol))
	case len(m.RestPtr) != m.Rows+1:
		return fmt.Errorf("lanestream: %d pointers to the COO remainder for %d rows: need %d", len(m.RestPtr), m.Rows, m.Rows+1)
	}
	all := slots.Panels{Format: name, One: "stream", Of: "row"}
	if err := all.CheckPointers(m.StreamPtr, len(m.Stored)/storedBits); err != nil {
		return err
	}
	return slots.Panels{Format: name, One: "row", Of: "rest entry"}.CheckPointers(m.RestPtr, len(m.RestCol))
}

func (m *Matrix[T]) checkRest() error {
	for i := range m.Rows {
		last := int64(-1)
		cols, _ := m.Rest(i)
		for _, c := range cols {
			if int64(c) <= last || int64(c) >= int64(m.Cols) {
				return fmt.Errorf("lanestream: the COO remainder of row %d has column %d after %d: need ascending ones below %d", i, c, last, m.Cols)
			}
			last = int64(c)
		}
	}
	return nil
}

// checkGroup checks that the chains of a group's streams keep to their window, and then the entries.
func (m *Matrix[T]) checkGroup(g int) error {
	most := MaxPieceRows(m.Layout, m.PieceSteps, m.Window)
	for q := range m.Parts {
		s := m.stream(g, q)
		fail := func(format string, args ...any) error {
			return fmt.Errorf("lanestream: stream %d of group %d %w", q, g, fmt.Errorf(format, args...))
		}
		if s.pieceRows < 1 || s.pieceRows > most {
			return fail("has %d rows a segment: need 1 to %d", m.PieceRows[g*m.Parts+q], most)
		}
		if s.count == 0 && s.rows > 0 || s.rows > s.pieceRows*(s.count-1+m.Window) {
			return fail("has %d rows for %d segments of %d", s.rows, s.count, s.pieceRows)
		}
		check := m.checkPlaces
		if m.Layout == Pairs {
			check = m.checkPairs
		}
		if err := check(g*m.Parts+q, s); err != nil {
			return fail("%w", err)
		}
	}
	return m.checkRows(g)
}

// checkPlaces checks that the chains of stream number keep to their window, and their values.
func (m *Matrix[T]) checkPlaces(number int, s streamOf) error {
	var reached [Chains]int
	var w words
	for j := range s.count {
		least, most := limits(j, s.count, s.pieceRows, m.Window, s.rows, 0)
		for c := range Chains {
			w.of(s.mask[j*m.PieceSteps*stepWords(Places):], c, m.PieceSteps)
			if reached[c] += w.count(m.PieceSteps * chainWords); reached[c] < least || reached[c] > most {
				return fmt.Errorf("takes %d values of chain %d by the end of segment %d: need %d to %d", reached[c], c, j, least, most)
			}
		}
	}
	return m.checkValues(number, &reached)
}

// checkValues checks that what a stream's chains do not take is no entry, and that what is no entry is +0.
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

// isZero tells whether v is +0.
func isZero[T formats.Value](v T) bool {
	if unsafe.Sizeof(v) == 2 {
		return *(*uint16)(unsafe.Pointer(&v)) == 0
	}
	return *(*uint32)(unsafe.Pointer(&v)) == 0
}
