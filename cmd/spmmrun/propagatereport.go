// What spmmrun propagate reports.

package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/dist"
	"github.com/spmmrun/spmm/internal/choose"
	"github.com/spmmrun/spmm/internal/printable"
)

// propagationReport is the result as --report json prints it.
type propagationReport struct {
	Run       runReport    `json:"run"`
	Matrix    matrixReport `json:"matrix"` // with the diagonal that --normalise symmetric adds
	Backend   string       `json:"backend"`
	Device    string       `json:"device"`
	Driver    string       `json:"driver"`
	Format    string       `json:"format"`
	Variant   string       `json:"variant"`
	Mode      string       `json:"mode"`
	P         int          `json:"p,omitempty"` // of the last step, in reproducible mode
	N         int          `json:"n"`
	Steps     int          `json:"steps"`
	Resumed   int          `json:"resumed_from"` // the step of the checkpoint that it went on from, 0 if there was none
	Restart   float32      `json:"restart"`
	Normalise string       `json:"normalise"`
	Start     string       `json:"start"`
	Seed      uint64       `json:"seed"`
	LoadS     float64      `json:"load_s"`
	Time      timeReport   `json:"time_us"` // of a step, from when it begins to when the last rank is done
	Change    float64      `json:"change"`  // the largest of an element in the last step
	Ranks     *ranksReport `json:"ranks,omitempty"`
	Output    string       `json:"output_sha256"`
}

// newPropagationReport reports what is known before the steps.
func newPropagationReport(g *propagation, began time.Time, loading time.Duration, dev spmm.Info,
	resumed int) propagationReport {
	return propagationReport{
		Run: newRunReport(began), Backend: dev.Backend, Device: dev.Name, Driver: dev.Driver,
		Matrix: matrixReport{Name: g.matrix}, N: g.cols, Steps: g.steps, Resumed: resumed, Restart: g.restart,
		Normalise: g.normalise, Start: g.startName(), Seed: g.seed, Mode: g.mode, LoadS: loading.Seconds(),
	}
}

// add adds what is known after the steps: what all ranks multiplied with, and how long it took.
func (x *propagationReport) add(ctx context.Context, r *ranks, s *state, ts timings, last dist.Timing) error {
	change := 0.0
	if len(ts.each) > 0 {
		var err error
		change, err = s.changed(ctx)
		if err := r.agree(err); err != nil {
			return err
		}
		x.Time = timeReport{Min: us(ts.quantile(0)), Median: us(ts.quantile(0.5)), P90: us(ts.quantile(0.9))}
	}
	nnz, most := []int64{s.share.A.NNZ()}, []int64{int64(math.Float64bits(change))}
	if err := r.AllReduce(nnz, comm.Sum); err != nil {
		return err
	}
	if err := r.AllReduce(most, comm.Max); err != nil {
		return err
	}
	info := s.plan.Info()
	x.Matrix.Rows, x.Matrix.Cols, x.Matrix.NNZ = info.Cols, info.Cols, nnz[0]
	x.Change, x.Format, x.Variant = math.Float64frombits(uint64(most[0])), info.Format, info.Variant
	x.P, _ = s.plan.Reproduced()
	if r.Size() == 1 {
		return nil
	}
	var err error
	x.Ranks, err = newRanksReport(r, s.dev.Info(), info, last, 1)
	return err
}

// print writes the report as a table or as JSON.
func (x *propagationReport) print(w io.Writer, form string) error {
	if form == "json" {
		return writeJSON(w, x)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(t, name+"\t"+format+"\n", args...) }
	row("matrix", "%s: %d vertices, %d entries (%s), normalised: %s", x.Matrix.title(), x.Matrix.Rows, x.Matrix.NNZ,
		density(x.Matrix), x.Normalise)
	row("X", "%d×%d, X0: %s, seed %d; restart %g", x.Matrix.Rows, x.N, printable.String(x.Start), x.Seed, x.Restart)
	row("device", "%s: %s (%s)", x.Backend, printable.String(x.Device), printable.String(x.Driver))
	mode := x.Mode
	if x.P != 0 {
		mode += fmt.Sprintf(", p = %d", x.P)
	}
	row("plan", "format %s, kernel %s, mode %s", x.Format, x.Variant, mode)
	from := ""
	if x.Resumed > 0 {
		from = fmt.Sprintf(", from step %d on", x.Resumed)
	}
	row("steps", "%d%s; the last changed elements by at most %.3g", x.Steps, from, x.Change)
	if x.Time.Median > 0 {
		row("time", "%s median of a step (min %s, p90 %s)", choose.Micros(x.Time.Median), choose.Micros(x.Time.Min),
			choose.Micros(x.Time.P90))
	}
	if x.Ranks != nil {
		x.Ranks.rows(row)
	}
	row("output", "sha256 %s", x.Output)
	return t.Flush()
}
