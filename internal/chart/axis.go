// Axes: what they span, and where they are labelled.

package chart

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Axis is one of a chart's axes. It spans Min to Max; where these are equal, its ticks or else the data, a logarithmic
// one in whole powers of 10.
type Axis struct {
	Label    string
	Log      bool
	Min, Max float64
	Ticks    []float64 // what is labelled, ascending; nil: round numbers
}

// scale is where values of an axis lie. If it is logarithmic, the positions in it are the values' logarithms.
type scale struct {
	log    bool
	lo, hi float64 // the positions that it spans
	length float64 // in pixels
	ticks  []tick
}

type tick struct {
	position float64
	label    string
}

func (a *Axis) scale(data []float64, length float64) *scale {
	s := &scale{log: a.Log, length: length}
	ticks := slices.DeleteFunc(slices.Clone(a.Ticks), func(v float64) bool { return !s.has(v) })
	switch {
	case a.Min != a.Max:
		s.lo, s.hi = s.position(a.Min), s.position(a.Max)
	case len(ticks) > 0:
		s.lo, s.hi = s.position(ticks[0]), s.position(ticks[len(ticks)-1])
		margin := 0.05 * (s.hi - s.lo)
		s.lo, s.hi = s.lo-margin, s.hi+margin
	default:
		s.span(data)
	}
	if s.lo == s.hi {
		s.lo, s.hi = s.lo-1, s.hi+1
	}
	switch {
	case len(ticks) > 0:
		s.label(ticks)
	case a.Log:
		s.powers()
	default:
		s.label(Ticks(s.lo, s.hi))
	}
	return s
}

// span has the scale span those of the data that it has places for; 1 to 10 if there are none.
func (s *scale) span(data []float64) {
	s.lo, s.hi = math.Inf(1), math.Inf(-1)
	for _, v := range data {
		if s.has(v) {
			s.lo, s.hi = min(s.lo, s.position(v)), max(s.hi, s.position(v))
		}
	}
	if s.lo > s.hi {
		s.lo, s.hi = s.position(1), s.position(10)
	}
	if s.log {
		const rounding = 1e-9
		s.lo, s.hi = math.Floor(s.lo+rounding), math.Ceil(s.hi-rounding)
	}
}

func (s *scale) label(values []float64) {
	for _, v := range values {
		s.ticks = append(s.ticks, tick{s.position(v), Label(v)})
	}
}

// powers labels powers of 10, all of them if they are few.
func (s *scale) powers() {
	const most = 7
	first, last := int(math.Ceil(s.lo)), int(math.Floor(s.hi))
	for e := first; e <= last; e += (last-first)/most + 1 {
		label := fmt.Sprintf("1e%d", e)
		if e > -5 && e < 6 {
			label = Label(math.Pow10(e))
		}
		s.ticks = append(s.ticks, tick{float64(e), label})
	}
}

func (s *scale) position(v float64) float64 {
	if s.log {
		return math.Log10(v)
	}
	return v
}

// has tells whether the scale has a place for a value, be it outside of what it spans.
func (s *scale) has(v float64) bool {
	p := s.position(v)
	return !math.IsNaN(p) && !math.IsInf(p, 0)
}

// pixels is how far from the scale's beginning a position lies; far outside, it is nearer than it should be.
func (s *scale) pixels(position float64) float64 {
	const far = 1e4
	return max(-far, min(far, s.length*(position-s.lo)/(s.hi-s.lo)))
}

// Ticks returns about five round numbers from lo to hi.
func Ticks(lo, hi float64) (all []float64) {
	const about = 5
	step := math.Pow(10, math.Floor(math.Log10((hi-lo)/about)))
	for _, times := range []float64{2, 2.5, 2} {
		if (hi-lo)/step > about+1 {
			step *= times
		}
	}
	first := math.Ceil(lo / step)
	for i := range 2 * about {
		if v := (first + float64(i)) * step; v <= hi {
			all = append(all, v+0) // not -0
		}
	}
	return all
}

// Label returns a value as axes label it.
func Label(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
