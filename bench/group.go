// Several devices beside one of them: by columns of B, by rows of A, and with B on one device first.

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
)

// groupMatrices are a 27-point stencil and a random matrix, of a million rows.
var groupMatrices = []string{"gen:stencil,side=100", "gen:uniform,rows=1000000,cols=1000000,nnz-per-row=16"}

const (
	groupRounds = 7 // of each way, by turns; the median counts
	groupBatch  = 5 // multiplications back to back
)

// groups prints a table for each list of devices in -backends, which + separates, matrix and number of columns.
func groups(r *runner) error {
	for _, list := range strings.Split(r.backends, "+") {
		g, err := spmm.Open(context.Background(), list)
		if err != nil {
			return err
		}
		defer g.Close()
		for _, spec := range groupMatrices {
			if r.files != "" {
				spec = r.files
			}
			s, err := gen.Parse(spec, 1)
			if err != nil {
				return err
			}
			a, err := s.Generate(context.Background(), formats.Limits{})
			if err != nil {
				return err
			}
			for _, text := range strings.Split(r.n, ",") {
				n, err := strconv.Atoi(text)
				if err == nil {
					err = groupOn(g, list, spec, a, n)
				}
				if err != nil {
					return fmt.Errorf("%s, %s: %w", list, spec, err)
				}
			}
			if r.files != "" {
				break
			}
		}
	}
	return nil
}

// groupWay is a way to multiply that is measured.
type groupWay struct {
	name         string
	run          func() (spmm.Timing, error)
	device, host []time.Duration
	last         spmm.Timing
	c            func(*formats.Dense[float32]) error // fetches C
	why          string
}

func groupOn(g *spmm.Device, list, spec string, a *formats.CSR[float32], n int) error {
	ctx := context.Background()
	b, c := formats.NewDense[float32](a.Cols, n), formats.NewDense[float32](a.Rows, n)
	x := uint32(1)
	for i := range b.Data {
		x = x*1664525 + 1013904223
		b.Data[i] = float32(int32(x)) / (1 << 31)
	}
	ways, closing, err := groupWays(ctx, g, a, b, c)
	defer func() {
		for _, f := range slices.Backward(closing) {
			f()
		}
	}()
	if err != nil {
		return err
	}
	for round := range groupRounds + 1 {
		for _, w := range ways {
			t, err := w.run()
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			if w.last = t; round > 0 {
				w.device, w.host = append(w.device, t.Device), append(w.host, t.Host)
			}
		}
	}
	fmt.Printf("\n%s, %d devices (%s), %s, N=%d, ms a multiplication; efficiency is one device's time over the others' and their number\n\n",
		list, len(g.Devices()), g.Devices()[0].Info(), spec, n)
	return printWays(ways, len(g.Devices()), c)
}

// printWays prints what ways took on p devices, of which the first way uses one. It fetches what they computed into c.
func printWays(ways []*groupWay, p int, c *formats.Dense[float32]) error {
	fmt.Println("| way | devices' clock, the slowest | efficiency | host's clock | moved MB | moving ms | GB/s | same bits |\n| --- | --- | --- | --- | --- | --- | --- | --- |")
	want := formats.NewDense[float32](c.Rows, c.Cols)
	if err := ways[0].c(want); err != nil {
		return err
	}
	one := median(ways[0].device)
	for i, w := range ways {
		same := "-"
		if w.c != nil && i > 0 {
			if err := w.c(c); err != nil {
				return err
			}
			same = fmt.Sprint(c.Equal(want))
		}
		rate := 0.0
		if w.last.Move > 0 {
			rate = float64(w.last.Moved) / w.last.Move.Seconds() / 1e9
		}
		d := median(w.device)
		eff := 0.0
		if d > 0 {
			eff = float64(one) / float64(d) / float64(p)
		}
		fmt.Printf("| %s | %.3f | %.3f | %.3f | %.0f | %.3f | %.0f | %s |\n", w.name, ms(d), eff, ms(median(w.host)),
			float64(w.last.Moved)/1e6, ms(w.last.Move), rate, same)
	}
	for _, w := range ways {
		if w.why != "" {
			fmt.Printf("\n%s: %s", w.name, w.why)
		}
	}
	fmt.Println()
	return nil
}

func ms(d time.Duration) float64 { return d.Seconds() * 1e3 }

// groupWays prepares all ways; what closing has must be called, the last first.
func groupWays(ctx context.Context, g *spmm.Device, a *formats.CSR[float32], b, c *formats.Dense[float32]) (ways []*groupWay, closing []func(), err error) {
	keep := func(f func() error) { closing = append(closing, func() { f() }) }
	o := spmm.Options{Cols: b.Cols}
	one, err := spmm.Prepare(ctx, g.Devices()[0], a, o)
	if err != nil {
		return nil, closing, err
	}
	keep(one.Close)
	x, y, err := spmm.TensorsFor[float32, float32](one, b.Cols)
	if err != nil {
		return nil, closing, err
	}
	keep(x.Close)
	keep(y.Close)
	if err := x.Upload(ctx, b); err != nil {
		return nil, closing, err
	}
	ways = append(ways, &groupWay{name: "one device", why: one.Info().Format + "/" + one.Info().Variant, c: func(d *formats.Dense[float32]) error { return y.Download(ctx, d) }, run: func() (spmm.Timing, error) {
		t, err := one.Repeat(ctx, groupBatch, 1, x, 0, y)
		return spmm.Timing{Device: t.Device / groupBatch, Host: t.Host / groupBatch}, err
	}})
	for _, split := range []spmm.Split{spmm.ByColumns, spmm.ByRows, spmm.AutoSplit} {
		o.Split = split
		p, err := spmm.Prepare(ctx, g, a, o)
		if err != nil {
			return ways, closing, err
		}
		keep(p.Close)
		i := p.Info()
		if split == spmm.AutoSplit {
			ways[0].why += fmt.Sprintf("; auto splits by %v because %s", i.Split, i.WhySplit)
			continue
		}
		x, y, err := spmm.TensorsFor[float32, float32](p, b.Cols)
		if err != nil {
			return ways, closing, err
		}
		keep(x.Close)
		keep(y.Close)
		from, err := spmm.NewTensorAt[float32](p, b.Rows, b.Cols, spmm.On(0))
		if err != nil {
			return ways, closing, err
		}
		keep(from.Close)
		if err := errors.Join(x.Upload(ctx, b), from.Upload(ctx, b)); err != nil {
			return ways, closing, err
		}
		fetch := func(d *formats.Dense[float32]) error { return y.Download(ctx, d) }
		ways = append(ways, &groupWay{name: "by " + split.String(), why: i.Format + "/" + i.Variant, c: fetch, run: func() (spmm.Timing, error) {
			t, err := p.Repeat(ctx, groupBatch, 1, x, 0, y)
			t.Device, t.Host = t.Device/groupBatch, t.Host/groupBatch
			return t, err
		}}, &groupWay{name: "by " + split.String() + ", B on the first", run: func() (spmm.Timing, error) { return p.Run(ctx, 1, from, 0, y) }, c: fetch})
		if split == spmm.ByColumns {
			far, err := spmm.NewTensorAt[float32](p, b.Rows, b.Cols, spmm.On(len(g.Devices())-1))
			if err != nil {
				return ways, closing, err
			}
			keep(far.Close)
			ways = append(ways, &groupWay{name: "the link: all of B from the first to the last", run: func() (spmm.Timing, error) {
				begun := time.Now()
				n, err := far.Copy(ctx, from)
				return spmm.Timing{Moved: n, Move: time.Since(begun), Host: time.Since(begun)}, err
			}})
		}
	}
	return ways, closing, nil
}
