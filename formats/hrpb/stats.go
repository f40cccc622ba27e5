// What the format costs, and how well matrix units fit the matrix.

package hrpb

import (
	"math/bits"

	"github.com/spmmrun/spmm/formats"
)

// Synergy says how well tensor cores suit a matrix (§6.4).
type Synergy int

// The paper's classes, by Stats.Alpha: below 12.5 %, below 25 %, and above.
const (
	LowSynergy Synergy = iota
	MediumSynergy
	HighSynergy
)

func (s Synergy) String() string { return [...]string{"low", "medium", "high"}[s] }

// Stats describes a matrix in this format.
type Stats struct {
	formats.Stats
	Bricks     int64 // with at least one entry
	ActiveCols int64 // active columns of all panels, padding not counted
	// Alpha is the TCU-synergy: the mean density of the bricks, nnz over 64·Bricks (§4).
	Alpha float64
	// Intensity is the modelled operational intensity: operations for each word moved from shared
	// memory, 512·Alpha (§4, equation 4).
	Intensity float64
	Heaviest  int // blocks of the heaviest panel
	Parts     int // of the work list
	Split     int // panels of more than one part
}

// Synergy is the class of Alpha.
func (s Stats) Synergy() Synergy {
	switch {
	case s.Alpha < 0.125:
		return LowSynergy
	case s.Alpha < 0.25:
		return MediumSynergy
	}
	return HighSynergy
}

// Stats tells what the format costs. Bricks with an entry are multiplied whole; every active column fetches a row of B.
// Slots are the bits of those bricks; only the entries have stored values.
func (m *Matrix[T]) Stats() Stats {
	words := len(m.Active) + len(m.RowIdx) + len(m.SizePtr) + len(m.Packed) + 4*len(m.Parts) + 4*len(m.Splits)
	s := Stats{Parts: len(m.Parts), Split: len(m.Splits)}
	s.StoredBytes = 4 * int64(words)
	var nnz int64
	for q := range len(m.SizePtr) - 1 {
		b := m.Block(q)
		for i := range b.Bricks() {
			if w := b.Pattern(i); w != 0 {
				nnz += int64(bits.OnesCount64(w))
				s.Bricks++
				s.ActiveCols += int64(bits.OnesCount64(columns(w)))
			}
		}
	}
	for p := range len(m.BlockPtr) - 1 {
		s.Heaviest = max(s.Heaviest, int(m.BlockPtr[p+1]-m.BlockPtr[p]))
	}
	const brick = PanelRows * BrickCols
	s.Slots, s.MACs, s.Gathers = brick*s.Bricks, brick*s.Bricks, s.ActiveCols
	if s.Bricks > 0 {
		s.Alpha = float64(nnz) / float64(brick*s.Bricks)
		s.Fill = s.Alpha
		s.Intensity = 512 * s.Alpha
	}
	return s
}

// columns returns a bit for each column of a pattern that holds an entry.
func columns(w uint64) uint64 {
	for s := 32; s >= BrickCols; s /= 2 {
		w |= w >> s
	}
	return w & (1<<BrickCols - 1)
}

// NNZ returns the number of stored entries.
func (m *Matrix[T]) NNZ() int64 {
	var n int64
	for q := range len(m.SizePtr) - 1 {
		n += int64(m.Block(q).Entries())
	}
	return n
}
