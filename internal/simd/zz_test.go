package simd

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

func TestZZ(t *testing.T) {
	const height = 1024
	r := rand.New(rand.NewPCG(1, 2))
	for _, d := range []float64{.1, .5} {
		for _, ld := range []int{128, 144} {
			for _, n := range []int{32, 64, 128} {
				var cols []uint32
				starts := []uint32{0}
				const rows = 64
				for range rows {
					for k := range height {
						if r.Float64() < d {
							cols = append(cols, uint32(k))
						}
					}
					starts = append(starts, uint32(len(cols)))
				}
				vals := make([]float64, len(cols))
				v32 := make([]float32, len(cols))
				c := make([]float64, 2*rows*n)
				c32 := make([]float32, rows*n)
				best := func(f func()) time.Duration {
					m := time.Hour
					end := time.Now().Add(time.Second / 2)
					for time.Now().Before(end) {
						t := time.Now()
						f()
						m = min(m, time.Since(t))
					}
					return m
				}
				per := func(d time.Duration) string {
					return fmt.Sprintf("%.3f", float64(d.Nanoseconds())/float64(len(cols)*n/16))
				}
				b := make([]int32, height*ld)
				f := make([]float32, height*ld)
				q := &IntRows[int32]{C: c, LDC: n, N: n, B: b, LDB: ld, Vals: vals, Cols: cols, Starts: starts}
				x := &Rows[float32, float32]{C: c32, LDC: n, N: n, B: f, LDB: ld, Vals: v32, Cols: cols, Starts: starts, Alpha: 1}
				p := *q
				p.Upper = vals
				fmt.Printf("d=%g ld=%d n=%d: ns per 16 columns: f32 %s", d, ld, n, per(best(func() { RowsF32(x) })))
				x.Ahead = 16
				fmt.Printf(" ahead %s", per(best(func() { RowsF32(x) })))
				fmt.Printf(" int32 %s pairs %s", per(best(func() { RowsInt32(q) })), per(best(func() { RowsInt32(&p) })))
				q.Ahead, p.Ahead = 16, 16
				fmt.Printf(" ahead int32 %s pairs %s\n", per(best(func() { RowsInt32(q) })), per(best(func() { RowsInt32(&p) })))
			}
		}
	}
}
