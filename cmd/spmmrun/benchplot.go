// The picture of spmmrun bench: times, how far from attainable, the roofline, and a performance profile.

package main

import (
	"cmp"
	"fmt"
	"image/color"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/spmmrun/spmm/internal/benchmark"
)

// checkSVG refuses names of files of other types.
func checkSVG(path string) error {
	if path != "" && !strings.EqualFold(filepath.Ext(path), ".svg") {
		return fmt.Errorf("%s: want a file whose name ends in .svg", path)
	}
	return nil
}

// curve is what an entrant has reached: points in a plot, under one name and in one colour.
type curve struct {
	name    string
	results []*benchmark.Result
}

// curves has the results that have times, by who computes and the precision.
func curves(r *benchmark.Report) []curve {
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

// xAxis is what times are drawn by: the columns of B if there are several, else the density of A.
type xAxis struct {
	label   string
	of      func(*benchmark.Result) float64
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
		return xAxis{"columns of B (N), geometric mean over matrices", func(x *benchmark.Result) float64 { return float64(x.N) }, slices.Sorted(maps.Keys(columns))}
	}
	return xAxis{"density of A", func(x *benchmark.Result) float64 { return float64(x.NNZ) / float64(x.Rows) / float64(x.Cols) }, nil}
}

// means has the geometric means of y over the results of equal x, where y is known, in ascending order.
func means(c curve, x xAxis, y func(*benchmark.Result) float64) plotter.XYs {
	at := map[float64][]float64{}
	for _, r := range c.results {
		if px, py := x.of(r), y(r); px > 0 && py > 0 && !math.IsInf(px, 0) {
			at[px] = append(at[px], py)
		}
	}
	var points plotter.XYs
	for px, ys := range at {
		points = append(points, plotter.XY{X: px, Y: benchmark.GeometricMean(ys)})
	}
	slices.SortFunc(points, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
	return points
}

// profile has the share of its products that an entrant does in at most so many times the best's time, a staircase
// from 1 to most (Dolan and Moré, Benchmarking optimization software with performance profiles, 2002).
func profile(over []float64, most float64) plotter.XYs {
	over = slices.Sorted(slices.Values(over))
	points := plotter.XYs{{X: 1, Y: 0}}
	share := 0.0
	for i, x := range over {
		points = append(points, plotter.XY{X: x, Y: share})
		share = float64(i+1) / float64(len(over))
		points = append(points, plotter.XY{X: x, Y: share})
	}
	return append(points, plotter.XY{X: most, Y: share})
}

// writePlot draws the report as SVG.
func writePlot(w io.Writer, r *benchmark.Report) error {
	cs := curves(r)
	x := newXAxis(cs)
	attained := newPlot("of attainable", x.label, "%", true, false)
	attained.Y.Min, attained.Y.Max = 0, 100
	times := newPlot("time", x.label, "µs", true, true)
	roof := newPlot("roofline", "operations a byte", "GFLOP/s", true, true)
	shares := newPlot("performance profile", "time over the best of a product", "share of products", true, false)
	shares.Y.Min, shares.Y.Max = 0, 1
	over := r.OverBest()
	most := 1.1
	for _, o := range over {
		most = max(most, 1.05*o)
	}
	if x.columns != nil {
		tickAt(&times.X, x.columns)
		tickAt(&attained.X, x.columns)
	}
	tickAt(&shares.X, ratios(most))
	names := newNames(len(cs))
	for i, c := range cs {
		var mine []float64
		var reached plotter.XYs
		for _, x := range c.results {
			mine = append(mine, over[x.Case])
			if o := x.Intensity(); o > 0 {
				reached = append(reached, plotter.XY{X: o, Y: x.GFLOPS()})
			}
		}
		pen := penOf(i)
		for _, err := range []error{
			names.add(c.name, pen),
			addPoints(times, pen, means(c, x, func(x *benchmark.Result) float64 { return x.Median }), true),
			addPoints(attained, pen, means(c, x, func(x *benchmark.Result) float64 { return 100 * x.Attained() }), true),
			addPoints(roof, pen, reached, false),
			addLine(shares, pen, profile(mine, most)),
		} {
			if err != nil {
				return err
			}
		}
	}
	left := math.Inf(1) // the least of operations a byte
	for _, c := range cs {
		for _, x := range c.results {
			if o := x.Intensity(); o > 0 {
				left = min(left, o)
			}
		}
	}
	for i, d := range r.Environment.Devices {
		if err := addRoofs(roof, d, computedIn(cs), left, plotutil.Dashes(i)); err != nil {
			return err
		}
	}
	return tile(w, [][]*plot.Plot{{times, attained}, {roof, shares}}, names)
}

// pen is how an entrant is drawn: colours come again after some, with another shape and dashes.
type pen struct {
	glyph  draw.GlyphStyle
	dashes []vg.Length
}

var shapes = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.CrossGlyph{}}

func penOf(i int) pen {
	round := i / len(plotutil.DefaultColors)
	return pen{draw.GlyphStyle{Color: plotutil.Color(i), Shape: shapes[round%len(shapes)], Radius: vg.Points(2.5)}, plotutil.Dashes(round)}
}

// names is who computes, in columns below the plots.
type names struct {
	columns [3]plot.Legend
	rows    int
	added   int
}

const nameHeight = vg.Centimeter * 0.45

func newNames(n int) *names {
	t := &names{}
	t.rows = (n + len(t.columns) - 1) / len(t.columns)
	for i := range t.columns {
		t.columns[i] = plot.NewLegend()
		t.columns[i].Top, t.columns[i].Left = true, true
	}
	return t
}

func (t *names) add(name string, m pen) error {
	s, err := plotter.NewScatter(plotter.XYs{{X: 1, Y: 1}}) // where does not matter
	if err != nil {
		return err
	}
	s.GlyphStyle = m.glyph
	t.columns[t.added/max(1, t.rows)].Add(name, s)
	t.added++
	return nil
}

func (t *names) height() vg.Length { return vg.Length(t.rows+1) * nameHeight }

// draw writes the names at the foot of a canvas.
func (t *names) draw(c draw.Canvas) {
	width := (c.Max.X - c.Min.X) / vg.Length(len(t.columns))
	for i := range t.columns {
		t.columns[i].Draw(draw.Crop(c, vg.Length(i)*width+vg.Centimeter/2, vg.Length(i+1-len(t.columns))*width, 0, t.height()-(c.Max.Y-c.Min.Y)))
	}
}

// newPlot returns one with axes; a logarithmic axis has the powers of 10 and what is between them.
func newPlot(title, x, y string, logX, logY bool) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	for _, a := range []struct {
		axis *plot.Axis
		log  bool
	}{{&p.X, logX}, {&p.Y, logY}} {
		if a.log {
			a.axis.Scale, a.axis.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
		}
	}
	p.Add(plotter.NewGrid())
	return p
}

// addPoints draws points, joined if that is asked for. No points are no error.
func addPoints(p *plot.Plot, m pen, points plotter.XYs, join bool) error {
	if len(points) == 0 {
		return nil
	}
	s, err := plotter.NewScatter(points)
	if err != nil {
		return err
	}
	s.GlyphStyle = m.glyph
	p.Add(s)
	if join {
		return addLine(p, m, points)
	}
	return nil
}

func addLine(p *plot.Plot, m pen, points plotter.XYs) error {
	l, err := plotter.NewLine(points)
	if err != nil {
		return err
	}
	l.Color, l.Dashes = m.glyph.Color, m.dashes
	p.Add(l)
	return nil
}

// addRoofs draws what a device's measured rates allow: memory's slope from left on, in operations a byte, and the arithmetic's roof of
// each type that was computed with.
func addRoofs(p *plot.Plot, d benchmark.Device, types []string, left float64, dashes []vg.Length) error {
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
		return nil
	}
	right := 10 * highest / d.Copy
	left = min(left, highest/d.Copy/10)
	for i, name := range slices.SortedFunc(maps.Keys(peaks), func(x, y string) int { return cmp.Compare(peaks[y], peaks[x]) }) {
		flops := peaks[name]
		points := plotter.XYs{{X: flops / d.Copy, Y: flops / 1e9}, {X: right, Y: flops / 1e9}}
		if i == 0 {
			points = append(plotter.XYs{{X: left, Y: d.Copy * left / 1e9}}, points...)
		}
		l, err := plotter.NewLine(points)
		if err != nil {
			return err
		}
		l.Dashes, l.Color = dashes, color.Gray{uint8(80 * min(i, 2))}
		p.Add(l)
		p.Legend.Add(strings.TrimSpace(d.Backend+" "+name), l)
	}
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.XOffs, p.Legend.YOffs = vg.Millimeter, -2*vg.Millimeter
	return nil
}

// tile draws plots in rows and columns, and names below.
func tile(w io.Writer, plots [][]*plot.Plot, t *names) error {
	const width, height = 26 * vg.Centimeter, 20 * vg.Centimeter
	for _, row := range plots {
		for _, p := range row {
			widen(&p.X)
			widen(&p.Y)
		}
	}
	c := vgsvg.New(width, height+t.height())
	whole := draw.New(c)
	whole.FillPolygon(color.White, whole.ClipPolygonXY([]vg.Point{{}, {X: width}, {X: width, Y: height + t.height()}, {Y: height + t.height()}}))
	t.draw(whole)
	tiles := draw.Tiles{Rows: len(plots), Cols: len(plots[0]), PadX: vg.Centimeter / 2, PadY: vg.Centimeter / 2}
	for i, row := range plot.Align(plots, tiles, draw.Crop(whole, 0, 0, t.height(), 0)) {
		for j, at := range row {
			plots[i][j].Draw(at)
		}
	}
	_, err := c.WriteTo(w)
	return err
}

// tickAt has a logarithmic axis span some values, which it labels.
func tickAt(a *plot.Axis, values []float64) {
	var ticks plot.ConstantTicks
	for _, x := range values {
		ticks = append(ticks, plot.Tick{Value: x, Label: strconv.FormatFloat(x, 'g', -1, 64)})
	}
	first, last := values[0], values[len(values)-1]
	margin := math.Pow(last/first, 0.05)
	a.Min, a.Max, a.Tick.Marker = first/margin, last*margin, ticks
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

// widen has an axis without data, or with one value of it, be about that value; a logarithm needs it above 0.
func widen(a *plot.Axis) {
	if _, fixed := a.Tick.Marker.(plot.ConstantTicks); fixed {
		return
	}
	if math.IsInf(a.Min, 0) || math.IsInf(a.Max, 0) {
		a.Min, a.Max = 1, 10
	}
	if _, log := a.Scale.(plot.LogScale); log {
		// Whole powers of 10, so that some are labelled.
		a.Min, a.Max = math.Pow(10, math.Floor(math.Log10(a.Min)+1e-9)), math.Pow(10, math.Ceil(math.Log10(a.Max)-1e-9))
		if a.Min == a.Max {
			a.Max *= 10
		}
	} else if a.Min == a.Max {
		a.Min, a.Max = a.Min-1, a.Max+1
	}
}
