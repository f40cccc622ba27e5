// Where a packed matrix holds its entries.

package values

import (
	"fmt"
	"math"
	"slices"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/internal/resident"
	"github.com/spmmrun/spmm/shaders/spec"
	kernel "github.com/spmmrun/spmm/shaders/values"
)

// placesOf tells which slots of a part hold its entries.
func placesOf(m *resident.Matrix, pt *resident.Part) (places, error) {
	if packed, ok := pt.Data.Format.(formats.Encoded); ok {
		return findPlaces(m, packed, pt.Data.NNZ)
	}
	at := places{array: valuesArray(m), full: kernel.FullQuads}
	if split, is := pt.Data.Format.(spec.Split); is && split.Lead > 0 {
		at.entries = ascending(split.Lead, pt.Data.NNZ)
	}
	return at, nil
}

// ascending returns places.entries for n entries in their order behind some slots without any.
func ascending(lead int, n int64) []uint32 {
	entries := make([]uint32, lead+int(n))
	for i := range entries[lead:] {
		entries[lead+i] = uint32(i) + 1
	}
	return entries
}

// valuesArray returns which array of a format that has no matrix of its own holds the values, in the order of the
// entries.
func valuesArray(m *resident.Matrix) int { return m.Kernel.Arg("values") }

// places tells where a packed array holds entries.
type places struct {
	array int // which
	// entries has for each slot the number of its entry, plus 1; 0 for none. nil: slots hold entries in order.
	entries []uint32
	full    int // see package values
}

// inOrder tells whether the first n slots hold the entries in their order.
func (at *places) inOrder(n int64) bool {
	if at.entries == nil {
		return true
	}
	for i, e := range at.entries[:n] {
		if e != uint32(i)+1 {
			return false
		}
	}
	return true
}

// digits are the numbers that elements of 16 bits hold, 0 excepted.
const digits = 1<<16 - 1

// findPlaces finds the slots of a packed matrix of n entries: it packs the matrix with numbers in place of values,
// and with zeros, and looks where these differ. No format looks at values.
func findPlaces(m *resident.Matrix, packed formats.Encoded, n int64) (at places, err error) {
	zero, err := packWith(m, packed, n, func(int64) uint32 { return 0 })
	if err != nil {
		return at, err
	}
	half := m.Operand.Size() == 2
	low, err := packWith(m, packed, n, func(i int64) uint32 {
		if half {
			i %= digits
		}
		return uint32(i) + 1
	})
	if err != nil {
		return at, err
	}
	at.array = slices.IndexFunc(low, func(a spec.Array) bool { return string(a.Data) != string(data(zero, a.Name)) })
	if at.array < 0 {
		return at, fmt.Errorf("format %s has the same arrays for all values", packed.Format())
	}
	name, found := low[at.array].Name, int64(0)
	if half {
		high, err := packWith(m, packed, n, func(i int64) uint32 { return uint32(i/digits) + 1 })
		if err != nil {
			return at, err
		}
		found = at.find16(backend.View[uint16](data(zero, name)), backend.View[uint16](data(low, name)),
			backend.View[uint16](data(high, name)))
	} else if m.Operand == dtype.F64 {
		found = findWords(&at, backend.View[uint64](data(zero, name)), backend.View[uint64](data(low, name)))
	} else {
		found = findWords(&at, backend.View[uint32](data(zero, name)), backend.View[uint32](data(low, name)))
	}
	if found != n {
		return at, fmt.Errorf("format %s: %d of %d entries found in its arrays", packed.Format(), found, n)
	}
	return at, nil
}

// data returns the array of a name.
func data(arrays []spec.Array, name string) []byte {
	return arrays[slices.IndexFunc(arrays, func(a spec.Array) bool { return a.Name == name })].Data
}

// find16 sets entries and full, given the array with zeros in place of values, and with the low and high digits of the
// entries' numbers, each plus 1. It returns how many entries it found. findWords does so for numbers plus 1.
func (at *places) find16(zero, low, high []uint16) (found int64) {
	at.entries = make([]uint32, len(zero))
	for s, x := range low {
		if x != zero[s] {
			at.entries[s] = uint32(x) + uint32(high[s]-1)*digits
			found++
		}
	}
	at.full = fullness(at.entries, zero, 8, 2)
	return found
}

func findWords[E uint32 | uint64](at *places, zero, number []E) (found int64) {
	at.entries = make([]uint32, len(zero))
	for s, x := range number {
		if x != zero[s] {
			at.entries[s] = uint32(x)
			found++
		}
	}
	at.full = fullness(at.entries, zero, 4, 1)
	return found
}

// fullness tells how far the slots without an entry are zero: see package values. quad and word are the slots of
// four words and of a word.
func fullness[E uint16 | uint32 | uint64](entries []uint32, zero []E, quad, word int) int {
	alone := func(together int) bool { // each run of that many slots holds only entries and zeros
		for s := 0; s < len(entries); s += together {
			held, other := uint32(0), E(0)
			for i := s; i < min(s+together, len(entries)); i++ {
				held |= entries[i]
				other |= zero[i]
			}
			if held != 0 && other != 0 {
				return false
			}
		}
		return true
	}
	switch {
	case alone(quad):
		return kernel.FullQuads
	case alone(word):
		return kernel.FullWords
	}
	return kernel.FullNone
}

// packWith returns the arrays of a packed matrix whose n entries have values of these bits.
func packWith(m *resident.Matrix, packed formats.Encoded, n int64, bits func(i int64) uint32) ([]spec.Array, error) {
	var err error
	switch m.Operand {
	case dtype.F16:
		packed, err = withBits(packed, n, func(i int64) half.F16 { return half.F16(bits(i)) })
	case dtype.BF16:
		packed, err = withBits(packed, n, func(i int64) half.BF16 { return half.BF16(bits(i)) })
	case dtype.F64:
		packed, err = withBits(packed, n, func(i int64) float64 { return math.Float64frombits(uint64(bits(i))) })
	default:
		x := make([]uint32, n)
		for i := range x {
			x[i] = bits(int64(i))
		}
		packed, err = withValues(packed, backend.View[float32](backend.Bytes(x)))
	}
	if err != nil {
		return nil, err
	}
	if m.Kernel.Adopt == nil {
		return nil, fmt.Errorf("format %s takes no new values: %w", packed.Format(), backend.ErrUnsupported)
	}
	e, err := m.Kernel.Adopt(packed, m.Variant)
	if err != nil {
		return nil, err
	}
	return e.Arrays, nil
}

func withBits[T formats.Value](packed formats.Encoded, n int64, bits func(i int64) T) (formats.Encoded, error) {
	x := make([]T, n)
	for i := range x {
		x[i] = bits(int64(i))
	}
	return withValues(packed, x)
}

func withValues[T formats.Value](packed formats.Encoded, x []T) (formats.Encoded, error) {
	m, ok := packed.(interface {
		WithValues([]T) formats.Encoded
	})
	if !ok {
		return nil, fmt.Errorf("format %s takes no new values: %w", packed.Format(), backend.ErrUnsupported)
	}
	return m.WithValues(x), nil
}
