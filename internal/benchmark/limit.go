// Times that a spec asks for. A report shows them with the measured ones.

package benchmark

import (
	"cmp"
	"errors"
	"slices"
)

// Limit asks for a time, in microseconds or as a multiple of the time of another. Empty fields fit any result.
type Limit struct {
	Matrix  string  `json:"matrix,omitempty"`
	Columns []int   `json:"columns,omitempty"`
	Backend string  `json:"backend,omitempty"`
	Format  string  `json:"format,omitempty"` // auto if empty
	Way     string  `json:"way,omitempty"`    // Way.String; empty is the plain one
	US      float64 `json:"us,omitempty"`
	Times   float64 `json:"times,omitempty"`
	Of      string  `json:"of,omitempty"` // who takes that time: Case.By
}

// Validate refuses a limit that asks for nothing.
func (l Limit) Validate() error {
	if l.US > 0 == (l.Times > 0) || (l.Times > 0) != (l.Of != "") {
		return errors.New("a limit is us, or times and of")
	}
	return nil
}

func (l Limit) fits(c Case) bool {
	return (l.Matrix == "" || l.Matrix == c.Matrix) && (len(l.Columns) == 0 || slices.Contains(l.Columns, c.N)) &&
		(l.Backend == "" || l.Backend == c.Backend) && cmp.Or(l.Format, "auto") == c.Format && l.Way == c.Way
}

// ask tells each of a product's entrants which time is asked of it, by the first limit that fits.
func ask(all []*contest, limits []Limit) {
	for _, c := range all {
		i := slices.IndexFunc(limits, func(l Limit) bool { return l.fits(c.Case) })
		if i < 0 {
			continue
		}
		l := limits[i]
		c.AskedUS = l.US
		if of := slices.IndexFunc(all, func(x *contest) bool { return x.By() == l.Of }); l.Of != "" && of >= 0 {
			c.AskedUS = l.Times * all[of].Median
		}
	}
}
