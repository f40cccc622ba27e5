// A matrix that a device is told not to hold: how fast it streams, and that its bits are those of one piece.

package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/formats"
)

const outOfCoreRow = 4096 // entries of each row

// outOfCore multiplies a square matrix of -gigabytes of 10^9 bytes on each of -backends in one piece, and by -memory gigabytes.
func outOfCore(r *runner) error {
	ctx := context.Background()
	began := time.Now()
	a := manyEntries(int(r.gigabytes * 1e9 / 8 / outOfCoreRow))
	fmt.Printf("\n%d×%d, %d entries, %.1f GB as csr, made in %.1f s\n", a.Rows, a.Cols, a.NNZ(), float64(a.NNZ())*8e-9, time.Since(began).Seconds())
	for _, name := range strings.Split(r.backends, "+") {
		g, err := spmm.Open(ctx, name)
		if err != nil {
			return err
		}
		err = outOfCoreOn(ctx, r, g, a)
		if err = errors.Join(err, g.Close()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func outOfCoreOn(ctx context.Context, r *runner, g *spmm.Device, a *formats.CSR[float32]) error {
	fmt.Printf("\n%s\n\n| N | memory GB | panels | multiplied in ms | copied GB | copying ms | GB/s | computing ms | bound by | bits |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n", g.Devices()[0].Info())
	for _, text := range strings.Split(r.n, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		var want *formats.Dense[float32]
		b := formats.NewDense[float32](a.Cols, n)
		inParallel(len(b.Data), func(lo, hi int) {
			for i := lo; i < hi; i++ {
				b.Data[i] = float32(int32(uint32(i)*2654435761))/(1<<31) + 0.1
			}
		})
		for _, memory := range []float64{0, r.memory} {
			c, row, err := outOfCoreOnce(ctx, g, a, b, int64(memory*1e9))
			if err != nil {
				return err
			}
			same := "-"
			if want != nil {
				same = "other"
				if c.Equal(want) {
					same = "the same"
				}
			}
			want = c
			fmt.Printf("| %d | %g | %s | %s |\n", n, memory, row, same)
		}
	}
	return nil
}

// outOfCoreOnce returns the product, and what there is to say of it.
func outOfCoreOnce(ctx context.Context, g *spmm.Device, a *formats.CSR[float32], b *formats.Dense[float32], memory int64) (*formats.Dense[float32], string, error) {
	began := time.Now()
	p, err := spmm.Prepare(ctx, g, a, spmm.Options{Format: "csr", Cols: b.Cols, Split: spmm.ByRows, Memory: memory})
	if err != nil {
		return nil, "", err
	}
	defer p.Close()
	fmt.Printf("prepared in %.1f s: %s\n", time.Since(began).Seconds(), p.Info().Why)
	x, y, err := spmm.TensorsFor[float32, float32](p, b.Cols)
	if err != nil {
		return nil, "", err
	}
	defer x.Close()
	defer y.Close()
	if err := x.Upload(ctx, b); err != nil {
		return nil, "", err
	}
	var best spmm.Timing
	for range 3 {
		t, err := p.Run(ctx, 1, x, 0, y)
		if err != nil {
			return nil, "", err
		}
		if best.Host == 0 || t.Host < best.Host {
			best = t
		}
	}
	s, rate, binds := best.Streamed, 0.0, "-"
	if s.Panels > 0 {
		rate, binds = float64(s.Bytes)/s.Copy.Seconds()/1e9, best.Binds()
	}
	c := formats.NewDense[float32](a.Rows, b.Cols)
	return c, fmt.Sprintf("%d | %.1f | %.2f | %.1f | %.1f | %.1f | %s", s.Panels, ms(best.Host), float64(s.Bytes)/1e9, ms(s.Copy), rate, ms(s.Compute), binds), y.Download(ctx, c)
}

// manyEntries makes a square matrix with outOfCoreRow entries in each row, spread over all columns.
func manyEntries(rows int) *formats.CSR[float32] {
	rows = max(rows, outOfCoreRow)
	stride, nnz := uint32(rows/outOfCoreRow), rows*outOfCoreRow
	a := &formats.CSR[float32]{Rows: rows, Cols: rows, RowPtr: make([]int64, rows+1), ColIdx: make([]int32, nnz), Val: make([]float32, nnz)}
	inParallel(rows, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			a.RowPtr[i+1] = int64(i+1) * outOfCoreRow
			at := i * outOfCoreRow
			for e := range uint32(outOfCoreRow) {
				h := (uint32(i)*outOfCoreRow + e) * 2654435761
				h ^= h >> 15
				a.ColIdx[at+int(e)] = int32(e*stride + h%stride)
				a.Val[at+int(e)] = float32(int32(h*2246822519)) / (1 << 31)
			}
		}
	})
	return a
}

// inParallel calls f for ranges of 0 to n-1 on all cores.
func inParallel(n int, f func(lo, hi int)) {
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		wg.Go(func() { f(n*w/workers, n*(w+1)/workers) })
	}
	wg.Wait()
}
