// The main job on several devices of this process.

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/conformance/oracle"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/printable"
)

// splits are by the words that --split takes, the default first.
var splits = []string{"auto", "columns", "rows"}

var splitOf = map[string]spmm.Split{"auto": spmm.AutoSplit, "columns": spmm.ByColumns, "rows": spmm.ByRows}

// grouped tells whether the job is for a group of devices.
func (j *job) grouped() bool { return isList(j.backend) || j.split != splits[0] || j.memory != 0 }

// checkForGroup refuses what one device alone can do.
func (j *job) checkForGroup() error {
	if j.tune && isList(j.backend) {
		return errors.New("--tune is for one device: what is found is remembered for all of its kind")
	}
	return nil
}

// multiplyGroup is multiply on a group.
func multiplyGroup[T formats.Value, S oracle.Number](ctx context.Context, j *job, g *spmm.Group, prec dtype.Type,
	a formats.Encoded, values *formats.Quantised, qr *quantisedReport, p *progress) (*result, error) {
	first := g.Devices()[0].Info()
	q, err := newOperands[T, S](ctx, j, first, a, values, p)
	if err != nil {
		return nil, err
	}
	m, o, err := preparing(j, prec, a, q, p)
	if err != nil {
		return nil, err
	}
	plan, err := g.Prepare(ctx, m, spmm.GroupOptions{Options: o, Split: splitOf[j.split], Memory: int64(j.memory)})
	if err != nil {
		return nil, err
	}
	defer plan.Close()
	c := formats.NewDense[S](q.rows, q.b.Cols)
	r := newResult(c)
	measure := measureGroup[T, S]
	if n := plan.Info().Columns; n > 0 && n < q.b.Cols {
		measure = measureBlocks[T, S]
	}
	ts, last, err := measure(ctx, j, plan, q, c, p)
	if err != nil {
		return nil, err
	}
	p.step("measuring the devices", -1)
	bound, err := plan.Attainable(ctx, q.b.Cols, formats.TypeOf[S]())
	if err != nil {
		return nil, err
	}
	info := plan.Info()
	bits, _ := plan.Reproduced()
	r.report = newReport(j, q.b.Cols, q.epilogue, first, info.PlanInfo, ts, bound)
	r.report.Group = newGroupReport(g, info, last)
	return r, conclude(ctx, j, r, multiplied{info.PlanInfo, bits}, q, c, qr, p)
}

// measureGroup is measure on a group.
func measureGroup[T formats.Value, S oracle.Number](ctx context.Context, j *job, plan *spmm.GroupPlan,
	q *operands[T, S], c *formats.Dense[S], p *progress) (timings, spmm.GroupTiming, error) {
	var last spmm.GroupTiming
	p.step("copying to the devices", -1)
	b, y, err := spmm.GroupTensorsFor[T, S](plan, q.b.Cols)
	if err != nil {
		return timings{}, last, err
	}
	defer b.Close()
	defer y.Close()
	if err := b.Upload(ctx, q.b); err != nil {
		return timings{}, last, err
	}
	e, closeBias, err := onGroup(ctx, plan, q.epilogue)
	defer closeBias()
	if err != nil {
		return timings{}, last, err
	}
	begin := func() error {
		if q.c0 == nil {
			return nil
		}
		return y.Upload(ctx, q.c0)
	}
	if err := begin(); err != nil {
		return timings{}, last, err
	}
	ts, err := timeRuns(j, p, func(times int) (spmm.Timing, error) {
		t, err := plan.Repeat(ctx, times, j.alpha, b, j.beta, y, e)
		for d := range t.Each {
			t.Each[d].Device /= time.Duration(times)
			t.Each[d].Host /= time.Duration(times)
		}
		t.Streamed.Bytes /= int64(times)
		t.Streamed.Copy /= time.Duration(times)
		t.Streamed.Compute /= time.Duration(times)
		last = t
		last.Host /= time.Duration(times)
		return t.Timing, err
	})
	if err != nil {
		return ts, last, err
	}
	if q.c0 != nil { // C has taken part in every run so far: once more from the start
		if err := begin(); err != nil {
			return ts, last, err
		}
		if _, err := plan.Run(ctx, j.alpha, b, j.beta, y, e); err != nil {
			return ts, last, err
		}
	}
	return ts, last, y.Download(ctx, c)
}

// measureBlocks is measureGroup where there is memory for some columns at a time: B and C are in the host's memory, and
// the times include what it takes to bring them to the devices and back.
func measureBlocks[T formats.Value, S oracle.Number](ctx context.Context, j *job, plan *spmm.GroupPlan,
	q *operands[T, S], c *formats.Dense[S], p *progress) (timings, spmm.GroupTiming, error) {
	var last spmm.GroupTiming
	e, closeBias, err := onGroup(ctx, plan, q.epilogue)
	defer closeBias()
	if err != nil {
		return timings{}, last, err
	}
	ts, err := timeRuns(j, p, func(times int) (spmm.Timing, error) {
		start := time.Now()
		for range times {
			if q.c0 != nil {
				copy(c.Data, q.c0.Data)
			}
			if last, err = spmm.MultiplyGroup(ctx, plan, j.alpha, q.b, j.beta, c, e); err != nil {
				return spmm.Timing{}, err
			}
		}
		return spmm.Timing{Host: time.Since(start)}, nil
	})
	return ts, last, err
}

// groupReport is the report on several devices.
type groupReport struct {
	Split string `json:"split"`
	Why   string `json:"why"`
	// between devices, in a multiplication of data that lie where they are needed
	Moved   int64          `json:"moved_bytes"`
	HostUS  float64        `json:"host_us"` // the last repeat by the host's clock, over its multiplications
	Devices []deviceReport `json:"devices"`
	// Streamed is there where A stays in the host's memory.
	Streamed *streamedReport `json:"streamed,omitempty"`
}

// streamedReport is the cost of copying A in the last repeat, for one multiplication, on all devices together.
type streamedReport struct {
	Columns   int     `json:"columns"` // that are multiplied at a time, at most
	Bytes     int64   `json:"bytes"`   // copied to the devices
	CopyUS    float64 `json:"copy_us"`
	ComputeUS float64 `json:"compute_us"`
	Binds     string  `json:"binds"` // "link" or "compute"
}

// deviceReport is one device; its time is of the last repeat, of one multiplication.
type deviceReport struct {
	Device      string  `json:"device"`
	Name        string  `json:"name"`
	Format      string  `json:"format"`
	Variant     string  `json:"variant"`
	Rows        int     `json:"rows"`
	Panels      int     `json:"panels,omitempty"` // in which A is copied to the device for each multiplication
	NNZ         int64   `json:"nnz"`
	StoredBytes int64   `json:"stored_bytes"`
	TimeUS      float64 `json:"time_us"`
}

func newGroupReport(g *spmm.Group, i spmm.GroupInfo, t spmm.GroupTiming) *groupReport {
	r := &groupReport{Split: i.Split.String(), Why: i.WhySplit, Moved: t.Moved, HostUS: us(t.Host)}
	for d, dev := range g.Devices() {
		part, x := i.Parts[d], dev.Info()
		r.Devices = append(r.Devices, deviceReport{
			Device: fmt.Sprintf("%s:%d", x.Backend, x.Index), Name: x.Name, Format: part.Format, Variant: part.Variant,
			Rows: part.Rows, Panels: part.Panels, NNZ: part.NNZ, StoredBytes: part.Stats.StoredBytes,
			TimeUS: us(t.Each[d].Best()),
		})
	}
	if s := t.Streamed; s.Panels > 0 {
		r.Streamed = &streamedReport{i.Columns, s.Bytes, us(s.Copy), us(s.Compute), s.Binds()}
	}
	return r
}

// rows prints the devices in a table.
func (x *groupReport) rows(row func(name, format string, args ...any)) {
	row("split", "by %s, because %s", x.Split, x.Why)
	for _, d := range x.Devices {
		row(d.Device, "%s: %d rows, %d entries (%s, %s/%s); %s", printable.String(d.Name), d.Rows, d.NNZ,
			byteSize(d.StoredBytes), d.Format, d.Variant, micros(d.TimeUS))
		if d.Panels > 0 {
			row("", "all stay in the host's memory: %d panels are copied for each multiplication", d.Panels)
		}
	}
	if s := x.Streamed; s != nil {
		row("streamed", "%s in %s (%.3g GB/s), multiplied with in %s: bound by %s; up to %d columns at a time", byteSize(s.Bytes),
			micros(s.CopyUS), float64(s.Bytes)/max(s.CopyUS, 1e-3)/1e3, micros(s.ComputeUS), s.Binds, s.Columns)
	}
}

// isList tells whether a name of devices is that of several, or may be.
func isList(name string) bool { return strings.Contains(name, ",") || strings.HasSuffix(name, ":all") }

// deviceNames is a flag that takes what deviceName takes, or several of these.
type deviceNames struct{ name *string }

func (d deviceNames) String() string { return *d.name }
func (d deviceNames) Type() string   { return deviceName(d).Type() + ",…" }
func (d deviceNames) Set(s string) error {
	last := ""
	for i, part := range strings.Split(s, ",") {
		name := part
		if _, err := strconv.ParseUint(part, 10, 31); err == nil && i > 0 {
			name = last + ":" + part
		}
		kind, index, _ := strings.Cut(name, ":")
		last = kind
		if isList(s) && kind == "auto" {
			return errors.New("auto takes no index and is no part of a list: name the backends, as in cuda:all or cuda:0,1")
		}
		if index == "all" {
			name = kind
		}
		var one string
		if err := (deviceName{&one}).Set(name); err != nil {
			return err
		}
	}
	*d.name = s
	return nil
}

// size is a flag that takes a number of bytes.
type size int64

func (n *size) String() string {
	if *n == 0 {
		return ""
	}
	return strconv.FormatInt(int64(*n), 10)
}

func (n *size) Type() string { return "BYTES" }

func (n *size) Set(s string) error {
	shift := 0
	digits := strings.TrimRight(s, "kKMGT")
	if unit := s[len(digits):]; unit != "" {
		shift = 10 * (1 + strings.Index("KMGT", strings.ToUpper(unit)))
	}
	x, err := strconv.ParseFloat(digits, 64)
	x *= float64(int64(1) << shift)
	if len(s)-len(digits) > 1 || err != nil || !(x >= 1 && x < math.MaxInt64/2) {
		return errors.New("want a number of bytes, as in 500M or 4G (of 1024³)")
	}
	*n = size(x)
	return nil
}
