// Ways to compute a product other than the plain one.

package benchmark

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/dtype"
)

// How the products of a batch are handed to a device: Way.Calls. Otherwise short products are recorded, if a sequence
// takes them.
const (
	Recorded = "recorded" // as a sequence
	Listed   = "listed"   // as one list of launches
	Apart    = "apart"    // each by itself while those before still run
)

// Way says how a product is computed where that is not plainly. The zero value is a plan for as many columns as B has.
type Way struct {
	Packed   int    `json:"packed,omitempty"`   // columns that the plan is prepared for
	Quantise string `json:"quantise,omitempty"` // A's values: s8 or e4m3
	Calls    string `json:"calls,omitempty"`    // Recorded, Listed or Apart
	Split    string `json:"split,omitempty"`    // of several devices: columns or rows
	First    bool   `json:"first,omitempty"`    // B lies on the first of several devices; the host's clock counts
	Memory   int64  `json:"memory,omitempty"`   // bytes that may be used of each device
	// Right computes Y = X·Aᵀ, as networks do: X and Y are row-major, X has as many rows as B has columns, and Y is of X's
	// type.
	Right bool `json:"right,omitempty"`

	Columns []int `json:"columns,omitempty"` // of B that this way is measured for; all if empty
}

// String is the Way of a Case.
func (w Way) String() string {
	var words []string
	add := func(is bool, format string, args ...any) {
		if is {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	add(w.Packed > 0, "packed for %d", w.Packed)
	add(w.Quantise != "", "%s", w.Quantise)
	add(w.Calls != "", "%s", w.Calls)
	add(w.Split != "", "by %s", w.Split)
	add(w.First, "B on the first")
	add(w.Right, "X·Aᵀ")
	add(w.Memory > 0, "%.3g GB of memory", float64(w.Memory)/1e9)
	return strings.Join(words, ", ")
}

// Validate refuses words that a way has no use for.
func (w Way) Validate() error {
	for _, x := range []struct {
		name, word string
		valid      []string
	}{
		{"quantise", w.Quantise, []string{"s8", "e4m3"}},
		{"calls", w.Calls, []string{Recorded, Listed, Apart}},
		{"split", w.Split, []string{"columns", "rows"}},
	} {
		if x.word != "" && !slices.Contains(x.valid, x.word) {
			return fmt.Errorf("%s %q: want one of %s", x.name, x.word, strings.Join(x.valid, ", "))
		}
	}
	if w.Right && (w.Quantise != "" || w.Split != "" || w.First || w.Memory > 0) {
		return errors.New("right: is for one device and values that are not quantised")
	}
	if w.Packed < 0 || w.Memory < 0 || slices.ContainsFunc(w.Columns, func(n int) bool { return n < 1 }) {
		return errors.New("packed, memory and columns: want numbers above 0")
	}
	return nil
}

// takes tells whether the way is measured for n columns of B.
func (w Way) takes(n int) bool {
	return w.Packed != n && (len(w.Columns) == 0 || slices.Contains(w.Columns, n))
}

// options are those of a plan for n columns.
func (w Way) options(o spmm.Options, n int) spmm.Options {
	o.Cols, o.Right, o.Transpose = n, w.Right, w.Right
	if w.Packed > 0 {
		o.Cols = w.Packed
	}
	return o
}

// quantised is the type of A's values, dtype.Invalid if they stay as they are.
func (w Way) quantised() dtype.Type {
	switch w.Quantise {
	case "s8":
		return dtype.S8
	case "e4m3":
		return dtype.E4M3
	}
	return dtype.Invalid
}
