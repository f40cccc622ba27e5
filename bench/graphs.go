// The suite "graphs": graph and mesh matrices on CUDA beside cuSPARSE, measured in the same run, and cuTeSpMM's published code.

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/load"
	"github.com/spmmrun/spmm/internal/plan"
)

// graphs prints a table for each precision and number of columns: csr, hrpb and what auto takes, on the files of -files.
func graphs(r *runner) error {
	ctx := context.Background()
	files, err := filepath.Glob(r.files)
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("-files %q: no such files; want a pattern of matrix files", r.files)
	}
	if err != nil {
		return err
	}
	dev, err := spmm.Open(ctx, "cuda")
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

// graphTable prints the table of one precision and number of columns. Peers compute in f32 or f64 (cuSPARSE), and in tf32 (cuTeSpMM).
func (r *runner) graphTable(ctx context.Context, dev *spmm.Device, files []string, cusparse []float64, prec dtype.Type, n int) error {
	table(fmt.Sprintf("%v, %v, N=%d, µs; beside the better of the peers", dev.Info(), prec, n),
		"matrix", "cuTeSpMM", "cuSPARSE", "csr", "hrpb", "auto", "taken", "")
	var peers, best geomean
	for i, file := range files {
		a, err := load.File(ctx, file, load.Options{})
		if err != nil {
			return err
		}
		var es []*entrant
		if prec == dtype.F64 {
			es, err = threeWays(ctx, dev, formats.Convert[float64](a), prec, n, r.data != "")
		} else {
			es, err = threeWays(ctx, dev, a, prec, n, r.data != "")
		}
		if err == nil && r.data != "" {
			err = r.record(file, "cuda", prec.String(), n, plan.NewProduct(a, n), es[:2])
		}
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		name, _, _ := strings.Cut(filepath.Base(file), ".mtx")
		theirs := 0.0
		if prec != dtype.F64 {
			theirs = cutespmmTime(name, n)
		}
		limit := theirs
		if c := cusparse[i]; c > 0 && (limit == 0 || c < limit) {
			limit = c
		}
		csr, hrpb, auto := es[0], es[1], es[2]
		peers.add(limit, auto.us)
		best.add(min(csr.us, hrpb.us), auto.us)
		row(name, theirs, cusparse[i], csr.us, hrpb.us, auto.us, auto.Format+"/"+auto.Variant, met(auto.us, limit))
	}
	fmt.Printf("\nGeometric mean, theirs over auto: %v; the better of csr and hrpb over auto: %v.\n\n", &peers, &best)
	return nil
}

// threeWays measures csr, hrpb and auto in turn; packings tells what predictions of the first two are made from, too.
func threeWays[O oracle.Number](ctx context.Context, dev *spmm.Device, a *formats.CSR[O], prec dtype.Type, n int, packings bool) ([]*entrant, error) {
	b := formats.ConvertDense[O](gen.Dense(a.Cols, n, 1, gen.Values{}))
	var es []*entrant
	defer func() {
		for _, e := range es {
			e.close()
		}
	}()
	for _, format := range []string{"csr", "hrpb", ""} {
		o := spmm.Options{Precision: prec, Cols: n, Format: format}
		p, err := spmm.Prepare(ctx, dev, a, o)
		if err != nil {
			return nil, err
		}
		e, err := compete[O](ctx, p, a, b, n)
		if err != nil {
			return nil, err
		}
		es = append(es, e)
		if packings && format != "" {
			ps, err := spmm.Compare(ctx, dev, a, o)
			if err != nil {
				return nil, err
			}
			e.Packing = ps[0]
		}
		e.Format, e.Variant = p.Info().Format, p.Info().Variant
	}
	return es, measure(es)
}

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
