// Tables of the numbers that an example in Python has measured.

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/spmmrun/spmm/internal/benchmark"
)

// numbers says which numbers of one report a table has.
type numbers struct {
	Rows   string            `json:"rows"`   // a regular expression of the labels
	Values []string          `json:"values"` // the columns, by the numbers' names; a row that has none of them is left out
	Best   map[string]string `json:"best"`   // "most" or "least", of the columns whose best number is bold
}

// measured has the fields of a file that python/examples/report.py writes.
type measured struct {
	Environment benchmark.Environment `json:"environment"`
	Rows        []struct {
		Label  string             `json:"label"`
		Values map[string]float64 `json:"values"`
	} `json:"rows"`
}

func (n numbers) markdown(rs reports, names []string) (string, error) {
	if len(names) != 1 {
		return "", fmt.Errorf("it names %d reports: want one", len(names))
	}
	takes, err := regexp.Compile(n.Rows)
	if err != nil {
		return "", err
	}
	b, err := os.ReadFile(filepath.Join(rs.folder, names[0]+".json"))
	if err != nil {
		return "", err
	}
	var m measured
	if err := json.Unmarshal(b, &m); err != nil {
		return "", fmt.Errorf("%s.json: %w", names[0], err)
	}
	rows := [][]string{append([]string{""}, n.Values...)}
	best := n.best(m, takes)
	for _, r := range m.Rows {
		row, has := []string{r.Label}, false
		for _, name := range n.Values {
			v, there := r.Values[name]
			row, has = append(row, n.cell(name, v, there, v == best[name])), has || there
		}
		if has && takes.MatchString(r.Label) {
			rows = append(rows, row)
		}
	}
	if len(rows) < 2 {
		return "", errors.New("no row is taken")
	}
	return text(rows) + "\n" + origin(names[0], &m.Environment), nil
}

// best returns the best number of each column, of the rows that are taken.
func (n numbers) best(m measured, takes *regexp.Regexp) map[string]float64 {
	best := map[string]float64{}
	for _, r := range m.Rows {
		for name, v := range r.Values {
			b, seen := best[name]
			if takes.MatchString(r.Label) && (!seen || n.Best[name] == "most" && v > b || n.Best[name] == "least" && v < b) {
				best[name] = v
			}
		}
	}
	return best
}

// cell is a number, in bold where it is the best of a column that has a best one.
func (n numbers) cell(name string, v float64, there, best bool) string {
	switch {
	case !there:
		return ""
	case best && n.Best[name] != "":
		return "**" + number(v) + "**"
	}
	return number(v)
}
