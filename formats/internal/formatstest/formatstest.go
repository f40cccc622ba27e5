// Package formatstest has the tests that formats share: decoding returns the encoded matrix, and invalid ones are
// refused.
package formatstest

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
)

// EachType runs a check of random matrices for each of the element types that all formats hold.
func EachType(t *testing.T, f16, bf16, f32 func(*rapid.T)) {
	t.Run("f16", rapid.MakeCheck(f16))
	t.Run("bf16", rapid.MakeCheck(bf16))
	t.Run("f32", rapid.MakeCheck(f32))
}

// RoundTrips encodes random matrices, with random options, of each of the element types that all formats hold: Holds.
func RoundTrips[O any, A, B, C formats.Encoded](t *testing.T, size Size, options func(*rapid.T) O,
	f16 func(*formats.CSR[half.F16], O) (A, error), bf16 func(*formats.CSR[half.BF16], O) (B, error),
	f32 func(*formats.CSR[float32], O) (C, error)) {
	EachType(t, roundTrip(size, options, f16), roundTrip(size, options, bf16), roundTrip(size, options, f32))
}

func roundTrip[T formats.Value, O any, M formats.Encoded](size Size, options func(*rapid.T) O,
	encode func(*formats.CSR[T], O) (M, error)) func(*rapid.T) {
	return func(t *rapid.T) {
		a := Draw[T](t, size)
		m, err := encode(a, options(t))
		Holds(t, a, m, err)
	}
}

// Size draws how many rows and columns a random matrix has.
type Size struct{ Rows, Cols *rapid.Generator[int] }

// UpTo is any size from none to these numbers of rows and columns.
func UpTo(rows, cols int) Size { return Size{rapid.IntRange(0, rows), rapid.IntRange(0, cols)} }

// Draw makes any matrix: empty rows, full rows, rows alike, stored zeros, infinities and NaN, no rows or no columns.
func Draw[T formats.Value](t *rapid.T, size Size) *formats.CSR[T] {
	a := &formats.CSR[T]{RowPtr: []int64{0}, ColIdx: []int32{}, Val: []T{}}
	a.Rows, a.Cols = size.Rows.Draw(t, "rows"), size.Cols.Draw(t, "cols")
	density := rapid.SampledFrom([]float64{0, 0.01, 0.02, 0.1, 0.3, 0.5, 0.9, 1}).Draw(t, "density")
	odd := rapid.SampledFrom([]int{8, 8, 3, 30, 1000}).Draw(t, "one odd row in")
	alike := rapid.SampledFrom([]int{1, 1, 2, 8}).Draw(t, "rows alike")
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	values := make([]T, 7)
	formats.ConvertSlice(values, []float64{0, math.Copysign(0, -1), 1, -2, 0.5, math.Inf(1), math.NaN()})
	var cols []int32
	for i := range a.Rows {
		if i%alike == 0 {
			cols = row(cols[:0], a.Cols, density, odd, rng)
		}
		for range cols {
			a.Val = append(a.Val, values[rng.IntN(len(values))])
		}
		a.ColIdx, a.RowPtr = append(a.ColIdx, cols...), append(a.RowPtr, int64(len(a.Val)))
	}
	return a
}

// row appends the columns of a random row to cols. Some rows are empty, and some are full.
func row(cols []int32, n int, density float64, odd int, rng *rand.Rand) []int32 {
	switch rng.IntN(odd) {
	case 0:
		return cols
	case 1:
		density = 1
	}
	for j := range n {
		if rng.Float64() < density {
			cols = append(cols, int32(j))
		}
	}
	return cols
}

// Entries returns a matrix's entries by row and column.
func Entries[T formats.Value](a *formats.CSR[T]) map[[2]int]T {
	entries := make(map[[2]int]T, len(a.Val))
	for i := range a.Rows {
		for p := a.RowPtr[i]; p < a.RowPtr[i+1]; p++ {
			entries[[2]int{i, int(a.ColIdx[p])}] = a.Val[p]
		}
	}
	return entries
}

// Bits are a number's bits, by which -0 differs from 0 and a NaN is itself.
func Bits(x float32) uint32 { return math.Float32bits(x) }

// Decodes fails unless m is valid, and the matrix that it was encoded of, a, comes back.
func Decodes[T formats.Value](t testing.TB, a *formats.CSR[T], m formats.Encoded) {
	t.Helper()
	if err := m.Validate(); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(a, m.Sparse()); d != "" {
		t.Fatalf("decoded (-want +got):\n%s", d)
	}
}

// Again fails unless what an encoded matrix m decodes to was encoded to the same arrays again.
func Again(t testing.TB, m, again formats.Encoded, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(m, again, cmpopts.EquateEmpty()); d != "" {
		t.Fatalf("decoded and encoded again (-want +got):\n%s", d)
	}
}

// Holds fails unless m, which was encoded of a, is valid and holds the same values in the same places, to the bit; and
// then other values, which it is given.
func Holds[T formats.Value](t *rapid.T, a *formats.CSR[T], m formats.Encoded, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	same(t, "encoded and decoded", a, m)
	if m.NNZ() != a.NNZ() {
		t.Fatalf("NNZ %d, want %d", m.NNZ(), a.NNZ())
	}
	b := *a
	b.Val = slices.Clone(a.Val)
	slices.Reverse(b.Val)
	same(t, "with other values", &b, m.(interface{ WithValues([]T) formats.Encoded }).WithValues(b.Val))
}

func same[T formats.Value](t *rapid.T, what string, want *formats.CSR[T], m formats.Encoded) {
	t.Helper()
	if err := m.Validate(); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if got := m.Sparse().(*formats.CSR[T]); !got.Equal(want) {
		t.Fatalf("%s:\n%+v\nwant\n%+v", what, got, want)
	}
}
