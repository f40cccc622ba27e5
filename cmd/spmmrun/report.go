// What the main job reports.

package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spmmrun/spmm"
)

// report is the job's result as --report json prints it. Scripts rely on its names.
type report struct {
	Matrix       matrixReport      `json:"matrix"`
	Backend      string            `json:"backend"`
	Device       string            `json:"device"`
	Driver       string            `json:"driver"`
	Format       string            `json:"format"`
	Variant      string            `json:"variant"`
	Why          string            `json:"why"`       // it was chosen
	Precision    string            `json:"precision"` // what was computed with: f32 where tf32 was asked for and is not there
	Mode         string            `json:"mode"`
	Reproduced   *reproducedReport `json:"reproduced,omitempty"` // in reproducible mode
	N            int               `json:"n"`
	Alpha        float32           `json:"alpha"`
	Beta         float32           `json:"beta"`
	Seed         uint64            `json:"seed"`
	B            string            `json:"b,omitempty"` // its file
	StoredBytes  int64             `json:"stored_bytes"`
	Fill         float64           `json:"fill"`
	LoadS        float64           `json:"load_s"`
	EncodeS      float64           `json:"encode_s"`
	UploadS      float64           `json:"upload_s"`
	Repeats      int               `json:"repeats"`
	Batch        int               `json:"batch"` // multiplications in each repeat, back to back
	Clock        string            `json:"clock"` // "device", or "host" where the device has no timestamps
	Time         timeReport        `json:"time_us"`
	AttainableUS float64           `json:"attainable_us"` // the largest of the bounds
	Bounds       boundReport       `json:"bounds_us"`
	Attained     float64           `json:"attained"` // attainable over the median
	Verify       *verifyReport     `json:"verify"`   // null with --verify none
	OutputSHA256 string            `json:"output_sha256"`
}

type matrixReport struct {
	Name string `json:"name"`
	Rows int    `json:"rows"`
	Cols int    `json:"cols"`
	NNZ  int64  `json:"nnz"`
}

type timeReport struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	P90    float64 `json:"p90"`
}

// boundReport is what each limit of the device allows at least.
type boundReport struct {
	Memory  float64 `json:"memory"`  // every byte moved once
	Gather  float64 `json:"gather"`  // rows of B from cache
	Compute float64 `json:"compute"` // multiply-adds executed
}

// verifyReport is what the check found.
type verifyReport struct {
	Mode     string  `json:"mode"`
	Checked  int64   `json:"checked"`   // outputs
	MaxRatio float64 `json:"max_ratio"` // largest error over its bound; right if at most 1
	OK       bool    `json:"ok"`
	Bits     bool    `json:"bits,omitempty"` // every bit had to be right: then max_ratio is 0 or the largest there is

	worst string // the worst output in words
}

func newReport(j *job, n int, dev spmm.Info, plan spmm.PlanInfo, ts timings, b spmm.Bound) report {
	r := report{
		Matrix:  matrixReport{j.matrix, plan.Rows, plan.Cols, plan.NNZ},
		Backend: dev.Backend, Device: dev.Name, Driver: dev.Driver,
		Format: plan.Format, Variant: plan.Variant, Why: plan.Why, Precision: plan.Precision.String(), Mode: j.mode,
		N: n, Alpha: j.alpha, Beta: j.beta, Seed: j.seed, B: j.bFile,
		StoredBytes: plan.Stats.StoredBytes, Fill: plan.Stats.Fill,
		EncodeS: plan.EncodeTime.Seconds(), UploadS: plan.UploadTime.Seconds(),
		Repeats: len(ts.each), Batch: ts.batch, Clock: "device",
		Time:         timeReport{us(ts.quantile(0)), us(ts.quantile(0.5)), us(ts.quantile(0.9))},
		AttainableUS: us(b.Time()),
		Bounds:       boundReport{us(b.Memory), us(b.Gather), us(b.Compute)},
	}
	if ts.host {
		r.Clock = "host"
	}
	if r.Time.Median > 0 {
		r.Attained = r.AttainableUS / r.Time.Median
	}
	return r
}

func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// print writes the report as a table or as JSON.
func (r *report) print(w io.Writer, form string) error {
	if form == "json" {
		return writeJSON(w, r)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(t, name+"\t"+format+"\n", args...) }
	row("matrix", "%s: %d×%d, %d entries (%s)", r.Matrix.Name, r.Matrix.Rows, r.Matrix.Cols, r.Matrix.NNZ, density(r.Matrix))
	row("B", "%d×%d, %s", r.Matrix.Cols, r.N, r.origin())
	row("device", "%s: %s (%s)", r.Backend, r.Device, r.Driver)
	row("plan", "format %s, precision %s, kernel %s", r.Format, r.Precision, r.Variant)
	row("chosen", "because %s", r.Why)
	if r.Reproduced != nil {
		row("mode", "%s, %v", r.Mode, r.Reproduced)
	}
	row("stored", "%s, fill %.3g, encoded in %s", byteSize(r.StoredBytes), r.Fill, seconds(r.EncodeS))
	row("time", "%s median of %d×%d (min %s, p90 %s, %s clock)", micros(r.Time.Median), r.Repeats, r.Batch, micros(r.Time.Min), micros(r.Time.P90), r.Clock)
	row("attainable", "%s, bound by %s: %.0f %% attained", micros(r.AttainableUS), r.Bounds.largest(), 100*r.Attained)
	if v := r.Verify; v != nil && v.Bits {
		row("verified", "every bit of %d of %d outputs: %s", v.Checked, int64(r.Matrix.Rows)*int64(r.N), verdict(v.OK))
	} else if v != nil {
		row("verified", "%d of %d outputs, worst error %.2g of its bound: %s", v.Checked, int64(r.Matrix.Rows)*int64(r.N), v.MaxRatio, verdict(v.OK))
	} else {
		row("verified", "nothing")
	}
	row("output", "sha256 %s", r.OutputSHA256)
	return t.Flush()
}

// origin says where B comes from.
func (r *report) origin() string {
	if r.B != "" {
		return r.B
	}
	return fmt.Sprintf("random, seed %d", r.Seed)
}

// largest names the limit that bounds the time.
func (b boundReport) largest() string {
	switch max(b.Memory, b.Gather, b.Compute) {
	case b.Memory:
		return "memory"
	case b.Gather:
		return "reading B from cache"
	}
	return "arithmetic"
}

func verdict(ok bool) string {
	if ok {
		return "right"
	}
	return "WRONG"
}

// density is the share of stored entries in percent.
func density(m matrixReport) string {
	if m.Rows == 0 || m.Cols == 0 {
		return "0 %"
	}
	return fmt.Sprintf("%.3g %%", 100*float64(m.NNZ)/float64(m.Rows)/float64(m.Cols))
}

// micros, seconds and byteSize print quantities with a fitting unit.
func micros(us float64) string {
	switch {
	case us < 999.5:
		return fmt.Sprintf("%.3g µs", us)
	case us < 999.5e3:
		return fmt.Sprintf("%.3g ms", us/1e3)
	}
	return fmt.Sprintf("%.3g s", us/1e6)
}

func seconds(s float64) string { return micros(s * 1e6) }

func byteSize(n int64) string {
	if n <= 0 {
		return "-"
	}
	x := float64(n)
	for _, unit := range []string{"B", "KiB", "MiB", "GiB"} {
		if x < 1023.95 {
			return fmt.Sprintf("%.4g %s", x, unit)
		}
		x /= 1024
	}
	return fmt.Sprintf("%.4g TiB", x)
}
