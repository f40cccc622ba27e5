// The file of -data: lines of JSON, of a device and of what was then measured on it.

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/model"
)

// dataLine is one line: either of the two.
type dataLine struct {
	Device       *measuredDevice `json:"device,omitempty"`
	*Measurement `json:",omitempty"`
}

// measuredDevice is a device with what predictions know of it.
type measuredDevice struct {
	backend.Info
	Code  string       `json:"code"`
	Units int          `json:"units"`
	Rates *model.Rates `json:"rates"`
}

func newMeasuredDevice(dev *spmm.Device, r spmm.Rates) *measuredDevice {
	i := dev.Info()
	m := &model.Rates{
		Version: model.RatesVersion, Device: i.Name, Driver: i.Driver, At: r.At, Gather: r.Cache, FMA: r.FMA, FMA64: r.FMA64, Matrix: r.Matrix,
		LaunchUS: micros(r.Launch), LatencyUS: micros(r.Latency),
	}
	for _, c := range r.Copy {
		m.Stream = append(m.Stream, model.Bandwidth(c))
	}
	return &measuredDevice{Info: i, Code: dev.Caps().Code.String(), Units: max(1, dev.Caps().Units), Rates: m}
}

// Measurement is how long a packing of a matrix took on the device of the line before.
type Measurement struct {
	Matrix      string  `json:"matrix"`
	Backend     string  `json:"backend"`
	Precision   string  `json:"precision"`
	N           int     `json:"n"`
	Format      string  `json:"format"`
	Variant     string  `json:"variant"`
	US          float64 `json:"us"`
	PredictedUS float64 `json:"predicted_us"`
	Auto        bool    `json:"auto"`
	MemoryUS    float64 `json:"memory_us"`
	GatherUS    float64 `json:"gather_us"`
	ComputeUS   float64 `json:"compute_us"`
	// What predictions are made from, with -predict.
	Product *model.Product `json:"product,omitempty"`
	Stats   *formats.Stats `json:"stats,omitempty"`
	Items   int64          `json:"items,omitempty"`

	rates *model.Rates // of the device at that time
}

// readData returns the device that the measurements of a file are of, and those that predictions can be made for.
func readData(name string) (*measuredDevice, []*Measurement, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	var dev *measuredDevice
	var ms []*Measurement
	left := 0
	lines := json.NewDecoder(bufio.NewReader(f))
	for n := 1; ; n++ {
		var l dataLine
		if err := lines.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, nil, fmt.Errorf("%s, line %d: %w", name, n, err)
		}
		m := l.Measurement
		switch {
		case l.Device != nil:
			if err := check(l.Device, dev); err != nil {
				return nil, nil, fmt.Errorf("%s, line %d: %w", name, n, err)
			}
			dev = l.Device
		case m == nil || dev == nil:
			return nil, nil, fmt.Errorf("%s, line %d: no measurement, or of no device: not written by this version's -data", name, n)
		case m.Product == nil || m.Stats == nil:
			left++
		case !(m.US > 0):
			return nil, nil, fmt.Errorf("%s, line %d: a time of %v µs", name, n, m.US)
		default:
			m.rates = dev.Rates
			ms = append(ms, m)
		}
	}
	if len(ms) == 0 {
		return nil, nil, fmt.Errorf("%s: no line says what predictions are made from (%d lines left out): measure with -predict", name, left)
	}
	return dev, ms, nil
}

// check refuses a device without rates, and another than before.
func check(d, before *measuredDevice) error {
	if d.Rates == nil {
		return errors.New("a device without rates")
	}
	if err := d.Rates.Validate(); err != nil {
		return err
	}
	if before != nil && (before.Backend != d.Backend || before.Name != d.Name || before.Driver != d.Driver || before.Code != d.Code) {
		return fmt.Errorf("%v after %v: a file of one device is wanted", d.Info, before.Info)
	}
	return nil
}
