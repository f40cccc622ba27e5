// What devices were measured to do, for spmmrun devices --measure.

package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spmmrun/spmm"
)

// ratesReport are the rates of a device in the JSON report.
type ratesReport struct {
	At        time.Time          `json:"at"`
	Copy      []copyReport       `json:"copy"`
	Cache     float64            `json:"cache_bytes_per_s"`
	FMA       float64            `json:"fma_flop_per_s"`
	FMA64     float64            `json:"fma_f64_flop_per_s,omitempty"` // where there are kernels for f64
	Matrix    map[string]float64 `json:"matrix_flop_per_s"`
	LaunchUS  float64            `json:"launch_us"`
	LatencyUS float64            `json:"latency_us"`
}

type copyReport struct {
	Bytes     int64   `json:"bytes"`
	PerSecond float64 `json:"bytes_per_s"`
}

// measureDevice measures a device again.
func measureDevice(ctx context.Context, d *spmm.Device) (*ratesReport, error) {
	m, err := d.Remeasure(ctx)
	if err != nil {
		return nil, err
	}
	r := &ratesReport{At: m.At, Cache: m.Cache, FMA: m.FMA, FMA64: m.FMA64, Matrix: m.Matrix, LaunchUS: m.LaunchUS,
		LatencyUS: m.LatencyUS}
	for _, c := range m.Copy {
		r.Copy = append(r.Copy, copyReport(c))
	}
	return r, nil
}

// ratesTable prints the best rates seen of each device that was measured.
func (l deviceList) ratesTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\nDEVICE\tCOPY\tCACHE\tF32\tMATRIX UNITS\tLAUNCH\tLATENCY")
	for _, d := range l.Devices {
		r := d.Rates
		if r == nil {
			continue
		}
		fastest, of := 0.0, ""
		for _, key := range slices.Sorted(maps.Keys(r.Matrix)) {
			if r.Matrix[key] > fastest {
				fastest, of = r.Matrix[key], " ("+key+")"
			}
		}
		largest := r.Copy[len(r.Copy)-1]
		fmt.Fprintf(t, "%s:%d\t%s of %s\t%s\t%s\t%s%s\t%.3g µs\t%.3g µs\n", d.Backend, d.Index,
			perSecond(largest.PerSecond, "B"), byteSize(largest.Bytes), perSecond(r.Cache, "B"), perSecond(r.FMA, "FLOP"),
			perSecond(fastest, "FLOP"), of, r.LaunchUS, r.LatencyUS)
	}
	return t.Flush()
}

// perSecond prints a rate, "-" if there is none.
func perSecond(x float64, unit string) string {
	switch {
	case x == 0:
		return "-"
	case x < 1e12:
		return fmt.Sprintf("%.3g G%s/s", x/1e9, unit)
	}
	return fmt.Sprintf("%.3g T%s/s", x/1e12, unit)
}
