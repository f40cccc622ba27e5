// Rows of integers at every level of instructions this machine has.

package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func testRowInt[T int16 | int32](t *testing.T, row func([]int64, []int32, []uint32, []T, int), most int64) {
	rapid.Check(t, func(t *rapid.T) {
		n := Width * rapid.IntRange(0, 20).Draw(t, "n/8")
		nnz, rows := rapid.IntRange(0, 40).Draw(t, "nnz"), rapid.IntRange(1, 9).Draw(t, "rows of b")
		ldb, shift := n+rapid.IntRange(0, 9).Draw(t, "padding"), rapid.IntRange(0, 3).Draw(t, "misalignment")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		b := make([]T, shift+rows*ldb)
		for i := range b {
			b[i] = T(r.Int64N(2*most) - most)
		}
		b = b[shift:]
		vals, cols := make([]int32, nnz), make([]uint32, nnz)
		for k := range vals {
			vals[k], cols[k] = int32(r.Uint32()), uint32(r.IntN(rows))
		}
		if nnz > 0 {
			vals[0] = math.MinInt32
		}
		levels(func(name string) {
			acc := make([]int64, n+1)
			for j := range acc {
				acc[j] = -77
			}
			row(acc[:n], vals, cols, b, ldb)
			for j := range acc {
				want := int64(-77)
				if j < n {
					want = 0
					for k, v := range vals {
						want += int64(v) * int64(b[int(cols[k])*ldb+j])
					}
				}
				if acc[j] != want {
					t.Fatalf("%s: column %d of %d, %d entries: %d, want %d", name, j, n, nnz, acc[j], want)
				}
			}
		})
	})
}

func TestRowInt16(t *testing.T) { testRowInt(t, RowInt16, 1<<15) }
func TestRowInt32(t *testing.T) { testRowInt(t, RowInt32, 1<<31) }

func BenchmarkRowInt(b *testing.B) {
	for _, n := range []int{8, 128} {
		acc, vals, cols := make([]int64, n), make([]int32, 200), make([]uint32, 200)
		for k := range cols {
			cols[k] = uint32(k * 5)
		}
		x, y := make([]int16, 1000*n), make([]int32, 1000*n)
		run := func(name string, f func()) {
			b.Run(fmt.Sprintf("%s/n=%d", name, n), func(b *testing.B) {
				for b.Loop() {
					f()
				}
				b.ReportMetric(float64(n*len(vals)*b.N)/float64(b.Elapsed().Nanoseconds()), "products/ns")
			})
		}
		run("int16", func() { RowInt16(acc, vals, cols, x, n) })
		run("int32", func() { RowInt32(acc, vals, cols, y, n) })
	}
}
