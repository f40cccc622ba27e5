// From float64 to an element type, and what is lost on the way.

package formats

import (
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/spmmrun/spmm/formats/internal/number"
	"github.com/spmmrun/spmm/formats/internal/par"
)

// Loss counts the effects of rounding float64 values to a shorter type. A value is in at most one of the counts below
// Values.
type Loss struct {
	Values     int64 // how many were narrowed
	Rounded    int64 // became a neighbour that is a normal number
	Subnormal  int64 // became another number that is subnormal: more digits are lost than by usual rounding
	Zeroed     int64 // were not 0 and became 0
	Overflowed int64 // were finite and became infinite
	NaNs       int64 // are NaN, and stay NaN
	// MaxError is the largest relative error |narrowed − value|/|value| of the values that stay finite: 0 if all are
	// exact, 1 if one became 0.
	MaxError float64
}

// Exact reports whether no value was changed.
func (l Loss) Exact() bool { return l.Rounded+l.Subnormal+l.Zeroed+l.Overflowed == 0 }

// Add adds the counts of o.
func (l *Loss) Add(o Loss) {
	l.Values += o.Values
	l.Rounded += o.Rounded
	l.Subnormal += o.Subnormal
	l.Zeroed += o.Zeroed
	l.Overflowed += o.Overflowed
	l.NaNs += o.NaNs
	l.MaxError = max(l.MaxError, o.MaxError)
}

// String describes the loss: "1000 values: 312 rounded, 2 became infinite (relative error up to 5.9e-08)".
func (l Loss) String() string {
	var what []string
	for _, c := range []struct {
		n    int64
		text string
	}{
		{l.Rounded, "rounded"}, {l.Subnormal, "rounded to a subnormal number"}, {l.Zeroed, "became 0"},
		{l.Overflowed, "became infinite"}, {l.NaNs, "NaN"},
	} {
		if c.n > 0 {
			what = append(what, fmt.Sprintf("%d %s", c.n, c.text))
		}
	}
	if l.Exact() {
		what = append([]string{"all exact"}, what...)
	}
	text := fmt.Sprintf("%d values: %s", l.Values, strings.Join(what, ", "))
	if l.MaxError > 0 {
		text += fmt.Sprintf(" (relative error up to %.2g)", l.MaxError)
	}
	return text
}

// Narrow returns the values with elements of type T, each rounded once, to nearest, ties to even, and reports the loss.
// Values out of T's range become infinite, and a NaN stays one.
//
//	val, loss := formats.Narrow[float32](values)
//	a := &formats.CSR[float32]{Rows: m, Cols: k, RowPtr: ptr, ColIdx: idx, Val: val}
func Narrow[T Value](values []float64) ([]T, Loss) {
	out := make([]T, len(values))
	return out, NarrowSlice(out, values)
}

// NarrowSlice is Narrow into dst, which must be at least as long as src.
func NarrowSlice[T Value](dst []T, src []float64) Loss {
	dst = dst[:len(src)]
	var all Loss
	var mu sync.Mutex
	par.Range(len(src), grain, func(lo, hi int) {
		l := narrow(dst[lo:hi], src[lo:hi])
		mu.Lock()
		defer mu.Unlock()
		all.Add(l)
	})
	return all
}

// narrow is NarrowSlice on one core.
func narrow[T Value](dst []T, src []float64) Loss {
	l := Loss{Values: int64(len(src))}
	least := TypeOf[T]().LeastNormal()
	for i, x := range src {
		dst[i] = fromFloat64[T](x)
		if y := number.Float64(dst[i]); y != x {
			l.count(x, y, least)
		}
	}
	return l
}

// count counts x, which became another number y, or is a NaN.
func (l *Loss) count(x, y, least float64) {
	switch {
	case x != x:
		l.NaNs++
		return
	case math.IsInf(y, 0):
		l.Overflowed++
		return
	case y == 0:
		l.Zeroed++
	case math.Abs(y) < least:
		l.Subnormal++
	default:
		l.Rounded++
	}
	l.MaxError = max(l.MaxError, math.Abs((y-x)/x))
}
