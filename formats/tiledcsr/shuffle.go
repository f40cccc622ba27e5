// The row shuffle: which rows make a group (§III-B and III-C).

package tiledcsr

import (
	"cmp"
	"math/bits"
	"slices"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/internal/par"
)

const (
	// Runs of the sorted rows are shuffled separately: each has at least runRows rows and runBins bins, so that few slots
	// are opened within a bin's reach of a run's end.
	runRows = 1024
	runBins = 16

	// Columns are distinguished by their number modulo this, which bounds the memory of a shuffle.
	// Where a matrix is wider, two columns may look like one, and a match a little better than it is.
	markCols = 1 << 20
)

// shuffled returns the rows in an order in which every Height of them make a group; only the last group
// may be shorter.
func shuffled[T formats.Value](a *formats.CSR[T], o Options) []uint32 {
	order := make([]uint32, a.Rows)
	for i := range order {
		order[i] = uint32(i)
	}
	if o.Keep {
		return order
	}
	presort(a, order)
	run := max(runRows, runBins*o.Bin) / o.Height * o.Height
	par.Each((a.Rows+run-1)/run, 1, func(i int) {
		rows := order[i*run : min(a.Rows, (i+1)*run)]
		newShuffler(a, o, rows).shuffle(rows)
	})
	return order
}

// presort sorts rows by falling Σ(col+1)², and rows of equal sums by their number. (Falling, so that the
// group that is not full is one of light rows.)
func presort[T formats.Value](a *formats.CSR[T], order []uint32) {
	type key struct{ hi, lo uint64 }
	keys := make([]key, len(order))
	par.Rows(a.RowPtr, 1<<16, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			k := &keys[i]
			for _, c := range a.ColIdx[a.RowPtr[i]:a.RowPtr[i+1]] {
				var carry uint64
				x := uint64(c) + 1
				k.lo, carry = bits.Add64(k.lo, x*x, 0)
				k.hi += carry
			}
		}
	})
	slices.SortFunc(order, func(x, y uint32) int {
		p, q := keys[x], keys[y]
		return cmp.Or(cmp.Compare(q.hi, p.hi), cmp.Compare(q.lo, p.lo), cmp.Compare(x, y))
	})
}

// shuffler makes slots of the rows of one run. It numbers them from 0 on.
type shuffler[T formats.Value] struct {
	a     *formats.CSR[T]
	o     Options
	run   []uint32 // the rows' numbers in the matrix
	wide  []marks  // the columns of each row as sets; nil if they are too few for that
	first marks    // columns of the slot's first row
	slot  marks    // columns of all its rows
	count int      // of columns in slot
	rows  []uint32 // in the slot
	bin   []uint32
}

func newShuffler[T formats.Value](a *formats.CSR[T], o Options, run []uint32) *shuffler[T] {
	s := &shuffler[T]{a: a, o: o, run: slices.Clone(run), first: newMarks(a.Cols), slot: newMarks(a.Cols)}
	entries := 0
	for r := range run {
		entries += len(s.cols(uint32(r)))
	}
	if entries >= len(s.slot)*len(run) {
		s.wide = make([]marks, len(run))
		for r := range run {
			s.wide[r] = newMarks(a.Cols)
			s.wide[r].add(s.cols(uint32(r)))
		}
	}
	return s
}

// shuffle puts the rows into order, slot after slot.
func (s *shuffler[T]) shuffle(order []uint32) {
	rest := make([]uint32, len(s.run)) // in front are always the rows that slots so far left in the bin
	for i := range rest {
		rest[i] = uint32(i)
	}
	for len(rest) > 0 {
		looked := s.match(rest)
		s.fill()
		for i, r := range s.rows {
			order[i] = s.run[r]
		}
		copy(rest[len(s.rows):looked], s.bin)
		order, rest = order[len(s.rows):], rest[len(s.rows):]
		s.clear()
	}
}

// match opens a slot with the first row and looks at the rows behind it until the slot or the bin is
// full. It returns how many rows are in one of them.
func (s *shuffler[T]) match(rest []uint32) int {
	s.rows, s.bin = append(s.rows[:0], rest[0]), s.bin[:0]
	s.first.add(s.cols(rest[0]))
	s.count = s.slot.add(s.cols(rest[0]))
	i := 1
	for ; i < len(rest) && len(s.rows) < s.o.Height && len(s.bin) < s.o.Bin; i++ {
		if r := rest[i]; s.similar(r) || s.complementary(r) {
			s.rows = append(s.rows, r)
			s.count += s.slot.add(s.cols(r))
		} else {
			s.bin = append(s.bin, r)
		}
	}
	return i
}

// similar is Algorithm 2.
func (s *shuffler[T]) similar(r uint32) bool {
	seed, own := len(s.cols(s.rows[0])), len(s.cols(r))
	limit := (1 + s.o.Threshold) * float64(max(seed, own))
	return float64(max(seed, own)) < limit && float64(seed+own-s.shared(s.first, r)) < limit
}

// complementary is Algorithm 3.
func (s *shuffler[T]) complementary(r uint32) bool {
	own, limit := len(s.cols(r)), s.o.Complement
	return s.count <= limit && own <= limit && s.count+own-s.shared(s.slot, r) <= limit
}

// fill moves rows from the bin to the slot until it is full, each time the one nearest to the slot by
// the angle between them: columns shared, over the root of the row's length. (Columns shared alone
// would prefer long rows, their part of the row short ones; either mixes lengths, which presorting
// set apart.)
func (s *shuffler[T]) fill() {
	for len(s.rows) < s.o.Height && len(s.bin) > 0 {
		best, nearest := 0, -1.0
		for i, r := range s.bin {
			shared := float64(s.shared(s.slot, r))
			if near := shared * shared / float64(max(1, len(s.cols(r)))); near > nearest {
				best, nearest = i, near
			}
		}
		s.count += s.slot.add(s.cols(s.bin[best]))
		s.rows = append(s.rows, s.bin[best])
		s.bin = slices.Delete(s.bin, best, best+1)
	}
}

// clear forgets the slot's columns.
func (s *shuffler[T]) clear() {
	s.first.remove(s.cols(s.rows[0]))
	for _, r := range s.rows {
		s.slot.remove(s.cols(r))
	}
}

// cols returns the columns of a row.
func (s *shuffler[T]) cols(r uint32) []int32 {
	row := s.run[r]
	return s.a.ColIdx[s.a.RowPtr[row]:s.a.RowPtr[row+1]]
}

// shared returns how many of a row's columns are in m.
func (s *shuffler[T]) shared(m marks, r uint32) (n int) {
	if s.wide != nil {
		for i, w := range s.wide[r][:len(m)] {
			n += bits.OnesCount64(w & m[i])
		}
		return n
	}
	for _, c := range s.cols(r) {
		w, b := m.at(c)
		n += int(m[w] >> b & 1)
	}
	return n
}

// marks is a set of columns, modulo its size.
type marks []uint64

func newMarks(cols int) marks {
	size := 64
	for size < min(cols, markCols) {
		size *= 2
	}
	return make(marks, size/64)
}

// at returns the word and the bit of a column.
func (m marks) at(c int32) (word, bit uint32) {
	return uint32(c) / 64 & uint32(len(m)-1), uint32(c) % 64
}

// add adds columns and returns how many are new.
func (m marks) add(cols []int32) (added int) {
	for _, c := range cols {
		w, b := m.at(c)
		added += int(^m[w] >> b & 1)
		m[w] |= 1 << b
	}
	return added
}

func (m marks) remove(cols []int32) {
	for _, c := range cols {
		w, b := m.at(c)
		m[w] &^= 1 << b
	}
}
