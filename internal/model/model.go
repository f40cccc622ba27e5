// Package model predicts how long a multiplication takes on a device: a roofline of the device's measured rates, and
// for each variant of a kernel what a work item costs beyond that.
//
// The costs are data: a JSON file for each kind of device, which says on what they were measured, when and by which
// command. `spmmrun bench fit` writes such a file from measurements. One in the user's cache folder takes precedence
// over those that are compiled in.
package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/shaders/spec"
)

// DeviceModel describes a kind of device to predictions, besides its measured rates.
type DeviceModel struct {
	Version  int      `json:"version"`
	Code     string   `json:"code"`              // that the devices load: go, ptx, spirv or wgsl
	Devices  string   `json:"devices,omitempty"` // a pattern (path.Match) of their names; "": all
	Measured Source   `json:"measured"`
	Kind     Kind     `json:"kind,omitzero"`
	Costs    []Cost   `json:"costs"`                 // those that fit a variant, the most specific first: see Cost
	Fixed    []Gather `json:"fixed_point,omitempty"` // of variants in reproducible mode, likewise
	// Kernels are the numbers of kernels' own cost functions, by FORMAT/KERNEL or FORMAT/KERNEL/TILE: see Kernel.
	Kernels map[string]json.RawMessage `json:"kernels,omitempty"`
	// Corrections are of single variants, by KERNEL/VARIANT.
	Corrections map[string]Correction `json:"corrections,omitempty"`

	base *DeviceModel // has what this one leaves out
}

// Correction compares the times of multiplications with those predicted without it.
type Correction struct {
	Ratio   float64 `json:"ratio"`   // measured over predicted time, the geometric mean
	Samples int     `json:"samples"` // multiplications of different matrices
}

// Factor multiplies predictions: as if two more multiplications had taken what was predicted, so that
// one alone changes little.
func (c Correction) Factor() float64 {
	const predicted, most = 2, 4.0
	if c.Samples <= 0 {
		return 1
	}
	n := float64(c.Samples)
	return min(most, max(1/most, math.Pow(c.Ratio, n/(n+predicted))))
}

// Learn takes a multiplication into account that took ratio times what was predicted without a correction. Those of
// long ago count less.
func (m *DeviceModel) Learn(kernel, variant string, ratio float64) {
	const enough = 100
	if !(ratio > 1/mostFactor && ratio < mostFactor) {
		return // a clock that was set, say
	}
	if m.Corrections == nil {
		m.Corrections = map[string]Correction{}
	}
	name := kernel + "/" + variant
	c := m.Corrections[name]
	if c.Samples == 0 {
		c.Ratio = 1
	}
	c.Samples = min(enough, c.Samples+1)
	c.Ratio *= math.Pow(ratio/c.Ratio, 1/float64(c.Samples))
	m.Corrections[name] = c
}

// Correction returns that of a kernel's variant, with no samples if there is none.
func (m *DeviceModel) Correction(kernel, variant string) Correction {
	for ; m != nil; m = m.base {
		if c, ok := m.Corrections[kernel+"/"+variant]; ok {
			return c
		}
	}
	return Correction{}
}

// Over returns the model with what it leaves out taken from another.
func (m *DeviceModel) Over(base *DeviceModel) *DeviceModel {
	over := *m
	over.base = base
	return &over
}

// Source says where a model's figures come from.
type Source struct {
	Device  string `json:"device"`
	Driver  string `json:"driver,omitempty"`
	Date    string `json:"date"`
	Command string `json:"command"`
	Note    string `json:"note,omitempty"`
	// LaunchUS and LatencyUS are the device's own (see Rates); 0 if they are not known. Times of the model hold on a
	// device of the same; elsewhere they are that much longer or shorter.
	LaunchUS  float64 `json:"launch_us,omitempty"`
	LatencyUS float64 `json:"latency_us,omitempty"`
}

// Kind holds what all variants have in common on a kind of device.
type Kind struct {
	LaunchUS float64 `json:"launch_us"` // a launch that does nothing, in µs
	// EarlyUS is the same of a variant whose launches overlap (spec.Variant.Overlaps); 0: LaunchUS.
	EarlyUS  float64 `json:"early_launch_us,omitempty"`
	First    float64 `json:"first_fetch"`    // time of fetching a row of B, by that which Rates.Cache allows
	Again    float64 `json:"again_fetch"`    // the same for a row that rows nearby fetch too
	Resident int     `json:"resident_items"` // work items that a unit has in hand at a time
}

// launch is the time of a variant's launch, in µs.
func (k Kind) launch(v *spec.Variant) float64 {
	if v.Overlaps && k.EarlyUS > 0 {
		return k.EarlyUS
	}
	return k.LaunchUS
}

// Cost is the time that the variants that a pattern fits take beyond the roofline. What it leaves out is that of the
// next cost in the file that fits the variant.
type Cost struct {
	Variants []string `json:"variants"` // patterns (path.Match) of KERNEL/VARIANT
	// Arithmetic is the rate of multiply-adds that the inner loop reaches, where nothing else holds it up, over the one
	// that kernel peak measures; 0: 1. It exceeds 1 where the loop does better than that kernel.
	Arithmetic float64 `json:"arithmetic_factor,omitempty"`
	// Narrow is Arithmetic on a CPU without vectors of 64 bytes; 0: the same. It goes with Arithmetic: a model that has
	// one takes neither from another.
	Narrow float64 `json:"narrow_factor,omitempty"`
	// Columns is how many columns' worth of arithmetic unpacking an entry takes, for each tile of B's columns.
	Columns float64 `json:"entry_columns,omitempty"`
	// Fetch is the part of the time of fetching rows of B that counts; 0: 1. It is less where copies of tiles bring them
	// for several blocks while others are multiplied, and more where they wait for columns that are read first.
	Fetch float64 `json:"fetch_factor,omitempty"`
	// StartUS is the time that a work item (see spec.Packed.Items), of up to COLS columns, takes besides its rows of B,
	// StepUS what each of those takes when nothing else keeps the unit busy: latencies, in µs.
	StartUS float64 `json:"start_us,omitempty"`
	StepUS  float64 `json:"step_us,omitempty"`
	// Launch is the time of a launch by that of its kind (see Kind); 0: 1.
	Launch float64 `json:"launch_factor,omitempty"`
	// Overlap says that a variant moves data while it computes, however many work items there are: the largest of memory,
	// fetches and arithmetic counts, and StartUS once.
	Overlap bool `json:"overlap,omitempty"`
	// Streams says that memory moves while work items compute: the larger of both counts.
	Streams bool `json:"memory_overlap,omitempty"`
	// Busy is how many work items, of up to COLS columns each, keep a unit busy: with fewer, arithmetic and fetches
	// take as long as if there were Busy of them. With 1, work items for some of the units take as long as work items for
	// all of them.
	Busy float64 `json:"busy_items,omitempty"`
	// Cut is how many rows of B a work item fetches at most: larger ones are cut in several, whose sums a second
	// launch adds up, which takes StepUS for each but the first. 0: none is cut, or formats.Stats.Cut says so.
	Cut int64 `json:"cut_rows,omitempty"`

	from Source // of the model that it is in
}

// Gather is the time that multiplying in fixed point takes in the variants that a pattern fits: for moving A, B and C
// once, fetching rows of B, arithmetic, and a start. What it leaves out is that of the next one in the file that
// fits.
type Gather struct {
	Variants []string `json:"variants"`
	// Memory is the time of moving A, B and C by that which the rate of copies allows; 0: 1.
	Memory float64 `json:"memory_factor,omitempty"`
	// Slower is the time of fetching rows by that which Rates.Cache allows; 0: 1.
	Slower float64 `json:"slower,omitempty"`
	// Arithmetic is the time of arithmetic by that which its rate allows; 0: 1.
	Arithmetic float64 `json:"arithmetic_factor,omitempty"`
	Start      float64 `json:"start_us,omitempty"` // of all launches
	// ItemNS is the time that a work item, such as a panel, takes for each byte of an element in fixed point, in ns.
	ItemNS float64 `json:"item_ns,omitempty"`
	// B's columns take the time of a multiple of this; 0: of the variant's COLS
	Columns int `json:"tile_columns,omitempty"`
	Bytes   int `json:"min_bytes,omitempty"` // of an element: fewer take as long as this many
}

// Version changes with what the fields mean.
const Version = 3

// embedded are the models that are compiled in, those of all devices of a kind before those of certain ones.
var embedded = sync.OnceValue(func() []*DeviceModel {
	names, err := files.ReadDir(".")
	if err != nil {
		panic(err)
	}
	var ms []*DeviceModel
	for _, n := range names {
		b, err := files.ReadFile(n.Name())
		if err != nil {
			panic(err)
		}
		m, err := Parse(b)
		if err != nil {
			panic(fmt.Sprintf("%s: %v", n.Name(), err)) // a test reads them all
		}
		ms = append(ms, m)
	}
	slices.SortStableFunc(ms, func(x, y *DeviceModel) int { return len(x.Devices) - len(y.Devices) })
	return ms
})

// For returns the compiled-in model of a device that loads some code: that of all devices of its kind, and over it the
// one of its name, if there is one.
func For(code backend.Code, device string) *DeviceModel {
	found := &DeviceModel{Version: Version, Code: code.String()}
	for _, m := range embedded() {
		switch {
		case !m.fits(code, device):
		case m.Devices == "":
			found = m
		default:
			found = m.Over(found)
		}
	}
	return found
}

// fits tells whether the model is of a device.
func (m *DeviceModel) fits(code backend.Code, device string) bool {
	return m.Code == code.String() && (m.Devices == "" || matches([]string{m.Devices}, device))
}

// Parse reads a model and refuses figures that no measurement gives.
func Parse(text []byte) (*DeviceModel, error) {
	m := new(DeviceModel)
	if err := json.Unmarshal(text, m); err != nil {
		return nil, err
	}
	return m, m.validate()
}

// Limits of what a file may say.
const (
	mostCosts  = 1000
	mostFactor = 1e4
	mostUS     = 1e6
	mostNS     = 1e9
)

func (m *DeviceModel) validate() error {
	if m.Version != Version {
		return fmt.Errorf("a device model of version %d, want %d", m.Version, Version)
	}
	if len(m.Costs)+len(m.Fixed) > mostCosts {
		return fmt.Errorf("a device model of %d costs, want at most %d", len(m.Costs)+len(m.Fixed), mostCosts)
	}
	if len(m.Corrections) > mostCosts {
		return fmt.Errorf("a device model of %d corrections, want at most %d", len(m.Corrections), mostCosts)
	}
	k := m.Kind
	err := errors.Join(within("launch_us", m.Measured.LaunchUS, mostUS),
		within("latency_us", m.Measured.LatencyUS, mostUS),
		within("launch_us", k.LaunchUS, mostUS), within("early_launch_us", k.EarlyUS, mostUS),
		within("first_fetch", k.First, mostFactor), within("again_fetch", k.Again, mostFactor))
	if k.Resident < 0 || k.Resident > mostFactor || k.Resident == 0 && k != (Kind{}) {
		err = errors.Join(err, fmt.Errorf("resident_items %d: want 1 to %v", k.Resident, mostFactor))
	}
	for name, c := range m.Corrections {
		if !(c.Ratio > 1/mostFactor && c.Ratio < mostFactor && c.Samples > 0) {
			err = errors.Join(err, fmt.Errorf("correction of %.40q by %v in %d samples", name, c.Ratio, c.Samples))
		}
	}
	for _, c := range m.Costs {
		err = errors.Join(err, patterns(c.Variants),
			within("arithmetic_factor", c.Arithmetic, mostFactor), within("entry_columns", c.Columns, mostFactor),
			within("narrow_factor", c.Narrow, mostFactor), within("fetch_factor", c.Fetch, mostFactor),
			within("start_us", c.StartUS, mostUS), within("step_us", c.StepUS, mostUS), within("busy_items", c.Busy, mostFactor),
			within("launch_factor", c.Launch, mostFactor), within("cut_rows", float64(c.Cut), mostFactor))
	}
	if len(m.Kernels) > mostCosts {
		err = errors.Join(err, fmt.Errorf("a device model of %d kernels, want at most %d", len(m.Kernels), mostCosts))
	}
	for name, text := range m.Kernels {
		err = errors.Join(err, kernelNumbers(name, text))
	}
	for _, g := range m.Fixed {
		err = errors.Join(err, patterns(g.Variants),
			within("slower", g.Slower, mostFactor), within("memory_factor", g.Memory, mostFactor),
			within("tile_columns", float64(g.Columns), mostUS),
			within("min_bytes", float64(g.Bytes), mostFactor), within("arithmetic_factor", g.Arithmetic, mostFactor),
			within("start_us", g.Start, mostUS), within("item_ns", g.ItemNS, mostNS))
	}
	return err
}

// within refuses what is not from 0 to most.
func within(name string, x, most float64) error {
	if !(x >= 0 && x <= most) {
		return fmt.Errorf("%s %v: want 0 to %v", name, x, most)
	}
	return nil
}

// patterns refuses an empty list and patterns that path.Match does not know.
func patterns(ps []string) error {
	if len(ps) == 0 {
		return errors.New("a cost of no variants")
	}
	for _, p := range ps {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("pattern %q: %w", p, err)
		}
	}
	return nil
}

// matches tells whether any of the patterns fits a name.
func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { ok, _ := path.Match(p, name); return ok })
}

// Cost returns what a kernel's variant takes; of one that no pattern fits nothing is known, and the roofline alone
// predicts it.
func (m *DeviceModel) Cost(kernel, variant string) (c Cost, known bool) {
	for ; m != nil && !known; m = m.base {
		for _, x := range m.Costs {
			if matches(x.Variants, kernel+"/"+variant) {
				c, known = c.or(x), true
			}
		}
		c.from = m.Measured
	}
	return c, known
}

// or returns the cost with what it leaves out taken from another.
func (c Cost) or(x Cost) Cost {
	if c.Arithmetic == 0 {
		c.Arithmetic, c.Narrow = x.Arithmetic, cmp.Or(c.Narrow, x.Narrow)
	}
	c.Columns = cmp.Or(c.Columns, x.Columns)
	c.Fetch, c.Launch = cmp.Or(c.Fetch, x.Fetch), cmp.Or(c.Launch, x.Launch)
	c.StartUS, c.StepUS = cmp.Or(c.StartUS, x.StartUS), cmp.Or(c.StepUS, x.StepUS)
	c.Busy, c.Cut, c.Overlap = cmp.Or(c.Busy, x.Busy), cmp.Or(c.Cut, x.Cut), c.Overlap || x.Overlap
	c.Streams = c.Streams || x.Streams
	return c
}

// LaunchTime returns the time of a launch that does nothing, behind another.
func (m *DeviceModel) LaunchTime() time.Duration {
	k, _ := m.kind()
	return time.Duration(k.LaunchUS * float64(time.Microsecond))
}

// kind returns what all variants have in common, and where it was measured.
func (m *DeviceModel) kind() (Kind, Source) {
	for ; m != nil; m = m.base {
		if m.Kind != (Kind{}) {
			return m.Kind, m.Measured
		}
	}
	return Kind{First: 1, Again: 1, Resident: 1}, Source{}
}

// Gather returns what multiplying in fixed point takes with a kernel's variant.
func (m *DeviceModel) Gather(kernel, variant string) (g Gather, known bool) {
	for ; m != nil && !known; m = m.base {
		for _, x := range m.Fixed {
			if matches(x.Variants, kernel+"/"+variant) {
				g, known = g.or(x), true
			}
		}
	}
	g.Slower = cmp.Or(g.Slower, 1)
	return g, known
}

// or returns the cost with what it leaves out taken from another.
func (g Gather) or(x Gather) Gather {
	g.Memory, g.Slower = cmp.Or(g.Memory, x.Memory), cmp.Or(g.Slower, x.Slower)
	g.Arithmetic = cmp.Or(g.Arithmetic, x.Arithmetic)
	g.Start, g.ItemNS = cmp.Or(g.Start, x.Start), cmp.Or(g.ItemNS, x.ItemNS)
	g.Columns, g.Bytes = cmp.Or(g.Columns, x.Columns), cmp.Or(g.Bytes, x.Bytes)
	return g
}
