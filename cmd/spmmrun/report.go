// What the main job reports.

package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"text/tabwriter"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/rfx"
	"github.com/spmmrun/spmm/internal/choose"
	"github.com/spmmrun/spmm/internal/printable"
)

// report is the job's result as --report json prints it. Scripts rely on its names.
type report struct {
	Run     runReport    `json:"run"`
	Matrix  matrixReport `json:"matrix"`
	Backend string       `json:"backend"`
	Device  string       `json:"device"`
	Driver  string       `json:"driver"`
	Format  string       `json:"format"`
	Variant string       `json:"variant"` // that the matrix is packed for
	Kernel  string       `json:"kernel"`  // that multiplied
	Why     string       `json:"why"`     // it was chosen
	// what was computed with: f32 where tf32 was requested and the device has none
	Precision    string            `json:"precision"`
	Mode         string            `json:"mode"`
	Reproduced   *reproducedReport `json:"reproduced,omitempty"` // in reproducible mode
	Quantised    *quantisedReport  `json:"quantised,omitempty"`
	N            int               `json:"n"`
	Alpha        float64           `json:"alpha"`
	Beta         float64           `json:"beta"`
	Epilogue     *epilogueReport   `json:"epilogue,omitempty"`
	Seed         uint64            `json:"seed"`
	B            string            `json:"b,omitempty"` // its file
	StoredBytes  int64             `json:"stored_bytes"`
	Fill         float64           `json:"fill"`
	Ranks        *ranksReport      `json:"ranks,omitempty"`   // where a launcher started several
	Group        *groupReport      `json:"group,omitempty"`   // where several devices take part
	Skipped      []absentEntry     `json:"skipped,omitempty"` // backends that auto would have preferred
	LoadS        float64           `json:"load_s"`
	ChooseS      float64           `json:"choose_s"` // choosing the format, samples packed for it included
	EncodeS      float64           `json:"encode_s"`
	UploadS      float64           `json:"upload_s"`
	Repeats      int               `json:"repeats"`
	Batch        int               `json:"batch"` // multiplications in each repeat, back to back
	Clock        string            `json:"clock"` // "device", or "host" where the device has no timestamps
	Time         timeReport        `json:"time_us"`
	GFLOPS       float64           `json:"gflops"`        // 2·nnz·N operations over the median, padding not counted
	GBS          float64           `json:"gb_s"`          // A as stored, B, C and the bias once each, over the median
	AttainableUS float64           `json:"attainable_us"` // the largest of the bounds; with several ranks all three are 0
	Bounds       boundReport       `json:"bounds_us"`
	Attained     float64           `json:"attained"` // attainable over the median
	Verify       *verifyReport     `json:"verify"`   // null with --verify none
	OutputSHA256 string            `json:"output_sha256"`
	Warnings     []string          `json:"warnings,omitempty"`
}

// runReport tells what ran, when and with what command line.
type runReport struct {
	Version string    `json:"version"`
	Commit  string    `json:"commit"` // "" if the build did not record it
	Go      string    `json:"go"`
	System  string    `json:"system"`
	Start   time.Time `json:"start"`
	Threads int       `json:"threads"` // that run Go code at the same time: GOMAXPROCS
	Command []string  `json:"command"`
}

func newRunReport(start time.Time) runReport {
	number, commit := build()
	return runReport{
		Version: number, Commit: commit, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH,
		Start: start.UTC().Truncate(time.Millisecond), Threads: runtime.GOMAXPROCS(0), Command: os.Args,
	}
}

type matrixReport struct {
	Name       string `json:"name"`
	Right      bool   `json:"right,omitempty"`      // Y = X·Aᵀ was computed, X = Bᵀ and Y = Cᵀ being row-major
	Transposed bool   `json:"transposed,omitempty"` // what follows is of the transpose, which was multiplied with
	Rows       int    `json:"rows"`
	Cols       int    `json:"cols"`
	NNZ        int64  `json:"nnz"`
}

// title is the matrix's name, whether it is transposed, and whether it is on the right.
func (m matrixReport) title() string {
	name := printable.String(m.Name)
	if m.Transposed {
		name += ", transposed"
	}
	if m.Right {
		name += ", on the right of Bᵀ"
	}
	return name
}

type timeReport struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	P90    float64 `json:"p90"`

	Samples []float64 `json:"samples,omitempty"` // one for each repeat, in order
}

// boundReport holds the least time that each limit of the device allows.
type boundReport struct {
	Memory  float64 `json:"memory"`  // every byte moved once
	Gather  float64 `json:"gather"`  // rows of B from cache
	Compute float64 `json:"compute"` // multiply-adds executed
}

// verifyReport holds the check's findings.
type verifyReport struct {
	Mode     string  `json:"mode"`
	Checked  int64   `json:"checked"`   // outputs
	MaxRatio float64 `json:"max_ratio"` // largest error over its bound; right if at most 1
	OK       bool    `json:"ok"`
	Bits     bool    `json:"bits,omitempty"` // every bit had to be right: then max_ratio is 0 or the largest there is

	Distance distanceReport `json:"distance"`

	worst       string          // the worst output in words
	unquantised *distanceReport // from the product of the matrix before it was quantised, nil if it was not
}

// distanceReport tells how far finite outputs are from the exact product, with its epilogue.
type distanceReport struct {
	Checked  int64   `json:"checked"`
	Worst    float64 `json:"worst"`
	Relative float64 `json:"relative"` // the worst over |alpha|·Σ|a||b| + |beta·c| + |bias| of its output
}

// kernelName names the kernel that multiplies: in reproducible mode one of rfx.
func (j *job) kernelName(plan spmm.PlanInfo) string {
	if j.mode == reproducible {
		return "rfx/" + plan.Kernel
	}
	return plan.Format + "/" + plan.Kernel
}

// newReport reports what was multiplied, and in what time.
func newReport[T formats.Value, S oracle.Number](x setup, q *operands[T, S], plan spmm.PlanInfo, ts timings,
	b spmm.Bound) *report {
	j, n, dev := x.job, q.b.Cols, x.dev.Info()
	r := &report{
		Run:     newRunReport(j.start),
		Matrix:  matrixReport{j.matrix, j.right, j.transpose, plan.Rows, plan.Cols, plan.NNZ},
		Backend: dev.Backend, Device: dev.Name, Driver: dev.Driver,
		Format: plan.Format, Variant: plan.Variant, Kernel: j.kernelName(plan), Why: plan.Why,
		Precision: plan.Precision.String(), Mode: j.mode,
		N: n, Alpha: j.alpha, Beta: j.beta, Epilogue: newEpilogueReport(j.epilogue, q.epilogue), Seed: j.seed, B: j.bFile,
		StoredBytes: plan.Stats.StoredBytes, Fill: plan.Stats.Fill,
		LoadS: x.a.took.Seconds(), ChooseS: plan.ChooseTime.Seconds(), EncodeS: plan.EncodeTime.Seconds(),
		UploadS: plan.UploadTime.Seconds(),
		Repeats: len(ts.each), Batch: ts.batch, Clock: "device",
		Time:         timeReport{Min: us(ts.quantile(0)), Median: us(ts.quantile(0.5)), P90: us(ts.quantile(0.9))},
		AttainableUS: us(b.Time()),
		Bounds:       boundReport{us(b.Memory), us(b.Gather), us(b.Compute)},
	}
	if ts.host {
		r.Clock = "host"
	}
	for _, s := range x.dev.Skipped() {
		r.Skipped = append(r.Skipped, absentEntry{s.Backend, oneLine(s.Err)})
	}
	for _, t := range ts.each {
		r.Time.Samples = append(r.Time.Samples, us(t))
	}
	if m := r.Time.Median; m > 0 {
		r.Attained = r.AttainableUS / m
		r.GFLOPS = 2 * float64(plan.NNZ) * float64(n) / m / 1e3
		r.GBS = float64(traffic(j, n, formats.TypeOf[S]().Size(), plan)+biasBytes(q.epilogue)) / m / 1e3
	}
	return r
}

// traffic is the bytes of A as stored, B, and C of elements of a size: what a multiplication moves at least. C is read
// where beta is not 0.
func traffic(j *job, n, size int, plan spmm.PlanInfo) int64 {
	b := int64(plan.Cols) * int64(n) * int64(plan.Precision.Storage().Size())
	c := int64(size) * int64(plan.Rows) * int64(n)
	if j.beta != 0 {
		c *= 2
	}
	return plan.Stats.StoredBytes + b + c
}

// warn adds what the user should know of a result that is right.
func (r *report) warn() {
	if p := r.Reproduced; p != nil {
		if text := p.Vanished.String(); text != "" {
			advice := "--p auto keeps what it can"
			if p.P == int(rfx.P47) {
				advice = "--mode fast keeps them"
			}
			r.Warnings = append(r.Warnings, fmt.Sprintf("%s (p = %d); %s", text, p.P, advice))
		}
	}
}

func us(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// print writes the report as a table or as JSON.
func (r *report) print(w io.Writer, form string) error {
	if form == "json" {
		return writeJSON(w, r)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(t, name+"\t"+format+"\n", args...) }
	row("matrix", "%s: %d×%d, %d entries (%s)", r.Matrix.title(), r.Matrix.Rows, r.Matrix.Cols, r.Matrix.NNZ,
		density(r.Matrix))
	row("B", "%d×%d, %s", r.Matrix.Cols, r.N, r.origin())
	if r.Epilogue != nil {
		row("epilogue", "%v", r.Epilogue)
	}
	row("device", "%s: %s (%s)", r.Backend, printable.String(r.Device), printable.String(r.Driver))
	for _, s := range r.Skipped {
		row("skipped", "%s", printable.String(s.Reason))
	}
	row("plan", "format %s, precision %s, kernel %s", r.Format, r.Precision, r.Kernel)
	row("chosen", "because %s", r.Why)
	if r.Quantised != nil {
		row("values", "%v", r.Quantised)
	}
	if r.Reproduced != nil {
		row("mode", "%s, %v", r.Mode, r.Reproduced)
	}
	row("stored", "%s, fill %.3g, encoded in %s", byteSize(r.StoredBytes), r.Fill, seconds(r.EncodeS))
	row("time", "%s median of %d×%d (min %s, p90 %s, %s clock)", choose.Micros(r.Time.Median), r.Repeats, r.Batch,
		choose.Micros(r.Time.Min), choose.Micros(r.Time.P90), r.Clock)
	row("rate", "%.3g GFLOP/s, %.3g GB/s", r.GFLOPS, r.GBS)
	if r.Group != nil {
		r.Group.rows(row)
	}
	if r.Ranks != nil {
		r.Ranks.rows(row)
	} else {
		row("attainable", "%s, bound by %s: %.0f %% attained", choose.Micros(r.AttainableUS), r.Bounds.largest(),
			100*r.Attained)
	}
	if v := r.Verify; v != nil && v.Bits {
		row("verified", "every bit of %d of %d outputs: %s", v.Checked, int64(r.Matrix.Rows)*int64(r.N), verdict(v.OK))
	} else if v != nil {
		row("verified", "%d of %d outputs, worst error %.2g of its bound: %s", v.Checked, int64(r.Matrix.Rows)*int64(r.N),
			v.MaxRatio, verdict(v.OK))
	} else {
		row("verified", "nothing")
	}
	exact := "exact product"
	if r.Epilogue != nil {
		exact = "exact result"
	}
	if v := r.Verify; v != nil && v.OK && v.Distance.Worst == 0 {
		row("distance", "0: it is the %s", exact)
	} else if v != nil && v.OK {
		row("distance", "at most %.2g from the %s, at most %.2g of Σ|a||b|", v.Distance.Worst, exact, v.Distance.Relative)
	}
	if q := r.Quantised; q != nil && q.Distance != nil {
		row("", "at most %.2g from that of A before it was quantised, at most %.2g of Σ|a||b|", q.Distance.Worst, q.Distance.Relative)
	}
	row("output", "sha256 %s", r.OutputSHA256)
	for _, text := range r.Warnings {
		row("warning", "%s", text)
	}
	return t.Flush()
}

// origin says where B comes from.
func (r *report) origin() string {
	if r.B != "" {
		return printable.String(r.B)
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

// seconds and byteSize print quantities with a fitting unit, as choose.Micros does.
func seconds(s float64) string { return choose.Micros(s * 1e6) }

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
