// Copies between the host and a device: Upload and Download of page-locked and of ordinary memory, beside plain
// cuMemcpyHtoD and cuMemcpyDtoH of page-locked memory in the same run.

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/formats"
)

// copyCols is the width of the matrices that are copied, in elements of 4 bytes. Rows of one less have padding.
const copyCols = 1024

// copies prints a table of rates for each backend.
func copies(r *runner) error {
	for _, name := range strings.Split(r.backends, ",") {
		if err := copiesOn(name); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func copiesOn(name string) error {
	ctx := context.Background()
	dev, err := spmm.Open(ctx, name)
	if err != nil {
		return err
	}
	defer dev.Close()
	fmt.Printf("\n%v, GB/s (of plain, in %%)\n\n", dev.Info())
	fmt.Println("| bytes | plain in | plain out | pinned in | pinned out | pinned, padded in | out | ordinary in | ordinary out |")
	fmt.Println("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
	for shift := 16; shift <= 30; shift += 2 {
		if err := copyRow(ctx, dev, name, 1<<shift); err != nil {
			return err
		}
	}
	return nil
}

// copyRow measures copies of one size, by turns.
func copyRow(ctx context.Context, dev *spmm.Device, name string, bytes int) error {
	var timed []func() error
	plainIn, plainOut, free, err := plainCopies(name, bytes)
	if err != nil {
		return err
	}
	defer free()
	timed = append(timed, plainIn, plainOut)
	for _, cols := range []int{copyCols, copyCols - 1} {
		p, err := spmm.NewPinned[float32](dev, bytes/4/copyCols, cols, false)
		if err != nil {
			return err
		}
		defer p.Close()
		if timed, err = addCopies(ctx, dev, timed, &p.Dense); err != nil {
			return err
		}
	}
	if timed, err = addCopies(ctx, dev, timed, formats.NewDense[float32](bytes/4/copyCols, copyCols)); err != nil {
		return err
	}
	times := make([][]time.Duration, len(timed))
	for range max(5, min(200, 1<<30/bytes)) {
		for i, f := range timed {
			if f == nil {
				continue
			}
			start := time.Now()
			if err := f(); err != nil {
				return err
			}
			times[i] = append(times[i], time.Since(start))
		}
	}
	fmt.Printf("| %d ", bytes)
	var plain [2]time.Duration
	for i, ts := range times {
		if ts == nil {
			fmt.Print("| – ")
			continue
		}
		slices.Sort(ts)
		t := ts[len(ts)/2]
		fmt.Printf("| %.1f ", float64(bytes)/float64(t.Nanoseconds()))
		if i < 2 {
			plain[i] = t
		} else if plain[i&1] > 0 {
			fmt.Printf("(%.0f) ", 100*float64(plain[i&1])/float64(t))
		}
	}
	fmt.Println("|")
	return nil
}

// addCopies adds the copies of a matrix to a tensor and back.
func addCopies(ctx context.Context, dev *spmm.Device, timed []func() error, d *formats.Dense[float32]) ([]func() error, error) {
	x, err := spmm.NewTensor[float32](dev, d.Rows, d.Cols, false)
	if err != nil {
		return nil, err
	}
	for i := range d.Data {
		d.Data[i] = float32(i % 1000)
	}
	return append(timed, func() error { return x.Upload(ctx, d) }, func() error { return x.Download(ctx, d) }), nil
}
