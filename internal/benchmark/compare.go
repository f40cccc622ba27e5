// How two reports differ.

package benchmark

import (
	"fmt"
	"io"
	"math"
	"strconv"
)

// Significance is the probability below which a difference is taken for one.
const Significance = 0.01

// Change is how a case's time differs between two reports.
type Change struct {
	Case
	Old, New float64 // medians in microseconds
	Ratio    float64 // new over old
	P        float64 // that such a difference is chance: Differ
}

// Significant tells whether the difference is hardly chance.
func (c Change) Significant() bool { return c.P < Significance }

// Regression tells whether the case became slower by more than the tolerance (0.05 for 5 %), and that is hardly chance.
func (c Change) Regression(tolerance float64) bool {
	return c.Significant() && c.Ratio > 1+tolerance
}

// Comparison is all cases that two reports have.
type Comparison struct {
	Changes []Change
	// Lost are the cases that the old report has times of and the new one has not, though it has measured the product.
	Lost []Case
	// Missing counts the old report's other cases, which the new one says nothing of.
	Missing int
}

// Compare holds a report against an older one.
func Compare(old, now *Report) Comparison {
	var c Comparison
	at := map[Case]*Result{}
	for i := range now.Results {
		at[now.Results[i].Case] = &now.Results[i]
	}
	for i := range old.Results {
		o := &old.Results[i]
		n, ok := at[o.Case]
		switch {
		case !o.Measured():
		case !ok:
			c.Missing++
		case !n.Measured():
			c.Lost = append(c.Lost, o.Case)
		default:
			c.Changes = append(
				c.Changes, Change{o.Case, o.Median, n.Median, n.Median / o.Median, Differ(o.Samples, n.Samples)},
			)
		}
	}
	return c
}

// Regressions counts the changes that are regressions, and the cases that are lost.
func (c *Comparison) Regressions(tolerance float64) int {
	n := len(c.Lost)
	for _, x := range c.Changes {
		if x.Regression(tolerance) {
			n++
		}
	}
	return n
}

// Ratio is the geometric mean of the changes' ratios.
func (c *Comparison) Ratio() float64 {
	var rs []float64
	for _, x := range c.Changes {
		rs = append(rs, x.Ratio)
	}
	return GeometricMean(rs)
}

// Print writes the comparison as a table.
func (c *Comparison) Print(w io.Writer, tolerance float64) error {
	table := [][]string{{"matrix", "N", "precision", "by", "old µs", "new µs", "new/old", "p", ""}}
	for _, x := range c.Changes {
		what := "same"
		switch {
		case x.Regression(tolerance):
			what = "SLOWER"
		case x.Significant() && x.Ratio > 1:
			what = "slower"
		case x.Significant():
			what = "faster"
		}
		table = append(table, []string{
			short(x.Matrix), strconv.Itoa(x.N), x.Precision, x.By(), number(x.Old), number(x.New),
			fmt.Sprintf("%.3f", x.Ratio), fmt.Sprintf("%.2g", x.P), what,
		})
	}
	for _, x := range c.Lost {
		table = append(table, []string{short(x.Matrix), strconv.Itoa(x.N), x.Precision, x.By(), "", "", "", "", "LOST"})
	}
	if err := align(w, table); err != nil {
		return err
	}
	if r := c.Ratio(); !math.IsNaN(r) {
		fmt.Fprintf(w, "new/old, geometric mean of %d: %.3f\n", len(c.Changes), r)
	}
	if c.Missing > 0 {
		fmt.Fprintf(w, "only in the old report: %d\n", c.Missing)
	}
	_, err := fmt.Fprintf(w, "slower by more than %.3g %%, or lost: %d\n", 100*tolerance, c.Regressions(tolerance))
	return err
}
