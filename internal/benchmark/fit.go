// Fitting a device model to measurements: for each variant the cost that predicts them best.

package benchmark

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/cache"
	"github.com/spmmrun/spmm/internal/choose"
	"github.com/spmmrun/spmm/internal/model"
	"github.com/spmmrun/spmm/internal/printable"
	"github.com/spmmrun/spmm/shaders"
	"github.com/spmmrun/spmm/shaders/spec"
)

// leastMeasurements of a variant there must be to fit its cost.
const leastMeasurements = 4

// measurement is how long a kernel took, and what predictions of it are made from.
type measurement struct {
	*Result
	rates *model.Rates // of the device at that time
}

// fittable returns the one device of a report, and the measurements that costs can be fitted to.
func fittable(r *Report) (*Device, []*measurement, error) {
	var dev *Device
	for i := range r.Environment.Devices {
		d := &r.Environment.Devices[i]
		switch {
		case d.Facts == nil || d.Facts.Rates == nil:
			return nil, nil, fmt.Errorf(
				"device %s has no facts: measure with --spec bench/specs/choice.json", printable.String(d.Backend),
			)
		case dev != nil:
			return nil, nil, fmt.Errorf(
				"devices %s and %s: a report of one device is wanted", printable.String(d.Backend),
				printable.String(dev.Backend),
			)
		}
		if err := d.Facts.Rates.Validate(); err != nil {
			return nil, nil, fmt.Errorf("device %s: %w", printable.String(d.Backend), err)
		}
		dev = d
	}
	if dev == nil {
		return nil, nil, errors.New("it names no device")
	}
	var ms []*measurement
	for i := range r.Results {
		x := &r.Results[i]
		if x.Measured() && x.Predicted != nil && x.Predicted.Product != nil && x.Predicted.Stats != nil {
			ms = append(ms, &measurement{x, dev.Facts.Rates})
		}
	}
	if len(ms) == 0 {
		return nil, nil, errors.New("no result says what predictions are made from: measure with --spec bench/specs/choice.json")
	}
	return dev, ms, nil
}

// Fit makes the model of the device that a report is of, with the costs of the variants that there are enough
// measurements of; the model of the device's kind has the others. On notes it writes how far off predictions are.
// Install puts a model where the device finds it.
func Fit(r *Report, notes io.Writer) (*model.DeviceModel, error) {
	dev, ms, err := fittable(r)
	if err != nil {
		return nil, err
	}
	code, err := codeOf(dev.Facts.Code)
	if err != nil {
		return nil, err
	}
	m := &model.DeviceModel{
		Version: model.Version, Code: dev.Facts.Code,
		Measured: model.Source{
			Device: dev.Name, Driver: dev.Driver, Date: time.Now().UTC().Format(time.DateOnly),
			Command: "spmmrun bench --spec bench/specs/choice.json --save FILE; spmmrun bench fit FILE",
			Note:    fmt.Sprintf("%d measurements", len(ms)),
		},
	}
	if code != backend.CodeGo { // a core's latencies depend most on what else it does
		m.Measured.LaunchUS, m.Measured.LatencyUS = dev.Facts.Rates.LaunchUS, dev.Facts.Rates.LatencyUS
	}
	kind := model.For(code, dev.Name)
	of := map[string][]*measurement{}
	for _, x := range ms {
		name := x.Chosen + "/" + x.Variant
		if v := variant(x, code); v != nil {
			name = x.Chosen + "/" + v.Name
		}
		of[name] = append(of[name], x)
	}
	fmt.Fprintln(
		notes, "variant, measurements, and by what factor predictions are off (root mean square): before, after",
	)
	for _, name := range slices.Sorted(maps.Keys(of)) {
		v := variant(of[name][0], code)
		if v == nil || len(of[name]) < leastMeasurements {
			fmt.Fprintf(notes, "%s\t%d\tleft out\n", name, len(of[name]))
			continue
		}
		f := &fitter{v: v, ms: of[name], kind: kind, units: dev.Facts.Units}
		f.start, _ = kind.Cost(of[name][0].Chosen, v.Name)
		c := f.best()
		c.Variants = []string{name}
		m.Costs = append(m.Costs, c)
		fmt.Fprintf(
			notes, "%s\t%d\t%.2f\t%.2f\n", name, len(of[name]), math.Exp(math.Sqrt(f.off(f.start))),
			math.Exp(math.Sqrt(f.off(c))),
		)
	}
	if len(m.Costs) == 0 {
		return nil, fmt.Errorf("no variant was measured %d times", leastMeasurements)
	}
	return m, nil
}

// Install writes a device model into the user's cache folder, where it takes precedence, and returns the file's name.
func Install(m *model.DeviceModel, r *Report) (string, error) {
	d, _, err := fittable(r)
	if err != nil {
		return "", err
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return "", err
	}
	driver, _, _ := strings.Cut(d.Backend, ":")
	name := choose.ModelFile(backend.Info{Backend: driver, Index: d.Facts.Index, Name: d.Name, Driver: d.Driver})
	return cache.Path(name), cache.Write(name, append(text, '\n'))
}

func codeOf(name string) (backend.Code, error) {
	for _, c := range []backend.Code{backend.CodeGo, backend.CodePTX, backend.CodeSPIRV, backend.CodeWGSL} {
		if c.String() == name {
			return c, nil
		}
	}
	return 0, fmt.Errorf("devices that load %q are not known", name)
}

// variant returns the one that multiplied in a measurement, which is not always the one that the matrix was packed for;
// nil if this version has none.
func variant(m *measurement, code backend.Code) *spec.Variant {
	for _, f := range shaders.Formats() {
		i := slices.IndexFunc(f.Variants, func(v *spec.Variant) bool { return v.Name == m.Variant && v.Code == code })
		if f.Name != m.Chosen || i < 0 {
			continue
		}
		packed := f.Variants[i]
		if packed.Kernel() == m.Kernel {
			return packed
		}
		for _, v := range f.Variants {
			if v.Code == code && v.In == packed.In && v.Need.Arch == packed.Need.Arch && v.Kernel() == m.Kernel {
				return v
			}
		}
		return packed
	}
	return nil
}

// fitter fits the cost of one variant.
type fitter struct {
	v     *spec.Variant
	ms    []*measurement
	kind  *model.DeviceModel
	units int
	start model.Cost // that of its kind
}

// off is the mean square of the logarithms of predicted over measured times.
func (f *fitter) off(c model.Cost) float64 {
	sum := 0.0
	for _, m := range f.ms {
		p := model.Predictor{Product: *m.Predicted.Product, Rates: m.rates, Model: f.kind, Units: f.units}
		_, t := p.TimeAt(c, f.v, *m.Predicted.Stats, m.Predicted.Items)
		x := math.Log(micros(max(t, 1)) / m.Median)
		sum += x * x
	}
	return sum / float64(len(f.ms))
}

// leastUS is the least value of a figure that is fitted.
const leastUS = 1e-4

// best searches the cost from that of the variant's kind on. What the measurements do not tell stays as it was.
func (f *fitter) best() model.Cost {
	c := model.Cost{
		Arithmetic: f.start.Arithmetic, Columns: f.start.Columns, Fetch: f.start.Fetch,
		StartUS: max(leastUS, f.start.StartUS),
		StepUS:  f.start.StepUS, Launch: f.start.Launch, Overlap: f.start.Overlap, Busy: f.start.Busy, Cut: f.start.Cut,
	}
	if c.Arithmetic == 0 {
		c.Arithmetic = 1
	}
	figures := []*float64{&c.Arithmetic, &c.StartUS}
	switch {
	case f.v.Code == backend.CodeGo: // a step is arithmetic
		c.Columns = max(1, f.start.Columns)
	case !c.Overlap: // else no single step counts
		c.StepUS = max(leastUS, c.StepUS)
		figures = append(figures, &c.StepUS)
	}
	for _, x := range []*float64{&c.Columns, &c.Fetch, &c.Launch} {
		if *x > 0 {
			figures = append(figures, x)
		}
	}
	descend(figures, func() float64 { return f.off(c) })
	for _, x := range figures {
		*x = threeDigits(*x)
	}
	return c
}

// descend changes figures, one after the other in steps that get finer, until off is least.
func descend(figures []*float64, off func() float64) {
	const coarsest, finest, mostUS = 2.0, 1.002, 1e4
	var from []float64
	for _, x := range figures {
		from = append(from, *x)
	}
	goal := func() float64 { // what hardly matters shall not wander off
		const hold = 1e-6
		moved := 0.0
		for i, x := range figures {
			moved += math.Pow(math.Log(*x/from[i]), 2)
		}
		return off() + hold*moved
	}
	least := goal()
	for step := coarsest; step > finest; {
		better := false
		for _, x := range figures {
			was := *x
			for _, to := range []float64{was * step, was / step} {
				if *x = to; to >= leastUS && to <= mostUS {
					if g := goal(); g < least {
						least, better = g, true
						was = to
					}
				}
			}
			*x = was
		}
		if !better {
			step = math.Sqrt(step)
		}
	}
}

// threeDigits rounds a positive number.
func threeDigits(x float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 3, 64), 64)
	if err != nil {
		return x
	}
	return rounded
}
