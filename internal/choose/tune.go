// Tuning: which candidates are measured, and what is remembered of the times.

package choose

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/internal/work"
)

// Candidates within nearBest times the best prediction are measured, and at least nearLeast.
const (
	nearBest  = 3
	nearLeast = 2
)

// Near returns those of the ranked candidates that are worth measuring.
func Near(cs []*Candidate) []*Candidate {
	n := 0
	for n < len(cs) && cs[n].cost != Unlikely && (n < nearLeast || float64(cs[n].cost) <= nearBest*float64(cs[0].cost)) {
		n++
	}
	return cs[:max(1, n)]
}

// Measured is how long a variant took.
type Measured struct {
	Format  string        `json:"format"`
	Variant string        `json:"variant"`
	Time    time.Duration `json:"ns"`
}

// CompareTimes orders measurements by time.
func CompareTimes(x, y Measured) int { return cmp.Compare(x.Time, y.Time) }

// Remember keeps the times that were measured of the candidates, and returns why the fastest is taken.
func Remember(d *device.Device, w *work.Work, cs []*Candidate, times []Measured) (why string) {
	if recall(d, w) == nil { // each matrix counts once
		learn(d, cs, times)
	}
	r := newRecord(d, w, cs, times)
	_ = r.save() // what cannot be kept is measured again
	return r.why("when measured")
}

// why says what the times, fastest first, show.
func (r *record) why(when string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "it took %s %s", Short(r.Times[0].Time), when)
	for i, m := range r.Times[1:] {
		sep := ","
		if i == 0 {
			sep = ", and"
		}
		fmt.Fprintf(&b, "%s %s/%s %s", sep, m.Format, m.Variant, Short(m.Time))
	}
	return b.String()
}
