// How many entries a matrix will have, about, so that one beyond the limits is refused before its rows are counted.

package gen

import (
	"fmt"
	"math"

	"github.com/spmmrun/spmm/formats"
)

// refuse returns an error if the matrix is beyond the limits with as few entries as it can have, and with as many.
func (p *pattern) refuse(lim formats.Limits) error {
	least, most := p.expected()
	check := func(n float64) error {
		return lim.Check(int64(p.Rows), int64(p.Cols), int64(min(math.Floor(n), 1<<62)))
	}
	err := check(least)
	if err != nil && check(most) != nil {
		return fmt.Errorf("estimated: %w", err)
	}
	return nil
}

// expected returns between what numbers the entries of nearly every seed are.
func (p *pattern) expected() (least, most float64) {
	rows, units := float64(p.Rows)*(1-p.empty), float64(p.units)
	of := func(places float64) float64 { // the mean entries of a row that are drawn from this many units
		if p.rowNNZ >= 0 {
			return min(places*float64(p.width), float64(p.rowNNZ))
		}
		return places * float64(p.width) * p.density
	}
	least = rows * of(units)
	most = least
	switch p.Kind {
	case "diagonal":
		least = min(rows, units*(1-p.empty))
		most = least
	case "banded":
		rows, band := min(rows, (units+float64(p.band))*(1-p.empty)), float64(p.band)
		least, most = min(rows, units*(1-p.empty))*of(min(units, band+1)), rows*of(min(units, 2*band+1))
	case "nm":
		least = rows * units / float64(p.m) * float64(p.n)
		most = least
	case "powerlaw": // a few rows have much of it, and are cut where they would be longer than the matrix is wide
		least = rows * p.expectedLength(of(units)) / 2
	case "onedense":
		most += units
	case "rmat": // edges that are drawn twice are few if there are many vertices for each
		most = rows * float64(p.degree)
		if least = 0; p.degree <= p.Rows>>12 {
			least = most / 2
		}
	case "stencil":
		inside := 1.0
		for range p.dimensions() {
			inside *= max(0, float64(p.side-2)) / float64(p.side)
		}
		most = rows * float64(p.points)
		least = most * inside
	}
	const spread = 1 << 16 // what small matrices deviate by besides
	return max(0, 0.9*least-spread), 1.1*most + spread
}

// expectedLength returns the mean length of powerlaw's rows: those that would be longer than the row are cut.
func (p *pattern) expectedLength(mean float64) float64 {
	units, again := float64(p.units), float64(p.octave32)/(1<<32)
	sum := func(f func(shortest float64) float64) (total float64) { // over the octaves that lengths lie in
		likely := 1.0
		for octave := range 32 {
			share := likely * (1 - again)
			if octave == 31 {
				share = likely
			}
			total, likely = total+share*f(math.Ldexp(1, octave)), likely*again
		}
		return total
	}
	raw := sum(func(shortest float64) float64 { return cut(shortest, units) })
	if raw == 0 {
		return 0
	}
	return sum(func(shortest float64) float64 { return cut(min(units, shortest)*mean/raw, units) })
}

// cut returns the mean of lengths from shortest to twice that, all as likely, where none exceeds most.
func cut(shortest, most float64) float64 {
	switch {
	case 2*shortest <= most:
		return 1.5 * shortest
	case shortest >= most:
		return most
	}
	return ((most*most-shortest*shortest)/2 + most*(2*shortest-most)) / shortest
}
