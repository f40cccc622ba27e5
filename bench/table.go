// Tables in Markdown: their lines, and how times compare with limits.

package main

import (
	"fmt"
	"math"
	"strings"
)

// table prints the head of one.
func table(title string, columns ...string) {
	fmt.Printf("%s\n\n| %s |\n|%s\n", title, strings.Join(columns, " | "), strings.Repeat(" --- |", len(columns)))
}

func row(cells ...any) {
	for _, c := range cells {
		if x, ok := c.(float64); ok {
			c = fmt.Sprintf("%.1f", x)
		}
		fmt.Printf("| %v ", c)
	}
	fmt.Println("|")
}

// met says whether a time is within a limit, and by how much. A time of 0 is none.
func met(us, limit float64) string {
	switch {
	case us == 0 || limit == 0:
		return "not measured"
	case us <= limit:
		return fmt.Sprintf("met, %.2f×", limit/us)
	}
	return fmt.Sprintf("missed, %.2f×", limit/us)
}

// geomean is a geometric mean of ratios.
type geomean struct {
	logs  float64
	count int
}

// add takes part in the mean where both times are there.
func (g *geomean) add(theirs, ours float64) {
	if theirs > 0 && ours > 0 {
		g.logs += math.Log(theirs / ours)
		g.count++
	}
}

func (g *geomean) String() string {
	if g.count == 0 {
		return "not measured"
	}
	mean := math.Exp(g.logs / float64(g.count))
	return fmt.Sprintf("%.2f of %d (%s)", mean, g.count, met(1, mean))
}
