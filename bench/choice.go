// The suite "choice": is the format that auto takes the fastest one? Every format multiplies matrices of
// different kinds, in every packing that the device has a kernel for.

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/load"
	chooser "github.com/spmmrun/spmm/internal/choose"
	"github.com/spmmrun/spmm/internal/model"
)

// kinds are the matrices: pruned weights of several shapes, meshes, graphs, and what is awkward.
var kinds = []string{
	"gen:uniform,rows=2048,density=1",
	"gen:uniform,rows=2048,density=0.5",
	"gen:uniform,rows=2048,cols=4096,density=0.25",
	"gen:uniform,rows=4096,density=0.005",
	"gen:uniform,rows=2048,density=0.1",
	"gen:uniform,rows=2048,density=0.1,jitter=0.8",
	"gen:uniform,rows=1024,cols=4096,density=0.4",
	"gen:vector,rows=4096,v=8,density=0.1",
	"gen:vector,rows=4096,v=8,density=0.02",
	"gen:vector,rows=2048,v=16,density=0.1",
	"gen:vector,rows=4096,v=32,density=0.05",
	"gen:nm,rows=2048,cols=2048,n=2,m=4",
	"gen:nm,rows=2048,cols=2048,n=2,m=16,v=32",
	"gen:nm,rows=4096,cols=1024,n=1,m=8",
	"gen:block,rows=4096,block=16,density=0.05",
	"gen:banded,rows=8192,band=20,density=0.5",
	"gen:banded,rows=60000,band=2",
	"gen:powerlaw,rows=40000,nnz-per-row=8",
	"gen:powerlaw,rows=20000,nnz-per-row=24,alpha=3",
	"gen:onedense,rows=20000,nnz-per-row=4",
	"testdata/matrices/ca-CondMat.mtx.gz",
	"testdata/matrices/dwt_992.mtx.gz",
	"testdata/matrices/jagmesh7.mtx.gz",
}

// choice measures on each backend and in each precision, and prints a table for each.
func choice(r *runner) error {
	matrices := kinds
	if r.files != "" {
		more, err := filepath.Glob(r.files)
		if err != nil || len(more) == 0 {
			return fmt.Errorf("-files %s: no such files (%v)", r.files, err)
		}
		matrices = slices.Concat(kinds, more)
	}
	if r.only != "" {
		only, err := regexp.Compile(r.only)
		if err != nil {
			return fmt.Errorf("-only: %w", err)
		}
		matrices = slices.DeleteFunc(slices.Clone(matrices), func(m string) bool { return !only.MatchString(m) })
		if len(matrices) == 0 {
			return fmt.Errorf("-only %s: no matrix has such a name", r.only)
		}
	}
	if os.Getenv("SPMM_CACHE") == "" {
		cache, err := os.MkdirTemp("", "spmm-bench")
		if err != nil {
			return err
		}
		defer os.RemoveAll(cache)
		os.Setenv("SPMM_CACHE", cache) // auto is to predict, not to remember
	}
	for _, backend := range strings.Split(r.backends, ",") {
		for _, precision := range strings.Split(r.precisions, ",") {
			for _, n := range strings.Split(r.n, ",") {
				n, err := strconv.Atoi(n)
				if err != nil || n < 1 {
					return fmt.Errorf("-n %s: want numbers of columns", r.n)
				}
				if err := choose(context.Background(), r, matrices, backend, precision, n); err != nil {
					return fmt.Errorf("%s, %s: %w", backend, precision, err)
				}
			}
		}
	}
	return nil
}

// choose prints the table of one device and precision.
func choose(ctx context.Context, r *runner, matrices []string, backend, precision string, n int) error {
	prec, err := dtype.Parse(precision)
	if err != nil {
		return err
	}
	dev, err := spmm.Open(ctx, backend)
	if err != nil {
		return err
	}
	defer dev.Close()
	fmt.Printf("%v, %v, N=%d, µs; the fastest packing of each format\n\n", dev.Info(), prec, n)
	if err := r.recordDevice(ctx, dev); err != nil {
		return err
	}
	names := spmm.Formats()
	fmt.Printf("| matrix | %s | best | auto | auto / best |\n|%s\n", strings.Join(names, " | "), strings.Repeat(" --- |", len(names)+4))
	sum, count := 0.0, 0
	for _, m := range matrices {
		a, err := load.File(ctx, m, load.Options{})
		if err != nil {
			return err
		}
		var es []*entrant
		switch prec.Storage() {
		case dtype.F16:
			es, err = race(ctx, dev, formats.Convert[half.F16](a), prec, n, r.predict)
		case dtype.BF16:
			es, err = race(ctx, dev, formats.Convert[half.BF16](a), prec, n, r.predict)
		default:
			es, err = race(ctx, dev, a, prec, n, r.predict)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m, err)
		}
		ratio, err := line(filepath.Base(m), names, es)
		if err != nil {
			return fmt.Errorf("%s: %w", m, err)
		}
		sum, count = sum+math.Log(ratio), count+1
		if err := r.record(m, backend, precision, n, chooser.NewProduct(a, n), es); err != nil {
			return err
		}
	}
	fmt.Printf("\ngeometric mean of auto / best over %d matrices: %.3f\n\n", count, math.Exp(sum/float64(count)))
	return nil
}

// record appends what was measured to the file of -data, a line of JSON for each packing.
func (r *runner) record(matrix, backend, precision string, n int, product model.Product, es []*entrant) error {
	var lines []any
	for _, e := range es {
		m := Measurement{
			Matrix: matrix, Backend: backend, Precision: precision, N: n,
			Format: e.Format, Variant: e.Variant, US: e.us, PredictedUS: micros(e.Predicted), Auto: e.auto,
			MemoryUS: micros(e.Bound.Memory), GatherUS: micros(e.Bound.Gather), ComputeUS: micros(e.Bound.Compute),
		}
		if r.predict {
			m.Product, m.Stats, m.Items = &product, &e.Stats, e.Items
		}
		lines = append(lines, dataLine{Measurement: &m})
	}
	return r.appendData(lines...)
}

// recordDevice appends a line of what the measurements behind it are taken on.
func (r *runner) recordDevice(ctx context.Context, dev *spmm.Device) error {
	if r.data == "" {
		return nil
	}
	rates, err := dev.Rates(ctx)
	if err != nil {
		return err
	}
	return r.appendData(dataLine{Device: newMeasuredDevice(dev, rates)})
}

// appendData writes lines of JSON to the file of -data, if there is to be one.
func (r *runner) appendData(lines ...any) error {
	if r.data == "" {
		return nil
	}
	f, err := os.OpenFile(r.data, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	w := json.NewEncoder(f)
	for _, l := range lines {
		err = errors.Join(err, w.Encode(l))
	}
	return errors.Join(err, f.Close())
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// entrant is a packing, and how long a multiplication took.
type entrant struct {
	spmm.Packing
	us   float64
	auto bool // it is what auto takes

	again func(batch int) (time.Duration, error) // times a batch of multiplications
	close func()
	times []float64

	plan *spmm.Plan // and operands, where they are kept
	b, c spmm.Operand
}

// race measures every packing in turn, again and again, so that what else the machine does falls on all alike.
// predict also packs the matrix for the figures that predictions are made from.
func race[T formats.Value](ctx context.Context, dev *spmm.Device, a *formats.CSR[T], prec dtype.Type, n int, predict bool) ([]*entrant, error) {
	o := spmm.Options{Precision: prec, Cols: n}
	of := a
	if !predict { // what packings there are shows on any matrix
		of = &formats.CSR[T]{Rows: 1, Cols: 1, RowPtr: []int64{0, 0}}
	}
	ps, err := spmm.Compare(ctx, dev, of, o)
	if err != nil {
		return nil, err
	}
	var es []*entrant
	defer func() {
		for _, e := range es {
			e.close()
		}
	}()
	for _, p := range ps {
		if p.Err != nil && (predict || p.Variant == "") {
			continue
		}
		o.Format, o.Variant = p.Format, p.Variant
		e, err := enter(ctx, dev, a, o, n)
		if errors.Is(err, spmm.ErrUnsupported) {
			continue // the format refuses this matrix
		}
		if err != nil {
			return nil, fmt.Errorf("%s/%s: %w", p.Format, p.Variant, err)
		}
		e.Packing = p
		es = append(es, e)
	}
	if err := measure(es); err != nil {
		return nil, err
	}
	plan, err := spmm.Prepare(ctx, dev, a, spmm.Options{Precision: prec, Cols: n})
	if err != nil {
		return nil, err
	}
	i := plan.Info()
	for _, e := range es {
		e.auto = e.Format == i.Format && e.Variant == i.Variant
	}
	return es, plan.Close()
}

// enter prepares the matrix in a packing, with a B and a C.
func enter[T formats.Value](ctx context.Context, dev *spmm.Device, a *formats.CSR[T], o spmm.Options, n int) (*entrant, error) {
	plan, err := spmm.Prepare(ctx, dev, a, o)
	if err != nil {
		return nil, err
	}
	b, c, err := spmm.TensorsFor[T, float32](plan, n)
	if err != nil {
		plan.Close()
		return nil, err
	}
	e := &entrant{close: func() { b.Close(); c.Close(); plan.Close() }}
	e.again = func(batch int) (time.Duration, error) {
		t, err := plan.Repeat(ctx, batch, 1, b, 0, c)
		return t.Best(), err
	}
	if err := b.Upload(ctx, formats.ConvertDense[T](gen.Dense(a.Cols, n, 1, gen.Values{}))); err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

// measure takes the medians of rounds of batches that each last a while.
func measure(es []*entrant) error {
	const warmup, rounds, least, most = 2, 9, time.Millisecond, 50
	for _, e := range es {
		batch := 1
		for range warmup {
			t, err := e.again(batch)
			if err != nil {
				return err
			}
			batch = int(min(most, 1+least/max(1, t/time.Duration(batch))))
		}
		e.times = make([]float64, 0, rounds)
		one := e.again
		e.again = func(int) (time.Duration, error) {
			t, err := one(batch)
			return t / time.Duration(batch), err
		}
	}
	for range rounds {
		for _, e := range es {
			t, err := e.again(0)
			if err != nil {
				return err
			}
			e.times = append(e.times, micros(t))
		}
	}
	for _, e := range es {
		slices.Sort(e.times)
		e.us = e.times[rounds/2]
	}
	return nil
}

// line prints a matrix's line and returns how much longer auto's choice takes than the best.
func line(matrix string, names []string, es []*entrant) (float64, error) {
	at := slices.IndexFunc(es, func(e *entrant) bool { return e.auto })
	if at < 0 {
		return 0, errors.New("what auto takes was not measured")
	}
	best, auto := slices.MinFunc(es, byTime), es[at]
	fmt.Printf("| %s |", matrix)
	for _, f := range names {
		of := slices.DeleteFunc(slices.Clone(es), func(e *entrant) bool { return e.Format != f })
		if len(of) == 0 {
			fmt.Print(" - |")
			continue
		}
		fmt.Printf(" %.3g |", slices.MinFunc(of, byTime).us)
	}
	fmt.Printf(" %s | %s | %.2f |\n", best.name(), auto.name(), auto.us/best.us)
	return auto.us / best.us, nil
}

func (e *entrant) name() string { return e.Format + "/" + e.Variant }

func byTime(x, y *entrant) int { return cmp.Compare(x.us, y.us) }
