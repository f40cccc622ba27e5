// spmmrun inspect

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/choose"
	"github.com/spmmrun/spmm/internal/printable"
)

// inspector holds the command line's flags.
type inspector struct {
	matrix, backend, precision string
	precisionGiven             bool
	cols                       int
	seed                       uint64
	spy, report                string
	force                      bool
	unfinished                 *temporaries
}

func newInspect(unfinished *temporaries) *cobra.Command {
	q := &inspector{unfinished: unfinished, backend: "auto"}
	c := &cobra.Command{
		Use:   "inspect [flags] MATRIX",
		Short: "Describe a matrix, and what each format makes of it on a device",
		Long: `inspect shows a matrix: its size, how long its rows are, where its entries lie, and for each format what
it stores, how much of that is padding, how long it takes to encode, and what a multiplication by N
columns is predicted to take on the device. auto takes the format with the least prediction.`,
		Args: oneMatrix,
		RunE: func(c *cobra.Command, args []string) error {
			q.matrix, q.precisionGiven = args[0], c.Flags().Changed("precision")
			p := newProgress(c.ErrOrStderr())
			defer p.end()
			i, a, err := q.run(c.Context(), p)
			if err != nil {
				return err
			}
			p.end()
			if q.report == "json" {
				return writeJSON(c.OutOrStdout(), i)
			}
			return i.table(c.OutOrStdout(), a)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	addBackend(c, deviceName{&q.backend}, "device to pack and predict for; auto takes the fastest")
	addPrecision(c, &q.precision)
	addCount(c, &q.cols, "cols", "n", 128, 1, "columns of B to predict for")
	f.StringVar(&q.spy, "spy", "", "draw where the entries lie to `FILE.png`")
	addSeed(c, &q.seed, "")
	addForce(c, &q.force)
	addReport(c, &q.report)
	return c
}

// inspection is the report.
type inspection struct {
	Matrix  matrixReport `json:"matrix"`
	Density float64      `json:"density"`
	LoadS   float64      `json:"load_s"`
	Rows    rowReport    `json:"row_lengths"`

	Backend  string         `json:"backend"`
	Device   string         `json:"device"`
	Driver   string         `json:"driver"`
	Measured measuredReport `json:"speeds_measured"`
	N        int            `json:"n"` // columns of B that times are predicted for
	Formats  []packing      `json:"formats"`
}

// measuredReport tells when the device's speeds were measured, by which times are predicted.
type measuredReport struct {
	At     time.Time `json:"at"`
	Cached bool      `json:"cached"` // by an earlier run
}

// rowReport tells how long rows are.
type rowReport struct {
	Min       int64    `json:"min"`
	Median    int64    `json:"median"`
	Mean      float64  `json:"mean"`
	Max       int64    `json:"max"`
	Histogram []bucket `json:"histogram"`
}

// bucket counts the rows with From to To entries.
type bucket struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
	Rows int64 `json:"rows"`
}

// packing is the matrix in one format.
type packing struct {
	Format      string             `json:"format"`
	Variant     string             `json:"variant,omitempty"` // that the matrix is packed for
	Kernel      string             `json:"kernel,omitempty"`  // that multiplies
	Options     map[string]int     `json:"options,omitempty"` // of the format
	Precision   string             `json:"precision"`
	StoredBytes int64              `json:"stored_bytes"`
	Slots       int64              `json:"slots"`
	Fill        float64            `json:"fill"`
	Padding     int64              `json:"padding"` // slots without an entry
	MACs        int64              `json:"macs_per_column"`
	Gathers     int64              `json:"gathers"`
	Details     map[string]float64 `json:"details,omitempty"` // the format's own figures
	EncodeS     float64            `json:"encode_s"`
	PredictedUS float64            `json:"predicted_us"`
	Bounds      boundReport        `json:"bounds_us"`
	Error       string             `json:"error,omitempty"` // why the format cannot hold it

	details []formats.Detail
}

// name is the format with its options.
func (p packing) name() string { return withOptions(p.Format, p.Options) }

// withOptions names a format and its options.
func withOptions(format string, options map[string]int) string {
	for _, name := range slices.Sorted(maps.Keys(options)) {
		format += fmt.Sprintf(" %s=%d", name, options[name])
	}
	return format
}

// run inspects the matrix, and returns it too.
func (q *inspector) run(ctx context.Context, p *progress) (*inspection, *formats.CSR[float32], error) {
	if err := checkEnding(q.spy, ".png"); err != nil {
		return nil, nil, fmt.Errorf("--spy %w", err)
	}
	spy, err := newOutput(q.spy, q.unfinished, q.force, q.matrix)
	if err != nil {
		return nil, nil, fmt.Errorf("--spy: %w", err)
	}
	dev, err := spmm.OpenFor(ctx, q.backend, typeOf(q.precision))
	if err != nil {
		return nil, nil, err
	}
	defer dev.Close()
	start := time.Now()
	e, err := openMatrix(ctx, q.matrix, q.seed, typeOf(q.precision), p)
	if err != nil {
		return nil, nil, err
	}
	e = byRows(e)
	i := &inspection{LoadS: time.Since(start).Seconds(), N: q.cols}
	a := float32CSR(e)
	i.Matrix = matrixReport{Name: q.matrix, Rows: a.Rows, Cols: a.Cols, NNZ: a.NNZ()}
	if a.Rows > 0 && a.Cols > 0 {
		i.Density = float64(a.NNZ()) / float64(a.Rows) / float64(a.Cols)
	}
	i.Rows = rowLengths(a.RowPtr)
	if err := q.predict(ctx, dev, e, i, p); err != nil {
		return nil, nil, err
	}
	if err := spy.write(func(w io.Writer) error { return writeSpy(w, q.matrix, a) }); err != nil {
		return nil, nil, fmt.Errorf("--spy: %w", err)
	}
	return i, a, nil
}

// predict fills in what concerns the device.
func (q *inspector) predict(ctx context.Context, dev *spmm.Device, e formats.Encoded, i *inspection,
	p *progress) error {
	p.step("measuring the device", -1)
	rates, err := dev.Rates(ctx)
	if err != nil {
		return err
	}
	info := dev.Info()
	i.Backend, i.Device, i.Driver = info.Backend, info.Name, info.Driver
	i.Measured = measuredReport{At: rates.At, Cached: !rates.Fresh}
	prec := e.Type()
	if q.precisionGiven {
		if prec, err = dtype.Parse(q.precision); err != nil {
			return err
		}
	}
	p.step("encoding", -1)
	a := e
	if _, is := e.(*formats.Quantised); !is {
		a = formats.ConvertTo(e.Sparse(), prec)
	} else if !q.precisionGiven {
		prec = dtype.F16
	}
	ps, err := spmm.Compare(ctx, dev, a, spmm.Options{Precision: prec, Cols: q.cols})
	if err != nil {
		return err
	}
	for _, x := range ps {
		i.Formats = append(i.Formats, newPacking(x, prec, i.Matrix.NNZ))
	}
	return nil
}

func newPacking(x spmm.Packing, prec dtype.Type, nnz int64) packing {
	if x.Precision != dtype.Invalid {
		prec = x.Precision
	}
	p := packing{
		Format: x.Format, Variant: x.Variant, Kernel: x.Kernel, Options: x.Options,
		Precision: prec.String(), details: x.Details,
		StoredBytes: x.Stats.StoredBytes, Slots: x.Stats.Slots, Fill: x.Stats.Fill, MACs: x.Stats.MACs,
		Gathers: x.Stats.Gathers,
		EncodeS: x.EncodeTime.Seconds(), PredictedUS: us(x.Predicted),
		Bounds: boundReport{us(x.Bound.Memory), us(x.Bound.Gather), us(x.Bound.Compute)},
	}
	if x.Err != nil {
		p.Error = oneLine(x.Err)
		return p
	}
	p.Padding = p.Slots - nnz
	for _, d := range x.Details {
		if p.Details == nil {
			p.Details = map[string]float64{}
		}
		p.Details[d.Name] = d.Value
	}
	return p
}

// rowLengths counts rows by their number of entries, in buckets 0, 1, 2–3, 4–7 and so on.
func rowLengths(ptr []int64) rowReport {
	n := len(ptr) - 1
	if n == 0 {
		return rowReport{Histogram: []bucket{}}
	}
	lengths, counts := make([]int64, n), make([]int64, 65)
	for i := range n {
		lengths[i] = ptr[i+1] - ptr[i]
		counts[bits.Len64(uint64(lengths[i]))]++
	}
	slices.Sort(lengths)
	r := rowReport{Min: lengths[0], Median: lengths[n/2], Mean: float64(ptr[n]) / float64(n), Max: lengths[n-1]}
	for b, rows := range counts {
		if rows > 0 {
			r.Histogram = append(r.Histogram, bucket{int64(1) << b >> 1, int64(1)<<b - 1, rows})
		}
	}
	return r
}

func (i *inspection) table(w io.Writer, a *formats.CSR[float32]) error {
	m := i.Matrix
	fmt.Fprintf(w, "%s: %d×%d, %d entries (%s), read in %s\n\n", printable.String(m.Name), m.Rows, m.Cols, m.NNZ,
		density(m), seconds(i.LoadS))
	if err := newCanvas(w).draw(w, a); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nentries in a row: min %d, median %d, mean %.3g, max %d\n", i.Rows.Min, i.Rows.Median, i.Rows.Mean,
		i.Rows.Max)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, b := range i.Rows.Histogram {
		span := fmt.Sprint(b.From)
		if b.To > b.From {
			span = fmt.Sprintf("%d–%d", b.From, b.To)
		}
		fmt.Fprintf(t, "%s\t%d rows\t%.3g %%\t\n", span, b.Rows, 100*float64(b.Rows)/float64(m.Rows))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	how := "measured now"
	if i.Measured.Cached {
		how = "measured on " + i.Measured.At.Local().Format("2006-01-02 15:04") + ", from the cache"
	}
	fmt.Fprintf(w, "\non %s: %s (%s), speeds %s:\n", i.Backend, i.Device, i.Driver, how)
	return i.formats(w)
}

// formats prints a line for each packing.
func (i *inspection) formats(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "FORMAT\tKERNEL\tSTORED\tFILL\tPADDING\tMACS PER COLUMN\tROWS OF B FETCHED\tENCODED IN\tPREDICTED (N=%d)\n", i.N)
	best := i.fastest()
	for n, p := range i.Formats {
		if p.Error != "" {
			continue
		}
		note := ""
		if n == best {
			note = " (the least)"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%.3g\t%d\t%d\t%d\t%s\t%s%s\n", p.name(), p.Kernel, byteSize(p.StoredBytes), p.Fill,
			p.Padding,
			p.MACs, p.Gathers, seconds(p.EncodeS), choose.Micros(p.PredictedUS), note)
	}
	err := t.Flush()
	i.refusals(w)
	for _, p := range i.Formats {
		for n, d := range p.details {
			if n == 0 {
				fmt.Fprintf(w, "\n%s:", p.name())
			} else {
				fmt.Fprint(w, ",")
			}
			fmt.Fprintf(w, " %s %.4g", d.Name, d.Value)
		}
	}
	if slices.ContainsFunc(i.Formats, func(p packing) bool { return len(p.details) > 0 }) {
		fmt.Fprintln(w)
	}
	return err
}

// refusals prints, for each format that has no packing for the matrix, why.
func (i *inspection) refusals(w io.Writer) {
	seen := map[string]bool{}
	for _, p := range i.Formats {
		if p.Error == "" {
			seen[p.Format] = true
		}
	}
	for _, p := range i.Formats {
		if !seen[p.Format] {
			seen[p.Format] = true
			fmt.Fprintf(w, "%s: %s\n", p.Format, strings.TrimPrefix(p.Error, "format "+p.Format+": "))
		}
	}
}

// fastest returns which packing has the least prediction, -1 if none has one.
func (i *inspection) fastest() int {
	best := -1
	for n, p := range i.Formats {
		if p.Error == "" && (best < 0 || p.PredictedUS < i.Formats[best].PredictedUS) {
			best = n
		}
	}
	return best
}
