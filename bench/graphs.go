// The suite "graphs": graph and mesh matrices on one backend beside cuSPARSE, measured in the same run, and cuTeSpMM's published code.

package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/formats/load"
	chooser "github.com/spmmrun/spmm/internal/choose"
	"github.com/spmmrun/spmm/internal/model"
)

// graphs prints a table for each precision and number of columns: csr, hrpb, the best format and what auto takes, on the files of -files.
func graphs(r *runner) error {
	ctx := context.Background()
	r.predict = true
	files, err := []string{r.files}, error(nil)
	if !strings.HasPrefix(r.files, "gen:") {
		files, err = filepath.Glob(r.files)
	}
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("-files %q: no such files; want a pattern of matrix files, or one gen:…", r.files)
	}
	if err != nil {
		return err
	}
	backend, _, _ := strings.Cut(r.backends, ",")
	dev, err := spmm.Open(ctx, backend)
	if err != nil {
		return err
	}
	defer dev.Close()
	if err := r.recordDevice(ctx, dev); err != nil {
		return err
	}
	for _, n := range strings.Split(r.n, ",") {
		n, err := strconv.Atoi(n)
		if err != nil {
			return fmt.Errorf("-n %s: want numbers of columns", r.n)
		}
		for _, precision := range strings.Split(r.precisions, ",") {
			prec, err := dtype.Parse(precision)
			if err != nil {
				return err
			}
			theirs := dtype.F32
			if prec == dtype.F64 {
				theirs = prec
			}
			cusparse, err := r.cusparse(files, n, theirs.String())
			if err != nil {
				return err
			}
			if err := r.graphTable(ctx, dev, files, cusparse, prec, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// together is how many matrices are prepared side by side before these are measured, one after the other.
const together = 8

// graphTable prints the table of one precision and number of columns. Peers compute in f32 or f64 (cuSPARSE), and in tf32 (cuTeSpMM).
func (r *runner) graphTable(ctx context.Context, dev *spmm.Device, files []string, cusparse []float64, prec dtype.Type, n int) error {
	table(fmt.Sprintf("%v, %v, N=%d, µs; beside the better of the peers", dev.Info(), prec, n),
		"matrix", "cuTeSpMM", "cuSPARSE", "csr", "hrpb", "best", "", "auto", "taken", "")
	var peers, best geomean
	for first := 0; first < len(files); first += together {
		some := files[first:min(first+together, len(files))]
		ms := make([]*graphMatrix, len(some))
		var g errgroup.Group
		for i, file := range some {
			g.Go(func() (err error) {
				if ms[i], err = r.openGraphMatrix(ctx, dev, file, prec, n); err != nil {
					err = fmt.Errorf("%s: %w", file, err)
				}
				return err
			})
		}
		err := g.Wait()
		for i, m := range ms {
			if err == nil {
				if err = measure(m.es); err == nil {
					err = r.record(some[i], dev.Info().Backend, prec.String(), n, m.product, m.es)
				}
			}
			if m != nil {
				m.close()
			}
		}
		if err != nil {
			return err
		}
		for i, m := range ms {
			name, theirs, cusparse := graphName(some[i]), 0.0, cusparse[first+i]
			if prec != dtype.F64 {
				theirs = cutespmmTime(name, n)
			}
			limit := theirs
			if cusparse > 0 && (limit == 0 || cusparse < limit) {
				limit = cusparse
			}
			fastest, auto := slices.MinFunc(m.es, byTime), m.auto()
			peers.add(limit, auto.us)
			best.add(fastest.us, auto.us)
			row(name, theirs, cusparse, m.time("csr"), m.time("hrpb"), fastest.us, fastest.name(), auto.us, auto.name(), met(auto.us, limit))
		}
	}
	fmt.Printf("\nGeometric mean, theirs over auto: %v; the best format over auto: %v.\n\n", &peers, &best)
	return nil
}

// graphMatrix is a matrix in several formats, ready to be measured: csr and hrpb, those that are predicted to take at most twice as
// long as the fastest, and what auto takes; of those besides the last only what -formats names.
type graphMatrix struct {
	product model.Product
	es      []*entrant
}

func (r *runner) openGraphMatrix(ctx context.Context, dev *spmm.Device, file string, prec dtype.Type, n int) (*graphMatrix, error) {
	a, err := load.File(ctx, file, load.Options{})
	if err != nil {
		return nil, err
	}
	switch prec.Storage() {
	case dtype.F64:
		return newGraphMatrix[float64](ctx, r, dev, formats.Convert[float64](a), prec, n)
	case dtype.F16:
		return newGraphMatrix[float32](ctx, r, dev, formats.Convert[half.F16](a), prec, n)
	case dtype.BF16:
		return newGraphMatrix[float32](ctx, r, dev, formats.Convert[half.BF16](a), prec, n)
	}
	return newGraphMatrix[float32](ctx, r, dev, a, prec, n)
}

func newGraphMatrix[O oracle.Number, T formats.Value](ctx context.Context, r *runner, dev *spmm.Device, a *formats.CSR[T], prec dtype.Type, n int) (*graphMatrix, error) {
	only, err := regexp.Compile(r.formats)
	if err != nil {
		return nil, fmt.Errorf("-formats: %w", err)
	}
	o := spmm.Options{Precision: prec, Cols: n}
	auto, err := spmm.Prepare(ctx, dev, a, o)
	if err != nil {
		return nil, err
	}
	taken := auto.Info()
	if err := auto.Close(); err != nil {
		return nil, err
	}
	ps, err := spmm.Compare(ctx, dev, a, o)
	if err != nil {
		return nil, err
	}
	ps = slices.DeleteFunc(ps, func(p spmm.Packing) bool { return p.Err != nil })
	least := slices.MinFunc(ps, func(x, y spmm.Packing) int { return cmp.Compare(x.Predicted, y.Predicted) }).Predicted
	m := &graphMatrix{product: chooser.NewProduct(a, n)}
	b := formats.ConvertDense[T](gen.Dense(a.Cols, n, 1, gen.Values{}))
	for _, x := range ps {
		isAuto := x.Format == taken.Format && x.Variant == taken.Variant
		slow := x.Predicted > 2*least && x.Format != "csr" && x.Format != "hrpb"
		if !isAuto && (slow || !only.MatchString(x.Format+"/"+x.Variant)) {
			continue
		}
		o.Format, o.Variant = x.Format, x.Variant
		p, err := spmm.Prepare(ctx, dev, a, o)
		if errors.Is(err, spmm.ErrUnsupported) {
			continue // the format refuses this matrix
		}
		var e *entrant
		if err == nil {
			e, err = compete[O](ctx, p, a, b, n)
		}
		if err != nil {
			m.close()
			return nil, fmt.Errorf("%s/%s: %w", x.Format, x.Variant, err)
		}
		e.Packing, e.auto = x, isAuto
		if r.recorded {
			e.record(ctx, dev)
		}
		m.es = append(m.es, e)
	}
	if m.auto() == nil {
		m.close()
		return nil, fmt.Errorf("auto takes %s/%s, which was not compared", taken.Format, taken.Variant)
	}
	return m, nil
}

// record has batches run as sequences, which on CUDA are graphs.
func (e *entrant) record(ctx context.Context, dev *spmm.Device) {
	var s *spmm.Sequence
	of := 0 // multiplications in it
	drop := func() {
		if s != nil {
			s.Close()
		}
	}
	free := e.close
	e.close = func() { drop(); free() }
	e.again = func(batch int) (time.Duration, error) {
		if batch != of {
			drop()
			s, of = dev.NewSequence(), batch
			for range batch {
				if err := s.Add(e.plan, 1, e.b, 0, e.c); err != nil {
					return 0, err
				}
			}
			if _, err := s.Run(ctx); err != nil { // the second run is the graph's
				return 0, err
			}
		}
		t, err := s.Run(ctx)
		return t.Best(), err
	}
}

func (m *graphMatrix) close() {
	for _, e := range m.es {
		e.close()
	}
}

func (m *graphMatrix) auto() *entrant {
	for _, e := range m.es {
		if e.auto {
			return e
		}
	}
	return nil
}

// time is that of a format's fastest packing, 0 if none was measured.
func (m *graphMatrix) time(format string) float64 {
	us := 0.0
	for _, e := range m.es {
		if e.Format == format && (us == 0 || e.us < us) {
			us = e.us
		}
	}
	return us
}

// graphName is the name of a matrix by its file's.
func graphName(file string) string {
	name := strings.TrimSuffix(filepath.Base(file), ".gz")
	return strings.TrimSuffix(name, filepath.Ext(name))
}

// cuTeSpMM's own code at N=32, 128 and 512 (tf32, values 1) on an H200, driver 580, CUDA 13.0, medians of batches of 20, warm.
//
//go:embed cutespmm.csv
var cutespmm string

// cutespmmTime is a published time of cuTeSpMM's code; 0 if there is none.
func cutespmmTime(matrix string, n int) float64 {
	column := -1
	for line := range strings.Lines(cutespmm) {
		cells := strings.Split(strings.TrimSpace(line), ",")
		if column < 0 {
			for i, c := range cells {
				if c == "n"+strconv.Itoa(n) {
					column = i
				}
			}
		} else if cells[0] == matrix && column > 0 {
			us, _ := strconv.ParseFloat(cells[column], 64)
			return us
		}
	}
	return 0
}
