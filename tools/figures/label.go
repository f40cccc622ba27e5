// Short names of matrices.

package main

import (
	"fmt"
	"path"
	"strconv"
	"strings"
)

// label names a matrix in a table: by its file, or by the size and pattern of a generator's spec.
func label(matrix string) string {
	spec, generated := strings.CutPrefix(matrix, "gen:")
	if !generated {
		return strings.TrimSuffix(strings.TrimSuffix(path.Base(matrix), ".gz"), ".mtx")
	}
	words := strings.Split(spec, ",")
	value := map[string]string{}
	for _, w := range words[1:] {
		key, v, _ := strings.Cut(w, "=")
		value[key] = v
	}
	size := value["rows"] + "×" + value["cols"]
	if value["cols"] == "" || value["cols"] == value["rows"] {
		size = value["rows"] + "²"
	}
	density, err := strconv.ParseFloat(value["density"], 64)
	zeros := fmt.Sprintf("%.0f %% zeros", 100*(1-density))
	switch {
	case words[0] == "uniform" && value["nnz-per-row"] != "":
		return size + ", " + value["nnz-per-row"] + " a row"
	case words[0] == "uniform" && density == 1:
		return size + ", no zeros"
	case words[0] == "uniform" && err == nil:
		return size + ", " + zeros
	case words[0] == "vector" && err == nil:
		return size + ", vectors of " + value["v"] + ", " + zeros
	case words[0] == "nm" && value["v"] != "":
		return fmt.Sprintf("%s, %s:%s of %s rows", size, value["n"], value["m"], value["v"])
	case words[0] == "nm":
		return fmt.Sprintf("%s, %s:%s", size, value["n"], value["m"])
	case words[0] == "stencil":
		return fmt.Sprintf("27-point stencil %s³", value["side"])
	}
	return strings.ReplaceAll(spec, ",", ", ")
}
