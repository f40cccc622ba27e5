// Products on every device present, in all orders, held against exact sums; values that are not finite; refusals.

package dense_test

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/shaders/dense"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/spec"
)

var suite = shadertest.Suite{
	Format: dense.Format,
	Types:  shadertest.Floats,
	Others: dense.CoopVariants,
	Cases: func(v *spec.Variant, _ dtype.Type) (taken []shadertest.Case) {
		cs := cases()
		if v.Code == backend.CodePTX || v.Need.Lanes { // others sum a tile at a time
			cs = append(cs, sharedOut()...)
		}
		for _, q := range cs {
			if v.Quant != dtype.Invalid && strings.HasPrefix(q.Name, "zeros filled in") {
				continue // quantised matrices store every element
			}
			// The grids of hopper.cu, of clusters of blocks that take tiles in turn, are one line.
			q.Fold = q.Fold && !v.Need.Exact
			if (q.BCol || q.CCol) && !v.AnyOrder {
				continue // package plan brings them into the order that the variant takes
			}
			taken = append(taken, q)
		}
		return taken
	},
	Twice: shadertest.Always(shadertest.Case{Pattern: full(100, 300), K: 300, N: 70, Real: true}),
	Specials: func(v *spec.Variant) []shadertest.Specials {
		if v.Quant != dtype.Invalid {
			return nil
		}
		return []shadertest.Specials{shadertest.NonFinite()}
	},
}

func TestFormat(t *testing.T) { suite.Run(t) }

// full is the pattern of a matrix that stores every element.
func full(rows, k int) [][]int32 {
	lens := make([]int, rows)
	for i := range lens {
		lens[i] = k
	}
	return shadertest.Spread(k, lens...)
}

func cases() []shadertest.Case {
	cs := []shadertest.Case{
		{Name: "one number", Pattern: full(1, 1), K: 1, N: 1},
		{Name: "nothing to sum", Pattern: full(5, 0), K: 0, N: 9, Beta: 2},
		{Name: "nothing to sum, C forgotten", Pattern: full(5, 0), K: 0, N: 9},
		{Name: "K=1", Pattern: full(37, 1), K: 1, N: 40, Alpha: 2},
		{Name: "one row", Pattern: full(1, 999), K: 999, N: 17, Alpha: -2, Beta: 0.5},
		{Name: "one column", Pattern: full(131, 70), K: 70, N: 1, Beta: 1},
		{Name: "whole tiles", Pattern: full(128, 64), K: 64, N: 128},
		{Name: "whole wide tiles", Pattern: full(256, 64), K: 64, N: 256, Alpha: 3},
		{Name: "incomplete tiles", Pattern: full(67, 129), K: 129, N: 131, Beta: 1},
		{Name: "padding", Pattern: full(29, 60), K: 60, N: 33, LDB: 64, LDC: 77, Beta: -1},
		{Name: "rows of C apart by whole quads", Pattern: full(29, 60), K: 60, N: 34, LDC: 40, Beta: 2},
		{Name: "tiles along z", Pattern: full(130, 20), K: 20, N: 530, Fold: true},
		{Name: "inexact", Pattern: full(50, 300), K: 300, N: 50, Alpha: 0.3, Beta: 1.7, Real: true},
		{Name: "zeros filled in", Pattern: shadertest.Spread(129, 3, 0, 129, 64, 1, 128, 65, 33), K: 129, N: 67, Beta: 1},
	}
	for i, k := range []int{15, 16, 31, 32, 33, 39, 40, 65} { // sums around whole steps and loads
		cs = append(cs, shadertest.Case{Name: fmt.Sprintf("K=%d", k), Pattern: full(9, k), K: k, N: 11, BCol: i%2 == 0,
			CCol: i%4 < 2})
	}
	cs = append(cs, shadertest.Epilogues(shadertest.Case{Pattern: full(69, 20), K: 20, N: 37},
		shadertest.Case{Name: "transposed", Pattern: full(69, 20), K: 20, N: 37, BCol: true, CCol: true})...)
	for i := range 14 {
		for o := range 3 {
			q := cs[i]
			q.Name, q.BCol, q.CCol = fmt.Sprintf("%s, order %d", q.Name, o+1), o != 1, o != 0
			cs = append(cs, q)
		}
	}
	return cs
}

// sharedOut are cases with split-K, or with more tiles than CTAs, or with both, on devices of this many units.
func sharedOut() []shadertest.Case {
	return []shadertest.Case{
		{Name: "split-K", Pattern: full(67, 1100), K: 1100, N: 70, Beta: 1, Units: 132},
		{Name: "split-K, transposed", Pattern: full(130, 530), K: 530, N: 7, BCol: true, CCol: true, Units: 132},
		{Name: "tiles in turn", Pattern: full(300, 70), K: 70, N: 530, Units: 2},
		{Name: "split-K, both along", Pattern: full(67, 1100), K: 1100, N: 70, Beta: 1, BCol: true, Units: 132},
		{Name: "few columns, long sums", Pattern: full(67, 1999), K: 1999, N: 27, Real: true, Units: 132},
		{Name: "few columns, along", Pattern: full(67, 1999), K: 1999, N: 27, BCol: true, Units: 132},
		{Name: "whole tiles, then split-K", Pattern: full(264, 530), K: 530, N: 140, Units: 6},
		{Name: "shares of pairs of tiles", Pattern: full(300, 4500), K: 4500, N: 100, Beta: 1, Units: 6},
		{Name: "shares of tiles, three of one", Pattern: full(300, 4500), K: 4500, N: 60, Real: true, Units: 5},
		{Name: "shares of narrow tiles", Pattern: full(300, 4500), K: 4500, N: 7, Units: 5},
		{Name: "tiles in turn, then shares", Pattern: full(1000, 3500), K: 3500, N: 60, Units: 3},
	}
}

// TestNonFinite: an output is of the class that operands which are not finite make it, in whatever order they are
// summed, and those alone that such an operand touches.
func TestNonFinite(t *testing.T) {
	suite.Each(t, func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
		for order := range 4 {
			if order > 0 && !v.AnyOrder {
				break
			}
			nonFinite(t, dev, v, out, order)
		}
	})
}

func nonFinite(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type, order int) {
	t.Helper()
	const m, k, n = 70, 40, 67
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	a, b := formats.NewDense[float32](m, k), formats.NewDense[float32](k, n)
	for _, d := range []*formats.Dense[float32]{a, b} {
		for i := range d.Data {
			d.Data[i] = 1
		}
	}
	// Column 3 of B has an infinity, 10 two that cancel, 20 NaN; row 5 of A makes nothing of the first, and row 6 turns
	// it.
	b.Set(33, 3, inf)
	b.Set(2, 10, inf)
	b.Set(39, 10, -inf)
	b.Set(17, 20, nan)
	a.Set(5, 33, 0)
	a.Set(6, 33, -1)
	infinite := v.Quant == dtype.Invalid // quantised values are finite
	if infinite {
		a.Set(69, 0, inf)
	}
	want := func(i, j int) float32 {
		switch {
		case j == 20 || j == 10 || j == 3 && i == 5:
			return nan
		case j == 3 && i == 6:
			return -inf
		case j == 3 || i == 69 && infinite:
			return inf
		case i == 5:
			return k - 1
		case i == 6:
			return k - 2
		}
		return k
	}
	bl, c := b.Layout(order&1 != 0, 72), &formats.Dense[float32]{Rows: m, Cols: n, LD: n, ColMajor: order&2 != 0}
	if c.ColMajor {
		c.LD = m
	}
	mem := shadertest.Array{Type: out, Data: make([]byte, m*n*out.Size())}
	shadertest.Multiply(t, dev, dense.Format, v, formats.ConvertTo(a.Sparse(), v.In),
		shadertest.NewArray(v.In, bl.Data).Data, nil, mem.Data,
		spec.Problem{M: m, K: k, N: n, LDB: bl.LD, LDC: c.LD, BCol: bl.ColMajor, CCol: c.ColMajor, Out: out, Alpha: 1})
	for i := range mem.Len() {
		c.Data = append(c.Data, float32(mem.At(i)))
	}
	for i := range m {
		for j := range n {
			if got, want := c.At(i, j), want(i, j); got != want && (got == got || want == want) {
				t.Fatalf("order %d: C[%d,%d] is %v, want %v", order, i, j, got, want)
			}
		}
	}
}

// TestEncode: what lacks an element is filled with zeros, and its pattern kept; a matrix that lies side by side is not
// copied.
func TestEncode(t *testing.T) {
	var v *spec.Variant // of the CPU, for float32
	for _, x := range dense.Format.Variants {
		if x.Code == backend.CodeGo && x.In == dtype.F32 {
			v = x
		}
	}
	a := &formats.CSR[float32]{Rows: 2, Cols: 2, RowPtr: []int64{0, 2, 3}, ColIdx: []int32{0, 1, 1},
		Val: []float32{1, 2, 3}}
	filled, err := dense.Format.Encode(a, v)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := backend.View[float32](filled.Arrays[0].Data),
		[]float32{0: 1, 1: 2, 9: 3, 15: 0}; !slices.Equal(got, want) {
		t.Errorf("filled as %v, want %v", got, want)
	}
	if got := backend.View[uint32](filled.Arrays[1].Data); !slices.Equal(got, []uint32{3, 2, 0, 0}) {
		t.Errorf("entries are %v", got)
	}
	again := filled.Format.(interface {
		WithValues([]float32) formats.Encoded
	}).WithValues([]float32{4, 5, 6})
	if want := (&formats.CSR[float32]{Rows: 2, Cols: 2, RowPtr: a.RowPtr, ColIdx: a.ColIdx,
		Val: []float32{4, 5, 6}}); !want.Equal(again.(*formats.CSR[float32])) {
		t.Errorf("with new values it is %v", again)
	}
	if other, err := dense.Format.Adopt(again, v); err != nil ||
		!bytes.Equal(other.Arrays[1].Data, filled.Arrays[1].Data) || backend.View[float32](other.Arrays[0].Data)[9] != 6 {
		t.Errorf("new values are packed otherwise (%v)", err)
	}
	unordered := &formats.CSR[float32]{Rows: 1, Cols: 3, RowPtr: []int64{0, 2}, ColIdx: []int32{2, 0},
		Val: []float32{1, 2}}
	if _, err := dense.Format.Encode(unordered, v); err == nil {
		t.Error("a matrix that is not valid is accepted")
	}
	d := formats.NewDense[float32](3, 16)
	e, err := dense.Format.Adopt(d, v)
	if err != nil {
		t.Fatal(err)
	}
	if got := backend.View[float32](e.Arrays[0].Data); &got[0] != &d.Data[0] {
		t.Error("rows that lie side by side are copied")
	}
	for _, x := range []*formats.Dense[float32]{d.Layout(true, 5), d.Layout(false, 21)} {
		for i := range d.Data {
			d.Data[i] = float32(i)
			x.Set(i/16, i%16, float32(i))
		}
		if e, err := dense.Format.Adopt(x, v); err != nil || !bytes.Equal(e.Arrays[0].Data, backend.Bytes(d.Data)) {
			t.Errorf("column-major %v, leading dimension %d: packed otherwise (%v)", x.ColMajor, x.LD, err)
		}
	}
	if _, err := dense.Format.Adopt(&formats.Dense[float32]{Rows: 3, Cols: 4, LD: 4, Data: make([]float32, 11)},
		v); err == nil {
		t.Error("a matrix that lacks memory is accepted")
	}
}

// TestTiles: with few columns a kernel that streams A runs; with more, tiles as large as keep the device busy, of sums
// that are cut where they are few. Where C is column-major, few columns are few rows.
func TestTiles(t *testing.T) {
	i := slices.IndexFunc(dense.Format.Variants, func(v *spec.Variant) bool { return v.Name == "vulkan_tiles" })
	v := dense.Format.Variants[i]
	e, err := dense.Format.Encode(formats.ConvertTo(formats.NewDense[float32](4096, 4096).Sparse(), v.In), v)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		n         int
		ccol      bool
		want      string
		launches  int
		workspace int64 // more than
	}{
		{1, false, "n8", 1, 0}, {8, false, "n8", 1, 0}, {9, false, "n16", 1, 0}, {32, false, "n32", 1, 0},
		{64, false, "32x64", 1, 0}, {128, false, "64x64", 1, 0}, {512, false, "128x128", 1, 0},
		{4096, false, "128x256", 1, 0},
		{8, true, "32x64_transposed", 2, 4 * 4096 * 8}, {4096, true, "128x256_transposed", 1, 0},
	} {
		p := spec.Problem{M: 4096, K: 4096, N: c.n, LDB: 4096, LDC: 4096, CCol: c.ccol, Out: dtype.F32,
			Caps: backend.Caps{Units: 132}}
		l, err := dense.Format.LaunchSuited(v, e, p)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Passes[0].Variant.Name; got != "vulkan_tiles_"+c.want || len(l.Passes) != c.launches ||
			l.Workspace <= c.workspace {
			t.Errorf("%d columns, C column-major %v: %s in %d launches with %d bytes, want %s in %d", c.n, c.ccol, got, len(l.Passes), l.Workspace, c.want, c.launches)
		}
		if suited := dense.Format.Suited(v, e, p); suited.Name != l.Passes[0].Variant.Name {
			t.Errorf("%d columns: predictions go by %s", c.n, suited.Name)
		}
	}
}

// TestLaunch: tiles cover C in both orders, and problems that do not fit the matrix are refused.
func TestLaunch(t *testing.T) {
	covered := func(l spec.Launch) int { // tiles of 64×64; one block may take them all in turn
		g, v := l.Passes[0].Groups, l.Passes[0].Variant
		if v.Const("CLUSTER_ROWS") > 0 && g[0] > 0 {
			return math.MaxInt
		}
		return int(g[0]*g[1]*g[2]) * max(1, int(v.Const("ROWS")/64*v.Const("COLS")/64))
	}
	for _, v := range dense.Format.Variants {
		e, err := dense.Format.Encode(formats.ConvertTo(formats.NewDense[float32](100, 3).Sparse(), v.In), v)
		if err != nil {
			t.Fatal(err)
		}
		for _, transposed := range []bool{false, true} {
			if transposed && !v.AnyOrder {
				continue
			}
			p := spec.Problem{M: 100, K: 3, N: 700, LDB: 704, LDC: 700, CCol: transposed, Out: dtype.F32}
			l, err := dense.Format.LaunchSuited(v, e, p)
			if err != nil {
				t.Fatalf("%s: %v", v.Name, err)
			}
			rows, cols := 100, 700
			if transposed {
				rows, cols = cols, rows
			}
			if got, want := covered(l), spec.Ceil(rows, 64)*spec.Ceil(cols, 64); got < want {
				t.Errorf("%s: a grid of %v for %d tiles", v.Name, l.Passes[0].Groups, want)
			}
			p.N = 0
			if l, err := dense.Format.LaunchSuited(v, e, p); err != nil || l.Passes[0].Groups[0] != 0 {
				t.Errorf("%s: no columns: a grid of %v, error %v", v.Name, l.Passes, err)
			}
			p.N, p.LDC = 700, 99
			if _, err := dense.Format.LaunchSuited(v, e, p); err == nil {
				t.Errorf("%s: lines of C of 99 elements are accepted", v.Name)
			}
		}
	}
}
