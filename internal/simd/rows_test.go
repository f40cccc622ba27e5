// Consecutive rows at every level of instructions this machine has.

package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/spmmrun/spmm/formats/half"
	"pgregory.net/rapid"
)

func rows[T element, S float32 | float64](r *Rows[T, S]) {
	switch r := any(r).(type) {
	case *Rows[half.F16, float32]:
		RowsF16(r)
	case *Rows[half.BF16, float32]:
		RowsBF16(r)
	case *Rows[float32, float32]:
		RowsF32(r)
	case *Rows[float64, float64]:
		RowsF64(r)
	}
}

// testRows holds the function for T against sums in float64, on operands whose sums are exact: any order must give the
// same bits. Everything that the function must not touch or let in is NaN.
func testRows[T element, S float32 | float64](t *testing.T) {
	nan := from[T](float32(math.NaN()))
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(0, 300), rapid.SampledFrom([]int{16, 32, 64, 128})).Draw(t,
			"n")
		wide := (n + Width - 1) / Width * Width
		ldb, ldc := wide+rapid.IntRange(0, 9).Draw(t, "padding of B"), n+16*rapid.IntRange(0, 2).Draw(t, "padding of C")
		height := rapid.IntRange(0, 9).Draw(t, "rows of B")
		lengths := rapid.SliceOfN(rapid.IntRange(0, 20), 0, 12).Draw(t, "entries of each row")
		first := rapid.IntRange(0, 3).Draw(t, "first entry")
		rest := rapid.IntRange(0, 30).Draw(t, "entries of later rows")
		if height == 0 { // no entry has a row of B to meet
			clear(lengths)
			first, rest = 0, 0
		}
		shift := rapid.SampledFrom([]int{0, 1, 5}).Draw(t, "misalignment")
		alpha := rapid.IntRange(-3, 3).Draw(t, "alpha")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		small := func() T { return from[T](float32(r.IntN(33) - 16)) }

		p := &Rows[T, S]{LDC: ldc, N: n, LDB: ldb, Alpha: S(alpha)}
		p.Stream, p.Ahead = rapid.Bool().Draw(t, "stream"), rapid.SampledFrom([]int{0, 1, 7, 16}).Draw(t, "ahead")
		if height > 0 {
			p.B = make([]T, (height-1)*ldb+wide)
		}
		for i := range p.B {
			if p.B[i] = nan; i%ldb < n {
				p.B[i] = small()
			}
		}
		p.Starts = []uint32{uint32(first)}
		for i, l := range lengths {
			p.Starts = append(p.Starts, p.Starts[i]+uint32(l))
		}
		for range int(p.Starts[len(lengths)]) + rest {
			p.Vals, p.Cols = append(p.Vals, small()), append(p.Cols, uint32(r.IntN(height)))
		}
		for k := range first {
			p.Vals[k] = nan
		}
		want := make([]float64, len(lengths)*ldc)
		for i := range lengths {
			for k := p.Starts[i]; k < p.Starts[i+1]; k++ {
				for j := range n {
					want[i*ldc+j] += float64(alpha) * to(p.Vals[k]) * to(p.B[int(p.Cols[k])*ldb+j])
				}
			}
		}
		const guard = 12345
		levels(func(name string) {
			memory := make([]S, len(lengths)*ldc+shift+32)
			for i := range memory {
				memory[i] = guard
			}
			p.C = memory[shift:][:len(lengths)*ldc]
			rows(p)
			for i, x := range memory {
				at, expect := i-shift, float64(guard)
				if at >= 0 && at < len(want) && at%ldc < n {
					expect = want[at]
				}
				if float64(x) != expect {
					t.Fatalf("%s: element %d (row %d, column %d of %d) is %v, want %v", name, at, at/max(1, ldc), at%max(1, ldc), n, x,
						expect)
				}
			}
		})
	})
}

func TestRowsF32(t *testing.T)  { testRows[float32, float32](t) }
func TestRowsF16(t *testing.T)  { testRows[half.F16, float32](t) }
func TestRowsBF16(t *testing.T) { testRows[half.BF16, float32](t) }
func TestRowsF64(t *testing.T)  { testRows[float64, float64](t) }

// Sums are taken in one order, whether rows come one by one or several at once: the bits are those of RowF32, scaled.
func TestRowsOrder(t *testing.T) {
	const height = 50
	starts := []uint32{0, 37, 37, 38, 40, 43, 47, 56} // even and odd numbers of entries in turn
	last := len(starts) - 1
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{8, 16, 24, 32, 56, 64, 72, 96, 128, 136, 248, 256} {
		p := &Rows[float32, float32]{C: make([]float32, last*n), LDC: n, N: n, LDB: n, Alpha: 0.3, Starts: starts}
		for range height * n {
			p.B = append(p.B, r.Float32()-0.5)
		}
		for range starts[last] {
			p.Vals, p.Cols = append(p.Vals, r.Float32()), append(p.Cols, r.Uint32N(height))
		}
		levels(func(name string) {
			RowsF32(p)
			want := make([]float32, n)
			for i := range last {
				begin, end := starts[i], starts[i+1]
				RowF32(want, p.Vals[begin:end], p.Cols[begin:end], p.B, n)
				Axpby(want, want, p.Alpha, 0)
				for j, x := range p.C[i*n:][:n] {
					if x != want[j] {
						t.Fatalf("%s, %d columns: row %d, column %d is %v, want %v", name, n, i, j, x, want[j])
					}
				}
			}
		})
	}
}

// A NaN in one column of B reaches that column alone, and columns past N do not matter.
func TestRowsNonFinite(t *testing.T) {
	nan := float32(math.NaN())
	levels(func(name string) {
		for n := 1; n <= 140; n++ {
			ldb := (n + Width - 1) / Width * Width
			p := &Rows[float32, float32]{C: make([]float32, n), LDC: n, N: n, B: make([]float32, ldb), LDB: ldb,
				Vals: []float32{1}, Cols: []uint32{0}, Starts: []uint32{0, 1}, Alpha: 1}
			for j := n; j < ldb; j++ {
				p.B[j] = nan
			}
			p.B[n/2] = nan
			RowsF32(p)
			for j, x := range p.C {
				if (x != x) != (j == n/2) {
					t.Fatalf("%s, %d columns: column %d is %v", name, n, j, x)
				}
			}
		}
	})
}

func ExampleRowsF32() {
	p := &Rows[float32, float32]{
		Starts: []uint32{0, 2, 2, 3}, Cols: []uint32{0, 1, 1}, Vals: []float32{2, 1, 3}, // three rows, one of them empty
		B:   []float32{1, 2, 3, 4, 5, 6, 7, 8, 10, 20, 30, 40, 50, 60, 70, 80},
		LDB: 8, C: make([]float32, 9), LDC: 3, N: 3, Alpha: 1,
	}
	RowsF32(p)
	fmt.Println(p.C)
	// Output: [12 24 36 0 0 0 30 60 90]
}
