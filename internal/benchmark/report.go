// What a sweep found out, as it is kept in a file and compared later.

package benchmark

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spmmrun/spmm/internal/printable"
)

// ReportVersion is the version of a report's form.
const ReportVersion = 1

// Report has the results of a sweep and their environment. Files keep it as JSON.
type Report struct {
	Version     int         `json:"version"` // ReportVersion
	Environment Environment `json:"environment"`
	Kept        []Versus    `json:"kept,omitempty"` // comparisons with peers whose single results were not kept
	Results     []Result    `json:"results"`
}

// Case names a product and who computes it. Two reports are compared case by case.
type Case struct {
	Matrix    string `json:"matrix"`
	N         int    `json:"n"`
	Precision string `json:"precision"` // requested
	Backend   string `json:"backend"`   // or a peer's name
	Format    string `json:"format"`    // requested, as in auto; or a peer's algorithm
	Mode      string `json:"mode"`
	Way       string `json:"way,omitempty"` // how, if not plainly: Way.String
}

func (c Case) String() string {
	return fmt.Sprintf("%s, N=%d, %s: %s", c.Matrix, c.N, c.Precision, c.By())
}

// By names who computes: backend, format, the mode if that is not fast, and the way.
func (c Case) By() string {
	by := c.Backend + " " + c.Format
	if c.Mode != Fast {
		by += " " + c.Mode
	}
	if c.Way != "" {
		by += " " + c.Way
	}
	return by
}

// Result has the times of a case. They are in microseconds of one product.
type Result struct {
	Case
	Rows int   `json:"rows"`
	Cols int   `json:"cols"`
	NNZ  int64 `json:"nnz"`

	Chosen  string `json:"chosen,omitempty"`  // the format that was taken
	Variant string `json:"variant,omitempty"` // that the matrix is packed for
	Kernel  string `json:"kernel,omitempty"`  // that multiplied, such as "hopper 128×192"
	Split   string `json:"split,omitempty"`   // how the devices of a group share the product: columns or rows
	Clock   string `json:"clock,omitempty"`   // device or host

	Samples      []float64 `json:"samples_us,omitempty"` // means of Batch products each, in the order measured
	Batch        int       `json:"batch,omitempty"`
	Median       float64   `json:"median_us,omitempty"`
	Low          float64   `json:"low_us,omitempty"` // the median's interval at 95 %
	High         float64   `json:"high_us,omitempty"`
	Settled      bool      `json:"settled"`                 // the interval is as narrow as was asked for
	Once         bool      `json:"once,omitempty"`          // an algorithm over 20 times slower than the peers' best
	AttainableUS float64   `json:"attainable_us,omitempty"` // the least time by the device's measured rates
	Clamped      bool      `json:"clamped,omitempty"`       // this run beat the measured rates, which were raised to it
	ReadGBS      float64   `json:"read_gb_s,omitempty"`     // the measured rate by which memory counts
	BoundBy      string    `json:"bound_by,omitempty"`      // memory, cache (reading rows of B) or arithmetic
	Bytes        int64     `json:"bytes,omitempty"`         // of A as stored, B and C, once each
	ChooseS      float64   `json:"choose_s,omitempty"`      // choosing the format, samples packed for it included
	UploadS      float64   `json:"upload_s,omitempty"`      // copying A to the device
	EncodeS      float64   `json:"encode_s,omitempty"`      // packing on the host; of new values, the first call
	Objects      *float64  `json:"heap_objects,omitempty"`  // that a chain makes on the heap
	AskedUS      float64   `json:"asked_us,omitempty"`      // the time that a spec asks for: Limit
	Error        string    `json:"error,omitempty"`         // why there are no times
	Wrong        bool      `json:"wrong,omitempty"`         // the answer is, as Error tells

	Predicted *Predicted `json:"predicted,omitempty"` // where a sweep measures packings
}

// Measured tells whether there are times of a right answer.
func (r *Result) Measured() bool { return r.Error == "" && r.Median > 0 }

// Attained is the attainable time over the median, 0 if it is not known.
func (r *Result) Attained() float64 {
	if !r.Measured() {
		return 0
	}
	return r.AttainableUS / r.Median
}

// GFLOPS is 2·nnz·N operations over the median.
func (r *Result) GFLOPS() float64 {
	if !r.Measured() {
		return 0
	}
	return 2 * float64(r.NNZ) * float64(r.N) / r.Median / 1e3
}

// Intensity is 2·nnz·N operations over the bytes of A as stored, B and C, once each: the arithmetic intensity that a
// roofline is drawn by. It is 0 if that is not known.
func (r *Result) Intensity() float64 {
	if !r.Measured() || r.Bytes <= 0 {
		return 0
	}
	return 2 * float64(r.NNZ) * float64(r.N) / float64(r.Bytes)
}

// spread is half of the interval's length over the median.
func (r *Result) spread() float64 { return (r.High - r.Low) / 2 / r.Median }

// Environment describes the machine that a sweep ran on.
type Environment struct {
	Program   string     `json:"program"`        // version and commit
	Note      string     `json:"note,omitempty"` // what else there is to know of the measurement
	System    string     `json:"system"`
	Processor string     `json:"processor,omitempty"`
	Threads   int        `json:"threads"`
	Start     time.Time  `json:"start"`
	Seconds   float64    `json:"seconds"`
	Command   []string   `json:"command"`
	Further   [][]string `json:"further_commands,omitempty"` // of the other reports, where Merge made this of several
	Devices   []Device   `json:"devices"`
	Peers     []string   `json:"peers,omitempty"`
	Before    State      `json:"before"`
	After     State      `json:"after"`
}

// Device is one that was measured, or a group of them, which has the sums of their rates. Rates are the measured
// roofs of its roofline, 0 or absent if they are not known.
type Device struct {
	Backend string             `json:"backend"` // as in Case
	Name    string             `json:"name"`
	Driver  string             `json:"driver"`
	Copy    float64            `json:"copy_bytes_s"`    // of data beyond the caches
	Flops   float64            `json:"flops"`           // the largest of Peaks
	Facts   *DeviceFacts       `json:"facts,omitempty"` // with Sweep.Facts
	Peaks   map[string]float64 `json:"peaks,omitempty"` // operations a second by the operands' type
}

// State has the figures of a machine that change. Those that it does not tell are left out.
type State struct {
	Load []float64 `json:"load,omitempty"`    // averages of 1, 5 and 15 minutes
	MHz  float64   `json:"cpu_mhz,omitempty"` // mean over the cores
	GPUs []string  `json:"gpus,omitempty"`    // what nvidia-smi says of clocks, temperature and use
}

// Write writes the report as JSON.
func (r *Report) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// How long a report may be that is read, in bytes, and each part of it: a result, or what it ran on. JSON takes many
// times its length in memory, so that parts are decoded and held against what they must be one by one.
const (
	mostOfReport = 1 << 26
	mostOfPart   = 1 << 20
)

// ReadReport reads what Write has written. name is for errors.
func ReadReport(in io.Reader, name string) (*Report, error) {
	limited := &io.LimitedReader{R: in, N: mostOfReport}
	r := &reportReader{Decoder: json.NewDecoder(limited), seen: map[Case]bool{}}
	if err := r.read(); errors.As(err, new(implausible)) {
		return nil, fmt.Errorf("%s %w", name, err)
	} else if err != nil {
		if limited.N == 0 {
			err = errors.New("it is too long")
		}
		return nil, fmt.Errorf("%s is no report of spmmrun bench: %w", name, err)
	}
	if r.Version != ReportVersion {
		return nil, fmt.Errorf(
			"%s is no report of spmmrun bench, or of another version: version %d, want %d", name, r.Version,
			ReportVersion,
		)
	}
	return &r.Report, nil
}

// reportReader reads a report part by part.
type reportReader struct {
	*json.Decoder
	Report
	seen map[Case]bool
}

// implausible is an error in what a report says, not in its form.
type implausible struct{ error }

func (r *reportReader) read() error {
	if err := r.delim('{'); err != nil {
		return err
	}
	for r.More() {
		name, err := r.Token()
		if err != nil {
			return err
		}
		switch name {
		case "version":
			err = r.Decode(&r.Version)
		case "environment":
			if err = r.part(&r.Environment); err == nil {
				err = r.Environment.believable()
			}
		case "kept":
			err = r.kept()
		case "results":
			err = r.results()
		default:
			err = r.part(new(json.RawMessage))
		}
		if err != nil {
			return err
		}
	}
	return r.delim('}')
}

func (r *reportReader) delim(want json.Delim) error {
	t, err := r.Token()
	if err == nil && t != want {
		err = fmt.Errorf("%v where %v is expected", t, want)
	}
	return err
}

// part decodes a value that is not long.
func (r *reportReader) part(to any) error {
	var text json.RawMessage
	if err := r.Decode(&text); err != nil {
		return err
	}
	if len(text) > mostOfPart {
		return fmt.Errorf("a part of it has %d bytes, at most %d are read", len(text), mostOfPart)
	}
	return json.Unmarshal(text, to)
}

func (r *reportReader) results() error {
	return r.list(func() error {
		var x Result
		if err := r.part(&x); err != nil {
			return err
		}
		switch err := x.believable(); {
		case r.seen[x.Case]:
			return implausible{fmt.Errorf("has two results of %v", x.Case)}
		case err != nil:
			return implausible{fmt.Errorf("says of %v: %w", x.Case, err)}
		}
		r.seen[x.Case] = true
		r.Results = append(r.Results, x)
		return nil
	})
}

func (r *reportReader) kept() error {
	return r.list(func() error {
		var x Versus
		if err := r.part(&x); err != nil {
			return err
		}
		if x.N < 1 || x.Products < 1 || !(x.Mean > 0 && x.Mean < 1e9) || !(x.Least >= 0 && x.Least < 1e9) {
			return implausible{fmt.Errorf("says of %s, N=%d: %v times as fast as peers on %d products, at the least %v",
				printable.String(x.By), x.N, x.Mean, x.Products, x.Least)}
		}
		r.Kept = append(r.Kept, x)
		return nil
	})
}

// list reads each element of an array. Null is an empty one.
func (r *reportReader) list(element func() error) error {
	t, err := r.Token()
	if err != nil || t == nil {
		return err
	}
	if t != json.Delim('[') {
		return fmt.Errorf("%v where [ is expected", t)
	}
	for r.More() {
		if err := element(); err != nil {
			return err
		}
	}
	return r.delim(']')
}

// believable refuses rates that no device has.
func (e *Environment) believable() error {
	for _, d := range e.Devices {
		for _, rate := range append(slices.Collect(maps.Values(d.Peaks)), d.Copy, d.Flops) {
			if rate != 0 && !(rate >= 1 && rate <= 1e30) {
				name := printable.String(d.Backend)
				return implausible{fmt.Errorf("says that device %s has a rate of %v a second", name, rate)}
			}
		}
	}
	return nil
}

// plausible tells whether a time in microseconds can be one: pictures have logarithmic axes.
func plausible(us float64) bool { return us >= 1e-6 && us <= 1e15 }

// believable refuses figures that no sweep writes.
func (r *Result) believable() error {
	if r.Error != "" {
		return nil
	}
	switch {
	case !plausible(r.Median):
		return fmt.Errorf("its time is %v µs", r.Median)
	case r.N < 1 || r.Rows < 0 || r.Cols < 0 || r.NNZ < 0 || r.Bytes < 0:
		return fmt.Errorf("%d×%d with %d entries and %d columns of B in %d bytes", r.Rows, r.Cols, r.NNZ, r.N, r.Bytes)
	case r.AttainableUS != 0 && !plausible(r.AttainableUS):
		return fmt.Errorf("%v µs are attainable", r.AttainableUS)
	case r.AskedUS != 0 && !plausible(r.AskedUS):
		return fmt.Errorf("%v µs are asked for", r.AskedUS)
	}
	return nil
}

// Merge puts the results of several reports together, under the environment of the first with the commands, devices
// and peers of all.
func Merge(reports ...*Report) (*Report, error) {
	out := *reports[0]
	e := &out.Environment
	out.Kept, out.Results, e.Devices, e.Peers, e.Seconds = nil, nil, nil, nil, 0
	seen := map[Case]bool{}
	for i, r := range reports {
		if i > 0 {
			e.Further = append(append(slices.Clip(e.Further), r.Environment.Command), r.Environment.Further...)
		}
		for i := range r.Results {
			c := r.Results[i].Case
			if seen[c] {
				return nil, fmt.Errorf("two of the reports have a result of %v", c)
			}
			seen[c] = true
		}
		out.Kept = append(out.Kept, r.Kept...)
		out.Results = append(out.Results, r.Results...)
		for _, d := range r.Environment.Devices {
			same := func(x Device) bool { return x.Backend == d.Backend && x.Name == d.Name }
			if !slices.ContainsFunc(e.Devices, same) {
				e.Devices = append(e.Devices, d)
			}
		}
		for _, p := range r.Environment.Peers {
			if !slices.Contains(e.Peers, p) {
				e.Peers = append(e.Peers, p)
			}
		}
		e.Seconds += r.Environment.Seconds
		e.After = r.Environment.After
	}
	return &out, nil
}
