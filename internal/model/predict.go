// Predicting the time of a multiplication, by which formats are compared.

package model

import (
	"cmp"
	"math"
	"time"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/internal/simd"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Product is a multiplication of a matrix by N columns, as far as every format has to do with it.
type Product struct {
	Rows    int   `json:"rows"`
	Cols    int   `json:"cols"`
	N       int   `json:"n"`
	Longest int64 `json:"longest"` // entries of the longest row
	Nearby  int64 `json:"nearby"`  // entries that are the first of their column among the rows nearby
}

// Predictor predicts one product on one device.
type Predictor struct {
	Product
	Rates *Rates
	Model *DeviceModel
	Units int // that work side by side: multiprocessors, cores

	Columns bool // B and C are column-major, as a row-major X and Y of Y = X·W are: see Passes
}

// Time predicts a kernel's variant whose packing has these stats and shares its work out in this many items. Data come
// from memory, and then the units are busy, all of them as long as their share takes, or one with the longest work
// item.
func (p *Predictor) Time(kernel string, v *spec.Variant, s formats.Stats, items int64) (api.Bound, time.Duration) {
	c, _ := p.Model.Cost(kernel, v.Name)
	b, t := p.TimeAt(c, v, s, items)
	if f := p.Model.Correction(kernel, v.Name).Factor(); f != 1 {
		t = max(b.Time(), time.Duration(math.Round(float64(t)*f)))
	}
	return b, t
}

// TimeAt predicts a variant of a given cost, without a correction.
func (p *Predictor) TimeAt(c Cost, v *spec.Variant, s formats.Stats, items int64) (api.Bound, time.Duration) {
	k, from := p.Model.kind()
	if n := int64(v.Together); n > 1 {
		s.Gathers, items = s.Gathers/n, (items+n-1)/n
	}
	latency := scale(p.Rates.LatencyUS, c.from.LatencyUS)
	c.StartUS, c.StepUS = c.StartUS*latency, c.StepUS*latency
	first := Fetched(s, p.Nearby)
	b := p.Rates.Bound(v, NewWork(p.Rows, p.Cols, p.N, v.In, v.Reads(s), first, v.Sums()))
	width := p.width(v)
	rows := k.First*float64(first) + k.Again*float64(s.Gathers-first)
	fetch := at(int64(rows*float64(width*v.In.Storage().Size())), p.Rates.Cache)
	if c.Fetch > 0 {
		fetch = time.Duration(math.Round(float64(fetch) * c.Fetch))
	}
	if v.HoldsB {
		fetch += at(int64(p.Units)*int64(p.Cols)*int64(width*v.In.Storage().Size()), p.Rates.Cache)
	}
	compute := float64(at(2*s.MACs*int64(width), p.Rates.arithmetic(v))) * (1 +
		c.Columns*float64(p.tiles(v))/float64(width))
	if c.Narrow > 0 && v.Code == backend.CodeGo && !simd.Wide() {
		c.Arithmetic = c.Narrow
	}
	if c.Arithmetic > 0 {
		compute /= c.Arithmetic
	}
	if idle := c.Busy * float64(p.Units) / float64(max(1, items*p.tiles(v))); idle > 1 {
		compute, fetch = compute*idle, time.Duration(math.Round(float64(fetch)*idle))
	}
	launch := k.launch(v) * scale(p.Rates.LaunchUS, from.LaunchUS) * cmp.Or(c.Launch, 1)
	heaviest := p.heaviest(c, s)
	cut := cmp.Or(s.Cut, c.Cut, heaviest+1)
	if heaviest >= cut || s.Sums > 0 { // the stats tell of work items that are cut already
		launch += launch + c.StepUS*float64(max(0, heaviest-1)/cut)
		heaviest = min(heaviest, cut)
	}
	before := micros(launch) + p.adding(v, s)
	if c.Overlap {
		return b, before + micros(c.StartUS) + max(b.Memory, fetch, time.Duration(math.Round(compute)))
	}
	starts := micros(c.StartUS * float64(items*p.tiles(v)) / float64(p.Units*k.Resident))
	share := c.alone(p.steps(v, s.Gathers/max(1, items))) + fetch + time.Duration(math.Round(compute)) + starts
	if share = max(share, c.alone(heaviest)); c.Streams {
		return b, before + max(b.Memory, share)
	}
	return b, before + b.Memory + share
}

// steps is how many rows of B a work item of that many fetches one after another: where a variant has no tile of
// columns, lanes of a GPU that have none of the columns take some of the rows.
func (p *Predictor) steps(v *spec.Variant, rows int64) int64 {
	const lanes, least = 32, 8 // of a warp; rows for each of several groups of lanes
	if v.Code == backend.CodeGo || v.Columns() > 0 {
		return rows
	}
	groups := lanes * vectorBytes / v.In.Storage().Size() / p.width(v)
	return rows / max(1, min(int64(groups), rows/least))
}

// adding is the time of writing partial sums and reading them again.
func (p *Predictor) adding(v *spec.Variant, s formats.Stats) time.Duration {
	moved := 2 * s.Sums * int64(p.N) * int64(v.Sums().Size())
	return at(moved, p.Rates.stream(moved))
}

// Least is less than Time predicts of any packing of a matrix of nnz entries for a variant, however well its rows share
// columns and however its work is shared out: two entries for each multiply-add, as in matrix units that skip zeros,
// a quarter of the rows of B that rows nearby fetch, and no waiting.
func (p *Predictor) Least(kernel string, v *spec.Variant, nnz int64) time.Duration {
	c, _ := p.Model.Cost(kernel, v.Name)
	c.StepUS, c.Busy, c.Cut = 0, 0, 0
	s := formats.Stats{StoredBytes: nnz * int64(v.In.Storage().Size()), MACs: nnz / 2, Gathers: p.Nearby / 4}
	_, t := p.TimeAt(c, v, s, 1)
	return time.Duration(float64(t) * min(1, p.Model.Correction(kernel, v.Name).Factor()))
}

// scale is how much longer something takes on the device at hand than on the one that a model was measured on; 1 where
// either is not known.
func scale(here, there float64) float64 {
	if here <= 0 || there <= 0 {
		return 1
	}
	return here / there
}

// heaviest is how many rows of B one work item fetches at most, before it is cut. The stats may be those of a
// sample without the longest row.
func (p *Predictor) heaviest(c Cost, s formats.Stats) int64 {
	if s.Longest == 0 && s.Cut == 0 && c.Cut == 0 {
		return 0
	}
	return max(s.Longest, p.Longest)
}

// alone is the time of a work item that has a unit for itself and fetches a number of rows of B.
func (c Cost) alone(rows int64) time.Duration { return micros(c.StartUS + c.StepUS*float64(rows)) }

// tiles is how many work items share C's columns.
func (p *Predictor) tiles(v *spec.Variant) int64 {
	if cols := v.Columns(); cols > 0 {
		return int64(up(p.N, cols) / cols)
	}
	return 1
}

// width is how many columns are computed: GPUs compute whole tiles even where B has fewer, or where there are no tiles
// whole vectors of 16 bytes, the CPU whole vectors of its registers.
func (p *Predictor) width(v *spec.Variant) int {
	if v.Code == backend.CodeGo {
		return up(p.N, simd.Width)
	}
	if cols := v.Columns(); cols > 0 {
		return up(p.N, cols)
	}
	return up(p.N, max(1, vectorBytes/v.In.Storage().Size()))
}

// vectorBytes is the bytes of a row of B that a lane of a GPU loads at a time.
const vectorBytes = 16

// Width is how many columns of B a variant takes the time of where there are n.
func (g Gather) Width(v *spec.Variant, n int) int {
	return up(n, max(1, cmp.Or(g.Columns, v.Columns())))
}

// up rounds n up to a multiple of m.
func up(n, m int) int { return (n + m - 1) / m * m }

func micros(x float64) time.Duration { return time.Duration(math.Round(x * float64(time.Microsecond))) }
