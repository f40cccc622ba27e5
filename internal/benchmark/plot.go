// The picture of a report: times, how far from attainable, the roofline, and a performance profile.

package benchmark

import (
	"cmp"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/spmmrun/spmm/internal/chart"
)

// curve has the results of an entrant: points in a plot, under one name and in one colour.
type curve struct {
	name    string
	results []*Result
}

// curves has the results that have times, by who computes and the precision.
func curves(r *Report) []curve {
	var cs []curve
	for i := range r.Results {
		x := &r.Results[i]
		if !x.Measured() {
			continue
		}
		name := x.By() + " " + x.Precision
		at := slices.IndexFunc(cs, func(c curve) bool { return c.name == name })
		if at < 0 {
			at, cs = len(cs), append(cs, curve{name: name})
		}
		cs[at].results = append(cs[at].results, x)
	}
	return cs
}

// computedIn has the precisions that were computed in.
func computedIn(cs []curve) []string {
	var all []string
	for _, c := range cs {
		if p := c.results[0].Precision; !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
}

// xAxis has the columns of B if there are several, else the density of A.
type xAxis struct {
	label   string
	of      func(*Result) float64
	columns []float64 // ascending; nil: density
}

func newXAxis(cs []curve) xAxis {
	columns := map[float64]bool{}
	for _, c := range cs {
		for _, x := range c.results {
			columns[float64(x.N)] = true
		}
	}
	if len(columns) > 1 {
		of := func(x *Result) float64 { return float64(x.N) }
		return xAxis{"columns of B (N), geometric mean over matrices", of, slices.Sorted(maps.Keys(columns))}
	}
	of := func(x *Result) float64 { return float64(x.NNZ) / float64(x.Rows) / float64(x.Cols) }
	return xAxis{"density of A", of, nil}
}

// means has the geometric means of y over the results of equal x, where y is known, in ascending order.
func means(c curve, x xAxis, y func(*Result) float64) []chart.Point {
	at := map[float64][]float64{}
	for _, r := range c.results {
		if px, py := x.of(r), y(r); px > 0 && py > 0 && !math.IsInf(px, 0) {
			at[px] = append(at[px], py)
		}
	}
	var points []chart.Point
	for px, ys := range at {
		points = append(points, chart.Point{X: px, Y: GeometricMean(ys)})
	}
	slices.SortFunc(points, func(a, b chart.Point) int { return cmp.Compare(a.X, b.X) })
	return points
}

// profile has the share of its products that an entrant does within a multiple of the best's time, a staircase
// from 1 to most (Dolan and Moré, Benchmarking optimization software with performance profiles, 2002).
func profile(over []float64, most float64) []chart.Point {
	over = slices.Sorted(slices.Values(over))
	points := []chart.Point{{X: 1, Y: 0}}
	share := 0.0
	for i, x := range over {
		points = append(points, chart.Point{X: x, Y: share})
		share = float64(i+1) / float64(len(over))
		points = append(points, chart.Point{X: x, Y: share})
	}
	return append(points, chart.Point{X: most, Y: share})
}

// Draw draws the report as SVG.
func (r *Report) Draw(w io.Writer) error {
	cs := curves(r)
	x := newXAxis(cs)
	over := r.OverBest()
	most := 1.1
	for _, o := range over {
		most = max(most, 1.05*o)
	}
	by := chart.Axis{Label: x.label, Log: true, Ticks: x.columns}
	times := &chart.Chart{Title: "time", X: by, Y: chart.Axis{Label: "µs", Log: true}}
	attained := &chart.Chart{Title: "of attainable", X: by, Y: chart.Axis{Label: "%", Max: 100}}
	roof := &chart.Chart{
		Title: "roofline", X: chart.Axis{Label: "operations a byte", Log: true},
		Y: chart.Axis{Label: "GFLOP/s", Log: true},
	}
	shares := &chart.Chart{
		Title: "performance profile", Y: chart.Axis{Label: "share of products", Max: 1},
		X: chart.Axis{Label: "time over the best of a product", Log: true, Ticks: ratios(most)},
	}
	var names []chart.Name
	least := math.Inf(1) // of operations a byte
	for i, c := range cs {
		var mine []float64
		var reached []chart.Point
		for _, x := range c.results {
			mine = append(mine, over[x.Case])
			if o := x.Intensity(); o > 0 {
				reached = append(reached, chart.Point{X: o, Y: x.GFLOPS()})
				least = min(least, o)
			}
		}
		s := styleOf(i)
		names = append(names, chart.Name{Text: c.name, Style: s})
		addCurve(times, s, means(c, x, func(x *Result) float64 { return x.Median }))
		addCurve(attained, s, means(c, x, func(x *Result) float64 { return 100 * x.Attained() }))
		roof.Points(s, reached)
		shares.Line(s, "", profile(mine, most))
	}
	for i, d := range r.Environment.Devices {
		addRoofs(roof, d, computedIn(cs), least, dashes[i%len(dashes)])
	}
	return chart.Write(w, [][]*chart.Chart{{times, attained}, {roof, shares}}, names)
}

// How entrants are drawn: colours that most people tell apart, and when all were taken, again with another shape and
// dashes.
var (
	colours = []string{"#d55e00", "#009e73", "#0072b2", "#e69f00", "#cc79a7", "#56b4e9", "#7a7a00"}
	dashes  = []string{"", "6 3", "2 3", "8 3 2 3"}
)

func styleOf(i int) chart.Style {
	round := i / len(colours)
	return chart.Style{
		Colour: colours[i%len(colours)], Shape: chart.Shape(round) % chart.Shapes,
		Dashes: dashes[round%len(dashes)],
	}
}

// addCurve draws points and joins them.
func addCurve(c *chart.Chart, s chart.Style, points []chart.Point) {
	c.Points(s, points)
	c.Line(s, "", points)
}

// addRoofs draws what a device's measured rates allow: memory's slope from left on, in operations a byte, and the
// arithmetic's roof of each type that was computed with.
func addRoofs(c *chart.Chart, d Device, types []string, left float64, dashes string) {
	peaks := map[string]float64{}
	for _, t := range types {
		if flops := d.Peaks[t]; flops > 0 {
			peaks[t] = flops
		}
	}
	if len(peaks) == 0 {
		peaks[""] = d.Flops
	}
	highest := 0.0
	for _, flops := range peaks {
		highest = max(highest, flops)
	}
	if !(d.Copy > 0 && highest > 0) {
		return
	}
	right := 10 * highest / d.Copy
	left = min(left, highest/d.Copy/10)
	highestFirst := func(x, y string) int { return cmp.Compare(peaks[y], peaks[x]) }
	for i, name := range slices.SortedFunc(maps.Keys(peaks), highestFirst) {
		flops := peaks[name]
		points := []chart.Point{{X: flops / d.Copy, Y: flops / 1e9}, {X: right, Y: flops / 1e9}}
		if i == 0 {
			points = append([]chart.Point{{X: left, Y: d.Copy * left / 1e9}}, points...)
		}
		grey := []string{"#000", "#505050", "#a0a0a0"}[min(i, 2)]
		c.Line(chart.Style{Colour: grey, Dashes: dashes}, strings.TrimSpace(d.Backend+" "+name), points)
	}
}

// ratios are round numbers from 1 to most and the next.
func ratios(most float64) []float64 {
	all := []float64{1}
	for scale := 1.; ; scale *= 10 {
		for _, x := range []float64{1.1, 1.2, 1.5, 2, 3, 5, 10} {
			if scale > 1 && x < 2 || most > 3 && scale*x < 1.5 || most > 20 && scale*x < 2 || most > 200 && x != 10 {
				continue
			}
			all = append(all, scale*x)
			if scale*x >= most {
				return all
			}
		}
	}
}
