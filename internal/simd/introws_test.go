// Rows of integers at every level of instructions this machine has.

package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// testIntRows holds rows against sums of integers, with products whose sums come close to 2⁵³. Everything that the
// function must not touch or let in is no integer.
func testIntRows[T int16 | int32](t *testing.T, most int64, pairs bool, run func(*IntRows[T])) {
	rapid.Check(t, func(t *rapid.T) {
		n := Width * rapid.IntRange(0, 20).Draw(t, "n/8")
		ldb, ldc := n+rapid.IntRange(0, 9).Draw(t, "padding of B"), n+rapid.IntRange(0, 9).Draw(t, "padding of C")
		height := rapid.IntRange(1, 9).Draw(t, "rows of B")
		lengths := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 20), rapid.Just(128)), 0, 12).Draw(t, "entries of each row")
		first, later := rapid.IntRange(0, 3).Draw(t, "first entry"), rapid.IntRange(0, 30).Draw(t, "entries of later rows")
		shift := rapid.IntRange(0, 3).Draw(t, "misalignment")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		integer := func(most int64) int64 {
			if r.IntN(4) == 0 {
				return most
			}
			return r.Int64N(2*most) - most
		}
		p := &IntRows[T]{LDC: ldc, N: n, LDB: ldb, B: make([]T, shift+height*ldb)}
		p.Ahead = rapid.SampledFrom([]int{0, 1, 7, 16}).Draw(t, "ahead")
		for i := range p.B {
			p.B[i] = T(integer(most - 1))
		}
		p.B = p.B[shift:]
		p.Starts = []uint32{uint32(first)}
		for i, l := range lengths {
			p.Starts = append(p.Starts, p.Starts[i]+uint32(l))
		}
		vals := [2][]float64{}
		for range int(p.Starts[len(lengths)]) + later {
			p.Cols = append(p.Cols, uint32(r.IntN(height)))
			for half := range vals {
				vals[half] = append(vals[half], float64(integer(1<<46/most)))
			}
		}
		sums := 1
		if p.Vals = vals[0]; pairs {
			p.Upper, sums = vals[1], 2
		}
		for half := range sums {
			for k := range first {
				vals[half][k] = math.NaN()
			}
		}
		const guard = 0.5
		want := make([]float64, sums*len(lengths)*ldc)
		for i := range want {
			if want[i] = guard; i%ldc < n {
				row, half, sum := i/ldc/sums, i/ldc%sums, int64(0)
				for k := p.Starts[row]; k < p.Starts[row+1]; k++ {
					sum += int64(vals[half][k]) * int64(p.B[int(p.Cols[k])*ldb+i%ldc])
				}
				want[i] = float64(sum)
			}
		}
		levels(func(name string) {
			p.C = make([]float64, len(want))
			for i := range p.C {
				p.C[i] = guard
			}
			run(p)
			for i, x := range p.C {
				if x != want[i] {
					t.Fatalf("%s: row %d, column %d of %d is %v, want %v", name, i/ldc, i%ldc, n, x, want[i])
				}
			}
		})
	})
}

func TestRowsInt16(t *testing.T)  { testIntRows(t, 1<<15, false, RowsInt16) }
func TestRowsInt32(t *testing.T)  { testIntRows(t, 1<<31, false, RowsInt32) }
func TestPairsInt32(t *testing.T) { testIntRows(t, 1<<31, true, RowsInt32) }

func BenchmarkIntRows(b *testing.B) {
	const entries, rows = 100, 10
	for _, n := range []int{8, 128} {
		cols, starts, vals := make([]uint32, rows*entries), []uint32{0}, make([]float64, rows*entries)
		for k := range cols {
			cols[k] = rand.Uint32N(1000)
		}
		for i := range rows {
			starts = append(starts, uint32(entries*(i+1)))
		}
		c := make([]float64, 2*rows*n)
		measure := func(name string, f func()) {
			b.Run(fmt.Sprintf("%s/n=%d", name, n), func(b *testing.B) {
				for b.Loop() {
					f()
				}
				b.ReportMetric(float64(n*len(cols)*b.N)/float64(b.Elapsed().Nanoseconds()), "products/ns")
			})
		}
		x, y := make([]int16, 1000*n), make([]int32, 1000*n)
		narrow := &IntRows[int16]{C: c, LDC: n, N: n, B: x, LDB: n, Vals: vals, Cols: cols, Starts: starts}
		wide := &IntRows[int32]{C: c, LDC: n, N: n, B: y, LDB: n, Vals: vals, Cols: cols, Starts: starts}
		pairs := *wide
		pairs.Upper = vals
		measure("int16", func() { RowsInt16(narrow) })
		measure("int32", func() { RowsInt32(wide) })
		measure("pairs", func() { RowsInt32(&pairs) })
	}
}
