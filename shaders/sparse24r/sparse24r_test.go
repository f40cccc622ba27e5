// Products on every device present, held against exact sums; values that are not finite; what auto ranks by.

package sparse24r_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	format "github.com/spmmrun/spmm/formats/sparse24r"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/sparse24r"
	"github.com/spmmrun/spmm/shaders/spec"
)

var suite = shadertest.Suite{
	Format: sparse24r.Format,
	Cases: func(v *spec.Variant, out dtype.Type) (some []shadertest.Case) {
		for i, q := range shadertest.InOrders(v, cases()) {
			if out == dtype.F32 || i%4 == 1 {
				some = append(some, q) // writing C: a share of all that is the same for all
			}
		}
		return some
	},
	Twice: shadertest.Always(shadertest.Case{Pattern: shadertest.Scattered(100, 500, 0.3), K: 500, N: 70,
		Real: true}),
	Specials: shadertest.Always(shadertest.NonFinite(), besideThree()),
}

func TestFormat(t *testing.T) { suite.Run(t) }

// besideThree is a product by a B whose rows 3, 7, 11 and 15 are special. In rows of A three entries stand before them
// in their groups, or none do, so that they are in both parts of the format.
func besideThree() shadertest.Specials {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	q := shadertest.Specials{Name: "beside three", B: slices.Repeat([]float32{1}, 16), N: 37}
	q.B[3], q.B[7], q.B[11], q.B[15] = inf, nan, inf, -inf
	for _, row := range []struct {
		cols []int32
		last float32 // value of the last entry; those before are 1
		want float32
	}{
		{[]int32{0, 1, 2}, 1, 3}, // next to an infinity
		{[]int32{0, 1, 3}, 2, inf},
		{[]int32{0, 1, 2, 3}, -2, -inf},
		{[]int32{0, 1, 2, 3}, 0, nan}, // a stored zero is an entry
		{[]int32{3}, 0, nan},
		{[]int32{4, 5, 6}, 1, 3},
		{[]int32{4, 5, 7}, 1, nan},
		{[]int32{3, 8, 9, 11}, 1, inf},
		{[]int32{3, 12, 13, 15}, 1, nan},
		{nil, 0, 0},
	} {
		vals := slices.Repeat([]float32{1}, len(row.cols))
		if len(vals) > 0 {
			vals[len(vals)-1] = row.last
		}
		q.A = append(q.A, shadertest.Special{Cols: row.cols, Vals: vals, Want: row.want})
	}
	return q
}

func cases() []shadertest.Case {
	cs := []shadertest.Case{
		{Name: "no entries", Pattern: make([][]int32, 5), K: 30, N: 9, Beta: 2},
		{Name: "no entries, C forgotten", Pattern: make([][]int32, 5), K: 30, N: 9},
		{Name: "one number", Pattern: [][]int32{{2}}, K: 40, N: 1},
		{Name: "K=1", Pattern: shadertest.Spread(1, 1, 0, 1, 1), K: 1, N: 9},
		{Name: "one dense row", Pattern: shadertest.Spread(99, 0, 0, 99, 0), K: 99, N: 17, Alpha: -2, Beta: 0.5},
		{Name: "dense", Pattern: shadertest.Spread(70, 70, 70, 70, 70, 70, 70), K: 70, N: 33},
		{Name: "inexact", Pattern: shadertest.Scattered(70, 300, 0.4), K: 300, N: 50, Alpha: 0.3, Beta: 1.7,
			Real: true},
		// Several tiles for each cluster, of each height.
		{Name: "tall tiles", Pattern: shadertest.Scattered(1100, 300, 0.2), K: 300, N: 600, Units: 4},
		{Name: "tiles", Pattern: shadertest.Scattered(300, 500, 0.1), K: 500, N: 400, LDC: 403, Beta: 1, Units: 4},
		{Name: "small tiles", Pattern: shadertest.Scattered(140, 900, 0.1), K: 900, N: 100, Units: 4},
		{Name: "a tile for each cluster", Pattern: shadertest.Scattered(150, 900, 0.1), K: 900, N: 140, Units: 132},
	}
	for _, n := range []int{1, 2, 3, 5, 8, 9, 31, 33, 64, 65, 129, 300} {
		cs = append(cs, shadertest.Case{Name: fmt.Sprintf("%d columns", n),
			Pattern: shadertest.Scattered(37, 200, 0.3), K: 200, N: n, LDB: (n + 15) &^ 7, LDC: n + n%3})
	}
	for _, k := range []int{3, 5, 63, 64, 65, 128, 257, 1030} {
		cs = append(cs, shadertest.Case{Name: fmt.Sprintf("K=%d", k), Pattern: shadertest.Scattered(20, k, 0.5), K: k,
			N: 24})
	}
	cs = append(cs, shadertest.Epilogues(shadertest.Case{Pattern: shadertest.Scattered(35, 300, 0.3), K: 300, N: 77},
		shadertest.Case{Pattern: shadertest.Scattered(35, 300, 0.3), K: 300, N: 3})...)
	return append(cs, shadertest.Case{Name: "many rows", Pattern: shadertest.Scattered(601, 40, 0.4), K: 40, N: 20})
}

// TestFold: grids that are folded along z.
func TestFold(t *testing.T) {
	suite.Each(t, func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
		if v.Maps == 0 { // clusters' grids cannot be bent
			shadertest.Case{Pattern: shadertest.Scattered(601, 40, 0.4), K: 40, N: 20, Fold: true}.Run(t, dev,
				sparse24r.Format, v, out)
		}
	})
}

// TestStats: what auto ranks by; and a matrix that is encoded already is packed as one that is not.
func TestStats(t *testing.T) {
	a := shadertest.Ones[float32](shadertest.Scattered(100, 300, 0.3), 300)
	suite.Packed(t, a, func(v *spec.Variant, e *spec.Packed) {
		m, err := format.Format.Encode(formats.ConvertTo(a, v.In), nil)
		if err != nil {
			t.Fatal(err)
		}
		adopted, err := sparse24r.Format.Adopt(m, v)
		if err != nil {
			t.Fatal(err)
		}
		for i, x := range e.Arrays {
			if !bytes.Equal(x.Data, adopted.Arrays[i].Data) {
				t.Errorf("%s: array %s differs where the matrix was encoded before", v.Name, x.Name)
			}
		}
		s := e.Stats
		if s.StoredBytes != e.Bytes() || e.NNZ != a.NNZ() || s.MACs < a.NNZ() || s.Fill <= 0 || s.Fill > 1 ||
			s.Gathers <= 0 || e.Items <= 0 {
			t.Errorf("%s: %+v for %d entries in %d bytes, %d items", v.Name, s, a.NNZ(), e.Bytes(), e.Items)
		}
	})
}
