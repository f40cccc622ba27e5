// Where axes are labelled, and what is drawn.

package chart_test

import (
	"bytes"
	"encoding/xml"
	"io"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/internal/chart"
)

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		lo, hi float64
		want   string
	}{
		{0, 1, "0 0.2 0.4 0.6 0.8 1"},
		{0, 100, "0 20 40 60 80 100"},
		{0, 5, "0 1 2 3 4 5"},
		{0, 23133, "0 5000 10000 15000 20000"},
		{-3, 4, "-2 0 2 4"},
		{0.31, 0.34, "0.31 0.32 0.33 0.34"},
		{0, 3e6, "0 500000 1e+06 1.5e+06 2e+06 2.5e+06 3e+06"},
		{1e20, 1e20 + 1e5, "1e+20 1e+20 1e+20 1e+20 1e+20 1e+20"},
	} {
		var got []string
		for _, v := range chart.Ticks(c.lo, c.hi) {
			got = append(got, chart.Label(v))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%g to %g: %q, want %q", c.lo, c.hi, got, c.want)
		}
	}
}

// element is one of a drawn picture.
type element struct {
	name, text string
	attributes map[string]string
}

// drawn parses what Write makes of one chart.
func drawn(t *testing.T, c *chart.Chart, names ...chart.Name) (es []element) {
	t.Helper()
	var b bytes.Buffer
	if err := chart.Write(&b, [][]*chart.Chart{{c}}, names); err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(&b); ; {
		token, err := d.Token()
		if err == io.EOF {
			return es
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			e := element{name: token.Name.Local, attributes: map[string]string{}}
			for _, a := range token.Attr {
				e.attributes[a.Name.Local] = a.Value
			}
			es = append(es, e)
		case xml.CharData:
			es[max(0, len(es)-1)].text += strings.TrimSpace(string(token))
		}
	}
}

func textOf(es []element) (all []string) {
	for _, e := range es {
		if e.name == "text" {
			all = append(all, e.text)
		}
	}
	return all
}

// The labels of x axes.
func TestAxis(t *testing.T) {
	at := func(xs ...float64) (ps []chart.Point) {
		for _, x := range xs {
			ps = append(ps, chart.Point{X: x, Y: 1})
		}
		return ps
	}
	for _, c := range []struct {
		name   string
		axis   chart.Axis
		points []chart.Point
		want   string
	}{
		{"what the data spans", chart.Axis{}, at(3, 0, 5), "0 1 2 3 4 5"},
		{"powers of 10", chart.Axis{Log: true}, at(0.02, 700), "0.01 0.1 1 10 100 1000"},
		{"powers of 10 that the data reaches", chart.Axis{Log: true}, at(10, 100), "10 100"},
		{"many powers of 10", chart.Axis{Log: true}, at(1e-300, 1e300), "1e-300 1e-214 1e-128 1e-42 1e44 1e130 1e216"},
		{"one small value", chart.Axis{Log: true}, at(1e-307), "1e-308 1e-307 1e-306"},
		{"one value", chart.Axis{}, at(7), "6 6.5 7 7.5 8"},
		{"nothing", chart.Axis{}, nil, "2 4 6 8 10"},
		{"nothing that has a logarithm", chart.Axis{Log: true}, at(0, -1, math.NaN(), math.Inf(1)), "1 10"},
		{"bounds", chart.Axis{Max: 1}, at(50), "0 0.2 0.4 0.6 0.8 1"},
		{"ticks", chart.Axis{Log: true, Ticks: []float64{-8, 8, 128}}, at(1, 1000), "8 128"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ch := &chart.Chart{X: c.axis, Y: chart.Axis{Ticks: []float64{-1}}}
			ch.Points(chart.Style{}, c.points)
			var got []string
			for _, e := range drawn(t, ch) {
				if e.attributes["class"] == "t m" {
					got = append(got, e.text)
				}
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// Points lie where the axes say, those without a place are not drawn, and text is text.
func TestWrite(t *testing.T) {
	c := &chart.Chart{Title: "a < b", X: chart.Axis{Label: "x & y", Max: 10}, Y: chart.Axis{Label: "µs", Log: true, Min: 1,
		Max: 100}}
	red := chart.Style{Colour: "#f00", Dashes: "6 3"}
	c.Points(red, []chart.Point{{0, 1}, {5, 10}, {10, 100}, {3, 0}, {math.NaN(), 10}})
	c.Line(red, "<roof>", []chart.Point{{0, 100}, {math.Inf(1), 3}, {10, 1}})
	es := drawn(t, c, chart.Name{Text: "\"who\"", Style: red})
	var circles, lines []string
	for _, e := range es {
		switch e.name {
		case "circle":
			circles = append(circles, e.attributes["cx"]+","+e.attributes["cy"])
		case "polyline":
			lines = append(lines, e.attributes["points"]+" "+e.attributes["stroke"]+" "+e.attributes["stroke-dasharray"])
		}
	}
	// The area is 390 by 272 pixels with 4 around it; the last circle is the name's.
	if want := []string{"4.0,276.0", "199.0,140.0", "394.0,4.0", "35.0,359.0"}; !slices.Equal(circles, want) {
		t.Errorf("points at %q, want %q", circles, want)
	}
	if want := []string{"4.0,4.0 394.0,276.0 #f00 6 3", "8.0,16.0 32.0,16.0 #f00 6 3"}; !slices.Equal(lines, want) {
		t.Errorf("lines %q, want %q", lines, want)
	}
	for _, want := range []string{"a < b", "x & y", "µs", "<roof>", "\"who\""} {
		if got := textOf(es); !slices.Contains(got, want) {
			t.Errorf("%q is not written, but %q", want, got)
		}
	}
}

// Every shape is drawn in its own way.
func TestShapes(t *testing.T) {
	seen := map[string]bool{}
	for s := range chart.Shapes {
		c := &chart.Chart{}
		c.Points(chart.Style{Shape: s, Colour: "#123456"}, []chart.Point{{1, 1}})
		for _, e := range drawn(t, c) {
			if a := e.attributes; a["fill"] == "#123456" || a["stroke"] == "#123456" {
				seen[e.name+a["fill"]] = true
			}
		}
	}
	if len(seen) != int(chart.Shapes) {
		t.Errorf("%d shapes are %v", chart.Shapes, seen)
	}
}
