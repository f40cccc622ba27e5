// Tables of times over those of another mode, format or precision.

package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spmmrun/spmm/internal/benchmark"
)

// over has a row for each number of columns of B: for each value of a dimension, how many times as long products take
// as with the base value, as geometric mean, and the most.
func (t table) over(r *benchmark.Report, takes func(benchmark.Case) bool) ([][]string, error) {
	across := slices.IndexFunc(dimensions, func(d dimension) bool { return d.name == t.Across && t.Across != "" })
	if across < 0 {
		return nil, fmt.Errorf("across %q: no such dimension", t.Across)
	}
	// key names a product, whatever the dimension's value.
	key := func(x *benchmark.Result) string {
		var of []string
		for k, d := range dimensions {
			if k != across {
				of = append(of, d.of(x))
			}
		}
		return strings.Join(of, "|")
	}
	base := map[string]float64{}
	var others []*benchmark.Result
	var values []string
	for i := range r.Results {
		x := &r.Results[i]
		if !x.Measured() || x.Chosen == "" || !takes(x.Case) {
			continue
		}
		v := dimensions[across].of(x)
		if v == t.Base {
			base[key(x)] = x.Median
			continue
		}
		if others = append(others, x); !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	all := map[int]map[string][]float64{} // by columns of B and value
	for _, x := range others {
		if of := base[key(x)]; of > 0 {
			if all[x.N] == nil {
				all[x.N] = map[string][]float64{}
			}
			v := dimensions[across].of(x)
			all[x.N][v] = append(all[x.N][v], x.Median/of)
		}
	}
	rows := [][]string{append([]string{"over " + t.Base, "products"}, values...)}
	for _, n := range slices.SortedFunc(maps.Keys(all), cmp.Compare) {
		row, products := []string{"N=" + strconv.Itoa(n), ""}, 0
		for _, v := range values {
			cell := ""
			if x := all[n][v]; len(x) > 0 {
				products = max(products, len(x))
				cell = fmt.Sprintf("%.2f, %.2f at most", benchmark.GeometricMean(x), slices.Max(x))
			}
			row = append(row, cell)
		}
		row[1] = strconv.Itoa(products)
		rows = append(rows, row)
	}
	return rows, nil
}
