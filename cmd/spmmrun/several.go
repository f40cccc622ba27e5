// Several devices of this process: what the command line says of them, and what is reported.

package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/internal/choose"
	"github.com/spmmrun/spmm/internal/printable"
)

// splits are by the words that --split takes, the default first.
var splits = []string{"auto", "columns", "rows"}

var splitOf = map[string]spmm.Split{"auto": spmm.AutoSplit, "columns": spmm.ByColumns, "rows": spmm.ByRows}

// checkForSeveral refuses what one device alone can do.
func (j *job) checkForSeveral() error {
	if j.tune && isList(j.backend) {
		return errors.New("--tune is for one device: what is found is remembered for all of its kind")
	}
	return nil
}

// groupReport describes several devices in a report.
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

// streamedReport tells what copying A took in the last repeat, of one multiplication, on all devices together.
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

func newGroupReport(dev *spmm.Device, plan *spmm.Plan, t spmm.Timing) *groupReport {
	i, parts := plan.Info(), plan.Parts()
	r := &groupReport{Split: i.Split.String(), Why: i.WhySplit, Moved: t.Moved, HostUS: us(t.Host)}
	for d, one := range dev.Devices() {
		part, x := parts[d], one.Info()
		r.Devices = append(r.Devices, deviceReport{
			Device: fmt.Sprintf("%s:%d", x.Backend, x.Index), Name: x.Name, Format: part.Format, Variant: part.Variant,
			Rows: part.Rows, Panels: part.Panels, NNZ: part.NNZ, StoredBytes: part.Stats.StoredBytes,
			TimeUS: us(t.Each[d].Best()),
		})
	}
	if s := t.Streamed; s.Panels > 0 {
		r.Streamed = &streamedReport{i.Columns, s.Bytes, us(s.Copy), us(s.Compute), t.Binds()}
	}
	return r
}

// rows prints the devices in a table.
func (x *groupReport) rows(row func(name, format string, args ...any)) {
	row("split", "by %s, because %s", x.Split, x.Why)
	for _, d := range x.Devices {
		row(d.Device, "%s: %d rows, %d entries (%s, %s/%s); %s", printable.String(d.Name), d.Rows, d.NNZ,
			byteSize(d.StoredBytes), d.Format, d.Variant, choose.Micros(d.TimeUS))
		if d.Panels > 0 {
			row("", "all of these stay in the host's memory: %d panels are copied for each multiplication", d.Panels)
		}
	}
	if s := x.Streamed; s != nil {
		row("streamed", "%s in %s (%.3g GB/s), multiplied with in %s: bound by %s; up to %d columns at a time", byteSize(s.Bytes),
			choose.Micros(s.CopyUS), float64(s.Bytes)/max(s.CopyUS, 1e-3)/1e3, choose.Micros(s.ComputeUS), s.Binds, s.Columns)
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
