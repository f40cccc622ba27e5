// Products on every device present, held against exact sums; values that are not finite; refusals; grids of clusters;
// speed.

package nm_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	format "github.com/spmmrun/spmm/formats/nm"
	"github.com/spmmrun/spmm/shaders/nm"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/spec"
)

var suite = shadertest.Suite{
	Format: nm.Format,
	Types:  shadertest.Floats, Heights: []uint32{1, 8},
	Others: nm.CoopVariants,
	Slow:   func(v *spec.Variant) bool { return v.Const("V") > 32 },
	Tiles:  func(v *spec.Variant) (stage, rows uint32) { return v.Const("STAGE"), v.Const("ROWS") },
	Cases: func(v *spec.Variant, out dtype.Type) (some []shadertest.Case) {
		for i, q := range shadertest.InOrders(v, cases(v)) {
			if out == dtype.F32 && slices.Contains(nm.Format.Variants, v) || i%4 == 1 {
				some = append(some, q) // writing C, and tiles of other vendors: a share of all that is the same for all
			}
		}
		return some
	},
	Twice: func(v *spec.Variant) []shadertest.Case {
		p := fits(v)[0]
		return []shadertest.Case{{Pattern: pattern(p.V+30, 500, p, 1), K: 500, N: 70, Real: true}}
	},
	Specials: func(*spec.Variant) (specials []shadertest.Specials) {
		for _, n := range []int{37, 1, 4} {
			q := shadertest.NonFinite().Apart(16)
			q.N = n
			specials = append(specials, q)
		}
		return specials
	},
}

func TestFormat(t *testing.T) { suite.Run(t) }

// pattern returns columns of rows that obey p; each group has up to N units, of whose places each is taken with
// probability density.
func pattern(rows, k int, p format.Pattern, density float64) [][]int32 {
	cols := make([][]int32, rows)
	for i := range cols {
		units := rand.New(rand.NewPCG(uint64(i/p.V), 1)) // the same for all rows of a panel
		r := rand.New(rand.NewPCG(uint64(i), 2))
		for lo := 0; lo < k; lo += p.M * p.W {
			places := units.Perm(p.M)[:p.N]
			slices.Sort(places)
			for _, u := range places {
				for c := lo + u*p.W; c < min(k, lo+(u+1)*p.W); c++ {
					if r.Float64() < density {
						cols[i] = append(cols[i], int32(c))
					}
				}
			}
		}
	}
	return cols
}

// fits lists units that a variant takes.
func fits(v *spec.Variant) []format.Pattern {
	of := func(n, m, v, w int) format.Pattern { return format.Pattern{N: n, M: m, V: v, W: w} }
	tall := int(v.Const("V"))
	switch {
	case nm.Is24(v):
		return []format.Pattern{of(2, 4, 1, 1), of(1, 4, 1, 1), of(2, 8, 1, 1), of(2, 16, 1, 1)}
	case tall == 1:
		return []format.Pattern{of(2, 4, 1, 1), of(4, 8, 1, 1), of(1, 4, 1, 1), of(2, 16, 1, 1), of(8, 32, 1, 1),
			of(3, 10, 1, 1), of(5, 64, 1, 1), of(32, 64, 1, 1), of(1, 2, 1, 1)}
	case tall == 8:
		return []format.Pattern{of(2, 4, 8, 1), of(4, 16, 16, 1), of(3, 10, 32, 1), of(2, 20, 64, 1), of(1, 4, 8, 8),
			of(2, 8, 16, 4), of(1, 2, 128, 1)}
	}
	return []format.Pattern{of(2, 4, tall, 1), of(4, 16, tall, 1), of(3, 10, 2*tall, 1), of(5, 64, tall, 1),
		of(1, 4, tall, 16), of(2, 8, tall, 2)}
}

func cases(v *spec.Variant) []shadertest.Case {
	ps := fits(v)
	tall := ps[0].V
	cs := []shadertest.Case{
		{Name: "no entries", Pattern: make([][]int32, 5), K: 30, N: 9, Beta: 2},
		{Name: "no entries, C forgotten", Pattern: make([][]int32, 5), K: 30, N: 9},
		{Name: "one number", Pattern: [][]int32{{2}}, K: 40, N: 1},
		{Name: "inexact", Pattern: pattern(tall+3, 300, ps[0], 1), K: 300, N: 50, Alpha: 0.3, Beta: 1.7, Real: true},
	}
	if !nm.Is24(v) { // what obeys no pattern, but is small
		cs = append(cs,
			shadertest.Case{Name: "K=1", Pattern: shadertest.Spread(1, 1, 0, 1, 1), K: 1, N: 9},
			shadertest.Case{Name: "one dense row", Pattern: shadertest.Spread(99, 0, 0, 99, 0), K: 99, N: 17, Alpha: -2,
				Beta: 0.5},
			shadertest.Case{Name: "dense", Pattern: shadertest.Spread(70, 70, 70, 70, 70, 70, 70), K: 70, N: 33})
	}
	if nm.Clusters(v) { // several tiles for each cluster, of each height
		cs = append(cs,
			shadertest.Case{Name: "tall tiles", Pattern: pattern(1100, 300, ps[0], 0.9), K: 300, N: 600, Units: 4},
			shadertest.Case{Name: "tiles", Pattern: pattern(300, 500, ps[0], 0.9), K: 500, N: 400, LDC: 403, Beta: 1, Units: 4},
			shadertest.Case{Name: "small tiles", Pattern: pattern(140, 900, ps[0], 0.9), K: 900, N: 100, Units: 4})
	}
	for i, p := range ps {
		cs = append(cs,
			shadertest.Case{Name: p.String(), Pattern: pattern(2*p.V+3, 5*p.M*p.W+p.M/2, p, 0.9), K: 5*p.M*p.W + p.M/2,
				N: 20 + 13*i, LDC: 77 + 20*i, Alpha: -2, Beta: 0.5},
			shadertest.Case{Name: p.String() + ", whole groups", Pattern: pattern(3*p.V, 8*p.M*p.W, p, 1), K: 8 * p.M * p.W,
				N: 40})
	}
	for _, n := range []int{1, 2, 3, 5, 8, 9, 31, 33, 64, 129, 300} {
		cs = append(cs, shadertest.Case{Name: fmt.Sprintf("%d columns", n), Pattern: pattern(2*tall+5, 200, ps[0], 0.8),
			K: 200, N: n, LDB: (n + 15) &^ 7, LDC: n + n%3})
	}
	for _, k := range []int{ps[0].M, 63, 64, 65, 128, 257, 1030} { // lengths around the stages
		cs = append(cs, shadertest.Case{Name: fmt.Sprintf("K=%d", k), Pattern: pattern(tall, k, ps[0], 1), K: k, N: 24})
	}
	cs = append(cs, shadertest.Epilogues(shadertest.Case{Pattern: pattern(tall+3, 300, ps[0], 1), K: 300, N: 77},
		shadertest.Case{Pattern: pattern(tall+3, 300, ps[0], 1), K: 300, N: 3})...)
	return append(cs,
		shadertest.Case{Name: "many rows", Pattern: pattern(6*max(tall, 100)+1, 40, ps[0], 0.9), K: 40, N: 20,
			Fold: !nm.Clusters(v)},
		shadertest.Case{Name: "many rows, one column", Pattern: pattern(700, 40, ps[0], 0.9), K: 40, N: 1, Beta: 1,
			Fold: !nm.Clusters(v), Units: 4},
	)
}

// TestEncodeRefuses: a matrix that is not N:M, or of other units, is for another format.
func TestEncodeRefuses(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	random := &formats.CSR[float32]{Rows: 600, Cols: 600, RowPtr: []int64{0}}
	for range random.Rows {
		for j := range random.Cols {
			if r.Float64() < 0.5 {
				random.ColIdx, random.Val = append(random.ColIdx, int32(j)), append(random.Val, 1)
			}
		}
		random.RowPtr = append(random.RowPtr, int64(len(random.Val)))
	}
	for _, v := range nm.Format.Variants {
		a := formats.ConvertTo(random, v.In)
		if v.Const("V") == 1 && !nm.Is24(v) {
			continue // some N:64 fits half of all places anyhow
		}
		if _, err := nm.Format.Encode(a, v); !errors.Is(err, format.ErrPattern) || !errors.Is(err, backend.ErrUnsupported) {
			t.Errorf("%s: %v", v.Name, err)
		}
	}
	v := nm.Format.Variants[len(nm.Format.Variants)-1]
	if _, err := nm.Format.Encode(&formats.CSR[half.BF16]{RowPtr: []int64{0}}, v); err == nil {
		t.Errorf("%s packs bf16", v.Name)
	}
	bad := &formats.CSR[float32]{Rows: 1, Cols: 1, RowPtr: []int64{0, 1}, ColIdx: []int32{1}, Val: []float32{1}}
	if _, err := nm.Format.Encode(bad, v); err == nil {
		t.Error("an invalid matrix is packed")
	}
}

// TestEncodeEmpty: a small matrix without entries obeys every pattern.
func TestEncodeEmpty(t *testing.T) {
	suite.Packed(t, shadertest.Ones[float32](make([][]int32, 5), 30), func(*spec.Variant, *spec.Packed) {})
}

// TestClusterGrid: whole clusters, no more than run at once where each takes tiles in turn (those whose blocks share
// A's columns do not, nor do those that sum a part each), and none for nothing.
func TestClusterGrid(t *testing.T) {
	heights := map[uint32]bool{}
	for _, v := range nm.Format.Variants {
		if !nm.Clusters(v) {
			continue
		}
		a := &formats.CSR[float32]{Cols: 64}
		for _, m := range []int{0, 1, 64, 129, 1000, 4096, 100000} {
			a.Rows, a.RowPtr = m, make([]int64, m+1)
			a.ColIdx, a.Val = make([]int32, 0, 16*m), make([]float32, 0, 16*m) // every fourth column
			for i := range m {
				for j := 0; j < a.Cols; j += 4 {
					a.ColIdx, a.Val = append(a.ColIdx, int32(j)), append(a.Val, 1)
				}
				a.RowPtr[i+1] = int64(len(a.Val))
			}
			e, err := nm.Format.Encode(formats.ConvertTo(a, v.In), v)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range []int{1, 64, 65, 512, 2048, 5000} {
				for _, units := range []int{0, 1, 7, 132} {
					l, err := nm.Format.LaunchSuited(v, e, spec.Problem{M: m, K: a.Cols, N: n, LDB: (n + 7) &^ 7, LDC: n,
						Out: dtype.F32, Caps: backend.Caps{Units: units}})
					if err != nil {
						t.Fatal(err)
					}
					if x := l.Passes[0].Variant; x.Const("SPLITS") > 0 {
						tiles := spec.Ceil(m, int(x.Const("ROWS"))) * spec.Ceil(n, int(x.Const("COLS")))
						if got, want := l.Passes[0].Groups, [3]uint32{uint32(tiles) * x.Const("SPLITS"), 1, 1}; got != want {
							t.Errorf("%s, %d×%d on %d units: %v workgroups, want %v", x.Name, m, n, units, got, want)
						}
						continue
					}
					tall := shadertest.Param(nm.Format.Program, l.Passes[0], "tall")
					shared := shadertest.Param(nm.Format.Program, l.Passes[0], "wide") == 1
					heights[tall] = true
					if g := l.Passes[0].Groups[0]; g%2 != 0 || (g == 0) != (m == 0) || !shared && g > uint32(max(2, units)) ||
						l.Passes[0].Groups[1] != 1 || l.Passes[0].Groups[2] != 1 {
						t.Errorf("%d×%d on %d units: %v workgroups of %d rows", m, n, units, l.Passes[0].Groups, tall)
					}
				}
			}
		}
	}
	for _, tall := range []uint32{64, 128, 256} {
		if !heights[tall] {
			t.Errorf("no problem is cut into tiles of %d rows", tall)
		}
	}
}

// TestStats: what auto ranks by.
func TestStats(t *testing.T) {
	for _, v := range nm.Format.Variants {
		p := fits(v)[0]
		a := shadertest.Ones[float32](pattern(256, 512, p, 1), 512)
		e, err := nm.Format.Encode(formats.ConvertTo(a, v.In), v)
		if err != nil {
			t.Errorf("%s: %v", v.Name, err)
			continue
		}
		s := e.Stats
		if s.StoredBytes != e.Bytes() || s.Slots < a.NNZ() || s.MACs < a.NNZ() || s.Fill <= 0.5 || s.Fill > 1 ||
			s.Gathers <= 0 {
			t.Errorf("%s: %+v for %d entries in %d bytes", v.Name, s, a.NNZ(), e.Bytes())
		}
	}
}

// TestAdopt: a matrix that is encoded already is taken in the patterns that the variant takes, and in no others.
func TestAdopt(t *testing.T) {
	a := &formats.CSR[float32]{Rows: 128, Cols: 192, RowPtr: make([]int64, 129)} // no entries: any pattern will do
	for _, p := range []format.Pattern{{N: 2, M: 4, V: 1, W: 1}, {N: 4, M: 8, V: 1, W: 1}, {N: 33, M: 64, V: 1, W: 1},
		{N: 1, M: 4, V: 1, W: 2},
		{N: 2, M: 4, V: 8, W: 1}, {N: 2, M: 4, V: 12, W: 1}, {N: 2, M: 4, V: 24, W: 4}, {N: 2, M: 4, V: 24, W: 3},
		{N: 2, M: 4, V: 64, W: 2}, {N: 2, M: 4, V: 128, W: 1}} {
		for _, v := range nm.Format.Variants {
			tall := int(v.Const("V"))
			want := p.V == 1 && p.W == 1 && tall == 1 && p.N <= 32 && (!nm.Is24(v) || p.N == 2) || p.W != 3 && p.V > 1 &&
				(tall == 8 && p.V%8 == 0 || tall == p.V)
			m, err := encoded(a, p, v.In)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := nm.Format.Adopt(m, v); (err == nil) != want || err != nil && !errors.Is(err, backend.ErrUnsupported) {
				t.Errorf("%v for %s: %v", p, v.Name, err)
			}
		}
	}
}

// encoded returns a in a pattern, as a variant's elements.
func encoded(a *formats.CSR[float32], p format.Pattern, t dtype.Type) (formats.Encoded, error) {
	switch a := formats.ConvertTo(a, t).(type) {
	case *formats.CSR[half.F16]:
		return format.Encode(a, p)
	case *formats.CSR[half.BF16]:
		return format.Encode(a, p)
	}
	return format.Encode(a, p)
}

// BenchmarkMultiply is 4096×4096 in f16 on every device: 2:4 and 4:16 of single entries, and vectors at 75 % and 90 %
// zeros, times one column to 4096; by each variant that takes the pattern.
func BenchmarkMultiply(b *testing.B) {
	for _, p := range []format.Pattern{
		{N: 2, M: 4, V: 1, W: 1}, {N: 4, M: 16, V: 1, W: 1},
		{N: 4, M: 16, V: 32, W: 1}, {N: 4, M: 16, V: 64, W: 1}, {N: 4, M: 16, V: 128, W: 1},
		{N: 2, M: 20, V: 32, W: 1}, {N: 2, M: 20, V: 64, W: 1}, {N: 2, M: 20, V: 128, W: 1},
		{N: 1, M: 4, V: 32, W: 32},
	} {
		matrix := func() formats.Sparse { return shadertest.Ones[half.F16](pattern(4096, 4096, p, 1), 4096) }
		takes := func(v *spec.Variant) bool { return shadertest.OfF16(v) && suits(v, p) }
		shadertest.BenchMultiply(b, p.String(), matrix, []int{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096},
			takes, nm.Format)
	}
}

// suits tells whether a variant is for matrices of a pattern.
func suits(v *spec.Variant, p format.Pattern) bool {
	tall := int(v.Const("V"))
	return tall == p.V && (!nm.Is24(v) || p.M == 4) || tall == 8 && p.V > 8
}
