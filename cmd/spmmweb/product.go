//go:build js

// The product of a matrix that the user has dropped, with B made up: where A has its entries, how long it takes,
// whether it is right.

package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/load"
	"github.com/spmmrun/spmm/formats/spy"
)

const (
	// mostBytes bounds what A, and what B and C, take in the page's memory.
	mostBytes = 1 << 30
	// picture is the most cells along a side of the spy plot.
	picture = 256
	// repeats is how often a product is timed.
	repeats = 20
	// checked is about how many exact products verifying takes: a second or so.
	checked = 5e6
)

// multiply multiplies. The request has the file's name and its bytes or, for name "gen:…", nothing; and columns and
// precision.
func multiply(ctx context.Context, r request) error {
	cols := r.number("cols")
	prec, err := dtype.Parse(r.text("precision"))
	if err != nil {
		return err
	}
	var p progress
	p.at(0, 1, "reading the matrix")
	o := load.Options{Limits: formats.Limits{Bytes: mostBytes}}
	var m formats.Encoded
	if name := r.text("name"); r.value.Get("bytes").Truthy() {
		m, err = load.Bytes(ctx, name, r.bytes("bytes"), o)
	} else {
		m, err = load.Open(ctx, name, o)
	}
	if err != nil {
		return err
	}
	a := formats.Convert[float32](m.Sparse())
	if cols < 1 || int64(cols) > mostBytes/4/int64(max(1, a.Rows, a.Cols)) {
		return fmt.Errorf("N = %d: B and C of a %d×%d matrix would not fit into %d MiB; want N between 1 and %d", cols, a.Rows, a.Cols, mostBytes>>20, mostBytes/4/max(1, a.Rows, a.Cols))
	}
	postSpy(r.text("name"), a)
	switch prec.Storage() {
	case dtype.F16:
		err = product[half.F16](ctx, &p, prec, a, cols)
	case dtype.BF16:
		err = product[half.BF16](ctx, &p, prec, a, cols)
	default:
		err = product[float32](ctx, &p, prec, a, cols)
	}
	if err != nil {
		reopen()
	}
	return err
}

// postSpy sends what the spy plot shows: the shade of each cell, row after row, 0 for none.
func postSpy(name string, a *formats.CSR[float32]) {
	h, w := min(picture, a.Rows), min(picture, a.Cols)
	shades := make([]byte, 0, h*w)
	if h > 0 && w > 0 {
		g := spy.New(a, h, w)
		for i := range h {
			for j := range w {
				shades = append(shades, byte(255*g.Shade(i, j)))
			}
		}
	}
	post("spy", answer{"name": name, "rows": a.Rows, "cols": a.Cols, "nnz": a.NNZ(), "h": h, "w": w, "shades": shades})
}

// opened is the device that products run on, nil if there is none. It stays open, since its rates are measured once.
var opened *spmm.Device

// device opens it.
func device(ctx context.Context) (*spmm.Device, error) {
	if opened != nil {
		return opened, nil
	}
	var err error
	opened, err = spmm.Open(ctx, "webgpu")
	return opened, err
}

// reopen has the next product open the device anew: this one may be lost.
func reopen() {
	if opened != nil {
		opened.Close()
		opened = nil
	}
}

// product multiplies with data of type T.
func product[T formats.Value](ctx context.Context, p *progress, prec dtype.Type, a32 *formats.CSR[float32],
	cols int) error {
	dev, err := device(ctx)
	if err != nil {
		return err
	}
	p.at(0, 1, "encoding the matrix")
	a := formats.Convert[T](a32)
	plan, err := spmm.Prepare(ctx, dev, a, spmm.Options{Precision: prec, Cols: cols})
	if err != nil {
		return err
	}
	defer plan.Close()
	b, c, err := spmm.TensorsFor[T, float32](plan, cols)
	if err != nil {
		return err
	}
	defer b.Close()
	defer c.Close()
	right := formats.ConvertDense[T](gen.Dense(a.Cols, cols, 1, gen.Values{}))
	if err := b.Upload(ctx, right); err != nil {
		return err
	}
	times, err := measure(ctx, p, plan, b, c)
	if err != nil {
		return err
	}
	out := formats.NewDense[float32](a.Rows, cols)
	if err := c.Download(ctx, out); err != nil {
		return err
	}
	p.at(0, 1, "measuring the device")
	median := times[len(times)/2]
	bound, err := plan.Observe(ctx, cols, dtype.F32, median)
	if err != nil {
		return err
	}
	p.at(0, 1, "verifying")
	sample := 1 + int64(checked/(1+float64(a.NNZ())/float64(max(1, a.Rows))))
	found, err := oracle.Check(ctx, oracle.Problem{
		A: formats.Convert[float32](a), B: formats.ConvertDense[float32](right), Alpha: 1, Compute: plan.Info().Precision,
		Out: dtype.F32,
	}, out, sample)
	if err != nil {
		return err
	}
	wrong := ""
	if found.First != nil {
		wrong = found.First.Error()
	}
	info := plan.Info()
	us := func(d time.Duration) float64 { return float64(d) / 1e3 }
	post("product", answer{
		"device": dev.Info().Name, "format": info.Format, "variant": info.Variant, "why": info.Why,
		"precision": info.Precision.String(), "n": cols,
		"median": us(median), "least": us(times[0]), "attainable": us(bound.Time()),
		"gflops":  2 * float64(a.NNZ()) * float64(cols) / max(1, float64(median)),
		"checked": found.Checked, "ratio": min(found.MaxRatio, math.MaxFloat64), "ok": found.OK(), "wrong": wrong,
	})
	return nil
}

// measure returns the times of one product each, the least first. Short ones are timed many at once.
func measure(ctx context.Context, p *progress, plan *spmm.Plan, b, c spmm.Operand) ([]time.Duration, error) {
	const least, most = 10 * time.Millisecond, 100 // a browser tells time in steps of 0.1 ms
	times, batch := []time.Duration(nil), 1
	for i := range repeats + 2 { // the first compiles the kernel, the second says how long one takes
		p.at(i, repeats+2, "multiplying")
		t, err := plan.Repeat(ctx, batch, 1, b, 0, c)
		if err != nil {
			return nil, err
		}
		if i >= 2 {
			times = append(times, t.Best()/time.Duration(batch))
		} else {
			batch = int(min(most, 1+least/max(t.Best(), 1)))
		}
	}
	slices.Sort(times)
	return times, nil
}
