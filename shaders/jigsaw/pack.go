// The arrays that kernels read. They are the format's, but for the indices of columns:
//
//   - For kernels with a RING of rows of B in shared memory, colidx begins with the row of the ring that each
//     position goes to (position mod RING) in 16 bits, interleaved for two steps like the metadata: the low
//     half of word 32·(n/2)+k is for column k of an even step n, the high half for the step after it. The
//     format's ColIdx follows. index has a record for each block in the format's Order: its number, its BlockPtr and
//     how many columns it has, StepPtr of its strips and of their end; then, from an even word on, a word for each
//     step: the first granule (of GRANULE positions) that this step or a later one of the strip needs, in the low 16
//     bits, and the last that this one needs.
//   - For those that gather rows of B one by one, colidx has the column of A for each of a step's 32
//     columns. index holds BlockPtr, StepPtr and Order.

package jigsaw

import (
	"fmt"
	"math"
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/jigsaw"
	"github.com/spmmrun/spmm/shaders/spec"
)

// ringMaxCols bounds the columns of a block for kernels with a ring: granules are numbered in 16 bits.
const ringMaxCols = 1 << 20

// options returns the format's options that a variant's packing needs.
func options(v *spec.Variant) jigsaw.Options {
	x := packingOf(v)
	o := jigsaw.Options{BlockTile: int(x.block)}
	if ring := int(x.ring); ring > 0 {
		// The positions in use lie in no more granules than the ring has, less one to fill meanwhile.
		o.Span, o.AvoidConflicts = ring-2*int(x.granule)+1, true
	}
	return o
}

// encode packs a matrix as a variant's constants say; adopt packs one that is encoded already, as the variant needs.
var (
	encode = spec.Encoder(pack[half.F16], pack[half.BF16], pack[float32])
	adopt  = spec.Adopter(take[half.F16], take[half.BF16], take[float32])
)

func pack[T formats.Value](a *formats.CSR[T], v *spec.Variant) (*spec.Packed, error) {
	m, err := jigsaw.Encode(a, options(v))
	if err != nil {
		return nil, err
	}
	return arrange(m, v)
}

func take[T formats.Value](m *jigsaw.Matrix[T], v *spec.Variant) (*spec.Packed, error) {
	o := options(v)
	if m.BlockTile != o.BlockTile || o.Span > 0 && (m.Span == 0 || m.Span > o.Span) {
		return nil, fmt.Errorf("kernel jigsaw/%s takes blocks of %d rows with a span of at most %d (0: any), not %d and %d",
			v.Name, o.BlockTile, o.Span, m.BlockTile, m.Span)
	}
	return arrange(m, v)
}

// arrange makes the arrays that a variant reads.
func arrange[T formats.Value](m *jigsaw.Matrix[T], v *spec.Variant) (*spec.Packed, error) {
	ring := int(packingOf(v).ring)
	if ring > 0 && m.Cols > ringMaxCols {
		return nil, fmt.Errorf("kernel jigsaw/%s takes matrices of at most %d columns, not %d: %w", v.Name, ringMaxCols, m.Cols, backend.ErrUnsupported)
	}
	if ring > 0 && int64(ringWords(v, m.Steps())) > math.MaxUint32 {
		return nil, fmt.Errorf("kernel jigsaw/%s: %d steps do not fit 32-bit offsets: %w", v.Name, m.Steps(),
			backend.ErrUnsupported)
	}
	stats := m.Stats()
	var index, cols []uint32
	if ring > 0 {
		index, cols = slices.Concat(records(m), granules(m, int(packingOf(v).granule))),
			slices.Concat(ringRows(m, ring), m.ColIdx)
	} else {
		index, cols = slices.Concat(m.BlockPtr, m.StepPtr, m.Order), resolve(m)
	}
	stats.Gathers, stats.Staged = int64(len(cols)-ringWords(v, m.Steps())), ring > 0
	items := int64(m.Strips())
	if ring > 0 {
		items, stats.Longest = int64(m.Blocks()), longest(m.BlockPtr)
	} else {
		stats.Longest = jigsaw.StepCols * longest(m.StepPtr)
	}
	if v.Code != backend.CodePTX { // which alone knows sparse operands
		stats.MACs *= 2
	}
	e := &spec.Packed{
		Rows: m.Rows, Cols: m.Cols, NNZ: m.NNZ(), Stats: stats, Items: items, Format: m,
		Arrays: []spec.Array{
			spec.NewArray("index", index),
			spec.NewArray("colidx", cols),
			spec.NewArray("metadata", m.Metadata),
			spec.NewArray("values", m.Values),
			spec.NewArray("mask", m.Mask),
		},
	}
	e.Stats.StoredBytes = e.Bytes()
	return e, nil
}

// longest returns the greatest distance between neighbouring pointers.
func longest(ptr []uint32) int64 {
	var n uint32
	for i := range len(ptr) - 1 {
		n = max(n, ptr[i+1]-ptr[i])
	}
	return int64(n)
}

// resolve returns the column of A of each of a step's columns.
func resolve[T formats.Value](m *jigsaw.Matrix[T]) []uint32 {
	cols := make([]uint32, len(m.BlockColIdx))
	strips := m.BlockTile / jigsaw.StripRows
	for s := range m.Strips() {
		list := m.ColIdx[m.BlockPtr[s/strips]:]
		for i := jigsaw.StepCols * int(m.StepPtr[s]); i < jigsaw.StepCols*int(m.StepPtr[s+1]); i++ {
			cols[i] = list[m.BlockColIdx[i]]
		}
	}
	return cols
}

// records returns what index says of each block, an even number of words.
func records[T formats.Value](m *jigsaw.Matrix[T]) []uint32 {
	var words []uint32
	strips := uint32(m.BlockTile / jigsaw.StripRows)
	for _, b := range m.Order {
		words = append(words, b, m.BlockPtr[b], m.BlockPtr[b+1]-m.BlockPtr[b])
		words = append(words, m.StepPtr[b*strips:(b+1)*strips+1]...)
	}
	return append(words, make([]uint32, len(words)%2)...)
}

// ringWords is how many words of colidx say where in the ring the positions of a number of steps are: none without a
// ring.
func ringWords(v *spec.Variant, steps int) int {
	if packingOf(v).ring == 0 {
		return 0
	}
	return steps * jigsaw.StepCols / 2
}

// ringRows returns the row of the ring for each position, two steps to a word.
func ringRows[T formats.Value](m *jigsaw.Matrix[T], ring int) []uint32 {
	const n = jigsaw.StepCols
	words := make([]uint32, len(m.BlockColIdx)/2)
	for i := range words {
		even := i/n*2*n + i%n
		words[i] = m.BlockColIdx[even]%uint32(ring) | m.BlockColIdx[even+n]%uint32(ring)<<16
	}
	return words
}

// granules returns, for each step, the first granule that it or a later step of its strip needs and, in the
// high half, the last that it needs.
func granules[T formats.Value](m *jigsaw.Matrix[T], size int) []uint32 {
	words := make([]uint32, m.Steps())
	for s := range m.Strips() {
		least := uint32(1<<32 - 1)
		for n := int(m.StepPtr[s+1]) - 1; n >= int(m.StepPtr[s]); n-- {
			positions := m.BlockColIdx[n*jigsaw.StepCols:][:jigsaw.StepCols]
			least = min(least, slices.Min(positions))
			words[n] = least/uint32(size) | slices.Max(positions)/uint32(size)<<16
		}
	}
	return words
}
