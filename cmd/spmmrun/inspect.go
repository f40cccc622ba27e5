// spmmrun inspect

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/shaders"
	"github.com/spmmrun/spmm/shaders/spec"
)

func newInspect() *cobra.Command {
	var report, precision string
	var seed uint64
	c := &cobra.Command{
		Use:   "inspect [flags] MATRIX",
		Short: "Describe a matrix and what each format makes of it; needs no device",
		Args:  oneMatrix,
		RunE: func(c *cobra.Command, args []string) error {
			p := newProgress(c.ErrOrStderr())
			defer p.end()
			i, err := inspect(c.Context(), args[0], precision, seed, p)
			if err != nil {
				return err
			}
			p.end()
			if report == "json" {
				return writeJSON(c.OutOrStdout(), i)
			}
			return i.table(c.OutOrStdout())
		},
	}
	addPrecision(c, &precision)
	addSeed(c, &seed)
	addReport(c, &report)
	return c
}

// inspection is the report.
type inspection struct {
	Matrix  matrixReport `json:"matrix"`
	Density float64      `json:"density"`
	LoadS   float64      `json:"load_s"`
	Rows    rowReport    `json:"row_lengths"`
	Formats []packing    `json:"formats"`
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
	Format      string  `json:"format"`
	V           uint32  `json:"v,omitempty"` // rows of a panel
	Precision   string  `json:"precision"`
	StoredBytes int64   `json:"stored_bytes"`
	Slots       int64   `json:"slots"`
	Fill        float64 `json:"fill"`
	MACs        int64   `json:"macs_per_column"`
	Gathers     int64   `json:"gathers"`
	EncodeS     float64 `json:"encode_s"`
	Error       string  `json:"error,omitempty"` // why the format cannot hold it
}

func inspect(ctx context.Context, name, precision string, seed uint64, p *progress) (*inspection, error) {
	prec, err := dtype.Parse(precision)
	if err != nil {
		return nil, err
	}
	start := time.Now()
	e, err := openMatrix(ctx, name, seed, p)
	if err != nil {
		return nil, err
	}
	a := float32CSR(e)
	i := &inspection{LoadS: time.Since(start).Seconds()}
	rows, cols := a.Dims()
	i.Matrix = matrixReport{name, rows, cols, a.NNZ()}
	if rows > 0 && cols > 0 {
		i.Density = float64(a.NNZ()) / float64(rows) / float64(cols)
	}
	i.Rows = rowLengths(a.RowPtr)
	m := formats.ConvertTo(a, prec)
	for _, k := range shaders.Formats() {
		for _, v := range panelHeights(k, prec) {
			p.step("encoding "+k.Name, -1)
			i.Formats = append(i.Formats, pack(m, k, v))
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
	}
	return i, nil
}

// panelHeights returns a variant of the kernel for each way in which it packs a matrix of a type.
func panelHeights(k *spec.Kernel, t dtype.Type) []*spec.Variant {
	var vs []*spec.Variant
	for _, v := range k.Variants {
		same := func(o *spec.Variant) bool { return o.Const("V") == v.Const("V") }
		if v.In.Storage() == t.Storage() && !slices.ContainsFunc(vs, same) {
			vs = append(vs, v)
		}
	}
	return vs
}

func pack(a formats.Sparse, k *spec.Kernel, v *spec.Variant) packing {
	p := packing{Format: k.Name, V: v.Const("V"), Precision: a.Type().String()}
	start := time.Now()
	e, err := k.Encode(a, v)
	p.EncodeS = time.Since(start).Seconds()
	if err != nil {
		p.Error = oneLine(err)
		return p
	}
	p.StoredBytes, p.Slots, p.Fill = e.Stats.StoredBytes, e.Stats.Slots, e.Stats.Fill
	p.MACs, p.Gathers = e.Stats.MACs, e.Stats.Gathers
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

func (i *inspection) table(w io.Writer) error {
	m := i.Matrix
	_, err := fmt.Fprintf(w, "%s: %d×%d, %d entries (%s), read in %s\n\nentries in a row: min %d, median %d, mean %.3g, max %d\n",
		m.Name, m.Rows, m.Cols, m.NNZ, density(m), seconds(i.LoadS), i.Rows.Min, i.Rows.Median, i.Rows.Mean, i.Rows.Max)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, b := range i.Rows.Histogram {
		span := fmt.Sprint(b.From)
		if b.To > b.From {
			span = fmt.Sprintf("%d–%d", b.From, b.To)
		}
		fmt.Fprintf(t, "%s\t%d rows\t%.3g %%\t\n", span, b.Rows, 100*float64(b.Rows)/float64(m.Rows))
	}
	err = errors.Join(err, t.Flush())
	fmt.Fprintln(w)
	t = tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "FORMAT\tPRECISION\tSTORED\tFILL\tMACS PER COLUMN\tROWS OF B FETCHED\tENCODED IN")
	for _, p := range i.Formats {
		name := p.Format
		if p.V > 0 {
			name = fmt.Sprintf("%s V=%d", p.Format, p.V)
		}
		if p.Error != "" {
			fmt.Fprintf(t, "%s\t%s\t%s\n", name, p.Precision, p.Error)
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%.3g\t%d\t%d\t%s\n", name, p.Precision, byteSize(p.StoredBytes), p.Fill, p.MACs, p.Gathers, seconds(p.EncodeS))
	}
	return errors.Join(err, t.Flush())
}
