// The inner loops' speed, in cache and out of it, compared with copying and with plain Go.

package simd

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/spmmrun/spmm/formats/half"
)

// benchRow measures rows of 64 entries against a b of the given rows: GFLOP/s counts two operations
// for each entry and column, and bytes are those of b that are gathered. BenchmarkCopy is the
// baseline for the latter.
func benchRow[T element](b *testing.B) {
	const nnz = 64
	for _, rows := range []int{64, 1 << 17} { // in L1/L2; in memory
		for _, n := range []int{8, 16, 32, 64, 128, 512} {
			if rows*n > 1<<24 {
				continue
			}
			b.Run(fmt.Sprintf("rows=%d/n=%d", rows, n), func(b *testing.B) {
				x, acc, vals := make([]T, rows*n), make([]float32, n), make([]T, nnz)
				for i := range x {
					x[i] = from[T](1)
				}
				cols := make([]uint32, 1<<16)
				for i := range cols {
					cols[i] = uint32(rand.IntN(rows))
				}
				b.SetBytes(int64(nnz * n * int(unsafe.Sizeof(x[0]))))
				i := 0
				for b.Loop() {
					row(acc, vals, cols[i:i+nnz], x, n)
					i = (i + nnz) % len(cols)
				}
				b.ReportMetric(2*nnz*float64(n)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
			})
		}
	}
}

func BenchmarkRowF32(b *testing.B)  { benchRow[float32](b) }
func BenchmarkRowF16(b *testing.B)  { benchRow[half.F16](b) }
func BenchmarkRowBF16(b *testing.B) { benchRow[half.BF16](b) }

func BenchmarkCopy(b *testing.B) {
	for _, kib := range []int{16, 64 << 10} {
		b.Run(fmt.Sprintf("KiB=%d", kib), func(b *testing.B) {
			x, y := make([]byte, kib<<10), make([]byte, kib<<10)
			for i := range x {
				x[i] = 1
			}
			copy(y, x) // makes the pages real
			b.SetBytes(int64(kib) << 10)
			for b.Loop() {
				copy(y, x)
			}
		})
	}
}

// BenchmarkGo measures the form in Go, which machines without assembly use.
func BenchmarkGo(b *testing.B) {
	defer func(l int) { level = l }(level)
	level = 0
	b.Run("F32", benchRow[float32])
	b.Run("F16", benchRow[half.F16])
}

// benchRows measures rows of a product whose entries and b are in the caches or not: uniform entries, and a band.
func benchRows[T element](b *testing.B) {
	for _, m := range []struct {
		name            string
		rows, cols, nnz int
	}{{"dense", 1024, 1024, 512}, {"sparse", 1024, 1024, 102}, {"band", 27000, 27000, 27}, {"short", 20000, 20000, 6},
		{"graph", 20000, 20000, 24}} {
		for _, n := range []int{8, 32, 128} {
			b.Run(fmt.Sprintf("%s/n=%d", m.name, n), func(b *testing.B) {
				r := Rows[T, float32]{C: make([]float32, m.rows*n), LDC: n, N: n, B: make([]T, m.cols*n), LDB: n, Alpha: 1}
				for i := range r.B {
					r.B[i] = from[T](1)
				}
				r.Starts = append(r.Starts, 0)
				for i := range m.rows {
					for k := range m.nnz {
						col := rand.IntN(m.cols)
						if m.name == "band" {
							col = (i + (k%3 - 1) + (k/3%3-1)*30 + (k/9-1)*900 + m.cols) % m.cols
						}
						r.Cols, r.Vals = append(r.Cols, uint32(col)), append(r.Vals, from[T](1))
					}
					r.Starts = append(r.Starts, uint32(len(r.Cols)))
				}
				if m.name != "band" && n > 8 {
					r.Ahead = 16
				}
				for b.Loop() {
					rows(&r)
				}
				b.ReportMetric(2*float64(len(r.Cols)*n)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
			})
		}
	}
}

func BenchmarkRowsF32(b *testing.B)  { benchRows[float32](b) }
func BenchmarkRowsF16(b *testing.B)  { benchRows[half.F16](b) }
func BenchmarkRowsBF16(b *testing.B) { benchRows[half.BF16](b) }
