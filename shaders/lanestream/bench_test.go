// How fast the kernels are on every device present.

package lanestream_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/shaders/lanestream"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/spec"
)

var size = flag.String("size", "4096x4096", "rows and columns that BenchmarkMultiply takes")

// halves is a matrix of random numbers with so many percent of zeros.
func halves(rows, cols, zeros int) *formats.CSR[half.F16] {
	a := &formats.CSR[half.F16]{Rows: rows, Cols: cols, RowPtr: make([]int64, rows+1)}
	kept := make([][]int32, rows)
	var wg sync.WaitGroup
	for part := range 16 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(part), uint64(zeros)))
			for i := part; i < rows; i += 16 {
				for j := range cols {
					if r.Uint32N(100) >= uint32(zeros) {
						kept[i] = append(kept[i], int32(j))
					}
				}
			}
		})
	}
	wg.Wait()
	for i, cols := range kept {
		a.RowPtr[i+1] = a.RowPtr[i] + int64(len(cols))
		a.ColIdx = append(a.ColIdx, cols...)
	}
	a.Val = make([]half.F16, len(a.ColIdx))
	for i := range a.Val {
		a.Val[i] = half.F16From(float32(i%63) - 31)
	}
	return a
}

// BenchmarkMultiply is a matrix of f16 with scattered zeros times few columns and many, on every device.
func BenchmarkMultiply(b *testing.B) {
	var rows, cols int
	if _, err := fmt.Sscanf(*size, "%dx%d", &rows, &cols); err != nil {
		b.Fatal(err)
	}
	shadertest.EachBench(b, func(dev backend.Device) {
		for _, zeros := range []int{50, 70, 90} {
			a := sync.OnceValue(func() *formats.CSR[half.F16] { return halves(rows, cols, zeros) })
			packed := map[string]*spec.Packed{}
			for _, v := range lanestream.Format.Variants {
				if v.In != dtype.F16 || !v.Met(dev.Caps()) {
					continue
				}
				for _, n := range []int{8, 16, 32, 128, 512} {
					b.Run(fmt.Sprintf("%d/zeros=%d/n=%d/%s", rows, zeros, n, v.Name), func(b *testing.B) {
						key := ""
						for _, name := range lanestream.Format.Packing {
							key += fmt.Sprint(v.Const(name), " ")
						}
						if packed[key] == nil {
							e, err := lanestream.Format.Encode(a(), v)
							if err != nil {
								b.Fatal(err)
							}
							packed[key] = e
						}
						shadertest.BenchPacked(b, dev, lanestream.Format, v, packed[key], n)
					})
				}
			}
		}
	})
}
