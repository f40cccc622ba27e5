package nm_test

import (
	"errors"
	"fmt"
	"math"
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
		return []format.Pattern{of(2, 4, 1, 1), of(4, 8, 1, 1), of(1, 4, 1, 1), of(2, 16, 1, 1), of(8, 32, 1, 1), of(3, 10, 1, 1), of(5, 64, 1, 1), of(32, 64, 1, 1), of(1, 2, 1, 1)}
	case tall == 8:
		return []format.Pattern{of(2, 4, 8, 1), of(4, 16, 16, 1), of(3, 10, 32, 1), of(2, 20, 64, 1), of(1, 4, 8, 8), of(2, 8, 16, 4), of(1, 2, 128, 1)}
	}
	return []format.Pattern{of(2, 4, tall, 1), of(4, 16, tall, 1), of(3, 10, 2*tall, 1), of(5, 64, tall, 1), of(1, 4, tall, 16), of(2, 8, tall, 2)}
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
			shadertest.Case{Name: "one dense row", Pattern: shadertest.Spread(99, 0, 0, 99, 0), K: 99, N: 17, Alpha: -2, Beta: 0.5},
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
			shadertest.Case{Name: p.String(), Pattern: pattern(2*p.V+3, 5*p.M*p.W+p.M/2, p, 0.9), K: 5*p.M*p.W + p.M/2, N: 20 + 13*i, LDC: 77 + 20*i, Alpha: -2, Beta: 0.5},
			shadertest.Case{Name: p.String() + ", whole groups", Pattern: pattern(3*p.V, 8*p.M*p.W, p, 1), K: 8 * p.M * p.W, N: 40})
	}
	for _, n := range []int{1, 2, 3, 5, 8, 9, 31, 33, 64, 129, 300} {
		cs = append(cs, shadertest.Case{Name: fmt.Sprintf("%d columns", n), Pattern: pattern(2*tall+5, 200, ps[0], 0.8), K: 200, N: n, LDB: (n + 15) &^ 7, LDC: n + n%3})
	}
	for _, k := range []int{ps[0].M, 63, 64, 65, 128, 257, 1030} { // lengths around the stages
		cs = append(cs, shadertest.Case{Name: fmt.Sprintf("K=%d", k), Pattern: pattern(tall, k, ps[0], 1), K: k, N: 24})
	}
	cs = append(cs, shadertest.Epilogues(shadertest.Case{Pattern: pattern(tall+3, 300, ps[0], 1), K: 300, N: 77}, shadertest.Case{Pattern: pattern(tall+3, 300, ps[0], 1), K: 300, N: 3})...)
	return append(cs,
		shadertest.Case{Name: "many rows", Pattern: pattern(6*max(tall, 100)+1, 40, ps[0], 0.9), K: 40, N: 20, Fold: !nm.Clusters(v)},
		shadertest.Case{Name: "many rows, one column", Pattern: pattern(700, 40, ps[0], 0.9), K: 40, N: 1, Beta: 1, Fold: !nm.Clusters(v), Units: 4},
	)
}

// each runs f for each variant of each device, and type of C that the variant writes. Where the device is the
// software driver with cooperative matrices, it runs other vendors' tiles too, which the driver does not list but
// computes.
func each(t *testing.T, f func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type)) {
	if shadertest.CompileOnly() {
		t.Log("this device runs nothing; TestLoad is for it")
		return
	}
	shadertest.Each(t, func(t *testing.T, dev backend.Device) {
		vs := shadertest.Variants(dev, nm.Format.Program)
		if c := dev.Caps(); len(c.Matrix) > 0 && dev.Info().Kind == "cpu" { // not those of 64 rows, which take long
			vs = append(vs, slices.DeleteFunc(nm.CoopVariants(c.SubgroupMin), func(v *spec.Variant) bool { return v.Const("V") > 32 })...)
		}
		seen := map[string]bool{}
		for _, v := range vs {
			if seen[v.Name] {
				continue
			}
			seen[v.Name] = true
			for _, out := range append([]dtype.Type{dtype.F32}, v.Out...) {
				t.Run(v.Name+"/"+out.String(), func(t *testing.T) { f(t, dev, v, out) })
			}
		}
		for _, prec := range []dtype.Type{dtype.F16, dtype.BF16, dtype.F32} {
			for _, rows := range []uint32{1, 8} {
				if !slices.ContainsFunc(vs, func(v *spec.Variant) bool { return v.In == prec && v.Const("V") == rows }) {
					t.Errorf("no variant for %v and units of %d rows", prec, rows)
				}
			}
		}
	})
}

// listed tells whether a variant is the table's own.
func listed(v *spec.Variant) bool { return slices.Contains(nm.Format.Variants, v) }

func TestMultiply(t *testing.T) {
	each(t, func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
		for i, q := range cases(v) {
			if (out != dtype.F32 || !listed(v)) && i%4 != 1 {
				continue // writing C, and tiles of other vendors: a share of all that is the same for all
			}
			t.Run(q.Name, func(t *testing.T) { q.Run(t, dev, nm.Format, v, out) })
		}
	})
}

// TestReproducible: two runs give the same bits.
func TestReproducible(t *testing.T) {
	each(t, func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
		p := fits(v)[0]
		q := shadertest.Case{Pattern: pattern(p.V+30, 500, p, 1), K: 500, N: 70, Real: true}
		q.RunTwice(t, dev, nm.Format, v, out)
	})
}

// TestNonFinite: what a row does not store does not touch B, whatever B holds there; what it stores does, zeros
// included.
func TestNonFinite(t *testing.T) {
	each(t, func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
		for _, n := range []int{37, 1, 4} {
			switch v.In.Storage() {
			case dtype.F16:
				nonFinite[half.F16](t, dev, v, out, n)
			case dtype.BF16:
				nonFinite[half.BF16](t, dev, v, out, n)
			default:
				nonFinite[float32](t, dev, v, out, n)
			}
		}
	})
}

func nonFinite[T formats.Value](t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type, n int) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	// Rows of B, every 16 of them, and what lies between, in the columns that are special: every third.
	const apart = 16
	special, between := []float32{0: 1, 1: inf, 2: -inf, 3: nan, 4: 2}, []float32{nan, inf, -inf}
	rows := []struct {
		cols []int32
		vals []float32
		want float32 // in special columns; the others are the sum of values
	}{
		{[]int32{0, 4}, []float32{3, -1}, 1},
		{[]int32{0, 1}, []float32{3, 2}, inf},
		{[]int32{0, 1}, []float32{3, -2}, -inf},
		{[]int32{1, 2}, []float32{1, 1}, nan},
		{[]int32{1, 2}, []float32{1, -1}, inf},
		{[]int32{0, 1}, []float32{3, 0}, nan}, // a stored zero is an entry
		{[]int32{2, 4}, []float32{2, -5}, -inf},
		{[]int32{3}, []float32{1}, nan},
		{nil, nil, 0},
		{[]int32{4}, []float32{1}, 2},
	}
	k, ld := apart*len(special), (n+7)&^7
	b := make([]T, k*ld)
	for i := range k {
		for j := range ld {
			b[i*ld+j] = shadertest.From[T](1)
			if j%3 == 0 {
				x := between[i%3]
				if i%apart == 0 {
					x = special[i/apart]
				}
				b[i*ld+j] = shadertest.From[T](x)
			}
		}
	}
	a := &formats.CSR[T]{Rows: len(rows), Cols: k, RowPtr: []int64{0}}
	for _, r := range rows {
		for i, c := range r.cols {
			a.ColIdx, a.Val = append(a.ColIdx, apart*c), append(a.Val, shadertest.From[T](r.vals[i]))
		}
		a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
	}
	c := make([]byte, len(rows)*n*out.Size())
	shadertest.Multiply(t, dev, nm.Format, v, a, backend.Bytes(b), nil, c,
		spec.Problem{M: len(rows), K: k, N: n, LDB: ld, LDC: n, Out: out, Alpha: 1})
	for i, r := range rows {
		var sum float32
		for _, x := range r.vals {
			sum += x
		}
		for j := range n {
			want := sum
			if j%3 == 0 {
				want = r.want
			}
			if got := element(c, out, i*n+j); got != want && (got == got || want == want) {
				t.Fatalf("%d columns: C[%d,%d] is %v, want %v", n, i, j, got, want)
			}
		}
	}
}

// element returns element i of a matrix of type t.
func element(c []byte, t dtype.Type, i int) float32 {
	switch t {
	case dtype.F16:
		return backend.View[half.F16](c)[i].Float32()
	case dtype.BF16:
		return backend.View[half.BF16](c)[i].Float32()
	}
	return backend.View[float32](c)[i]
}

// TestLoad: every device loads what its capabilities say it runs, the driver that only compiles (AMD's) all tiles in
// both wave sizes.
func TestLoad(t *testing.T) {
	shadertest.Each(t, func(t *testing.T, dev backend.Device) {
		vs := shadertest.Variants(dev, nm.Format.Program)
		if shadertest.CompileOnly() {
			vs = append(vs, append(nm.CoopVariants(32), nm.CoopVariants(64)...)...)
		}
		for _, v := range vs {
			bin, err := nm.Format.Binary(v)
			if err != nil {
				t.Fatal(err)
			}
			k, err := dev.Load(bin)
			if err != nil {
				t.Errorf("%s: %v", v.Name, err)
				continue
			}
			k.Close()
		}
	})
}

// TestCoopTable: what the cooperative kernel takes for granted of its constants.
func TestCoopTable(t *testing.T) {
	for _, v := range nm.Format.Variants {
		if !v.Matrix || v.Need.Lanes {
			continue
		}
		c := v.Const
		across, down := c("TN"), c("TM")
		if c("SWAP") == 1 {
			across, down = down, across
		}
		for _, whole := range []struct {
			name string
			a, b uint32
		}{
			{"condensed columns of a stage in steps of the operation", c("STAGE"), c("TK")},
			{"loads of a stage by all invocations", c("STAGE") * c("COLS") / 8, v.Local[0]},
			{"invocations in subgroups", v.Local[0], v.Sub * c("SUBS")},
			{"a subgroup's columns in tiles", c("COLS") / c("SUBS"), across},
			{"a subgroup's columns in loads", c("COLS") / c("SUBS"), 8},
			{"rows in tiles", c("ROWS"), down},
		} {
			if whole.a < whole.b || whole.a%whole.b != 0 {
				t.Errorf("%s: %s: %d is no multiple of %d", v.Name, whole.name, whole.a, whole.b)
			}
		}
		if v.Need.Shared > 32<<10 {
			t.Errorf("%s needs %d bytes of shared memory, more than most devices have", v.Name, v.Need.Shared)
		}
	}
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
	a := &formats.CSR[float32]{Rows: 5, Cols: 30, RowPtr: make([]int64, 6)}
	for _, v := range nm.Format.Variants {
		if _, err := nm.Format.Encode(formats.ConvertTo(a, v.In), v); err != nil {
			t.Error(err)
		}
	}
}

// TestClusterGrid: whole clusters, no more than run at once where each takes tiles in turn (those whose blocks share A's columns
// do not, nor do those that sum a part each), and none for nothing.
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
					l, err := nm.Format.Launch(v, e, spec.Problem{M: m, K: a.Cols, N: n, LDB: (n + 7) &^ 7, LDC: n, Out: dtype.F32, Caps: backend.Caps{Units: units}})
					if err != nil {
						t.Fatal(err)
					}
					if x := l.Passes[0].Variant; x.Const("PARTS") > 0 {
						tiles := spec.Ceil(m, int(x.Const("ROWS"))) * spec.Ceil(n, int(x.Const("COLS")))
						if got, want := l.Passes[0].Groups, [3]uint32{uint32(tiles) * x.Const("PARTS"), 1, 1}; got != want {
							t.Errorf("%s, %d×%d on %d units: %v workgroups, want %v", x.Name, m, n, units, got, want)
						}
						continue
					}
					tall := shadertest.Param(nm.Format.Program, l.Passes[0], "tall")
					shared := shadertest.Param(nm.Format.Program, l.Passes[0], "wide") == 1
					heights[tall] = true
					if g := l.Passes[0].Groups[0]; g%2 != 0 || (g == 0) != (m == 0) || !shared && g > uint32(max(2, units)) || l.Passes[0].Groups[1] != 1 || l.Passes[0].Groups[2] != 1 {
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
		q := pattern(256, 512, p, 1)
		a := &formats.CSR[float32]{Rows: 256, Cols: 512, RowPtr: []int64{0}}
		for _, cols := range q {
			for _, c := range cols {
				a.ColIdx, a.Val = append(a.ColIdx, c), append(a.Val, 1)
			}
			a.RowPtr = append(a.RowPtr, int64(len(a.Val)))
		}
		e, err := nm.Format.Encode(formats.ConvertTo(a, v.In), v)
		if err != nil {
			t.Errorf("%s: %v", v.Name, err)
			continue
		}
		var bytes int64
		for _, x := range e.Arrays {
			bytes += int64(len(x.Data))
		}
		if s := e.Stats; s.StoredBytes != bytes || s.Slots < a.NNZ() || s.MACs < a.NNZ() || s.Fill <= 0.5 || s.Fill > 1 || s.Gathers <= 0 {
			t.Errorf("%s: %+v for %d entries in %d bytes", v.Name, s, a.NNZ(), bytes)
		}
	}
}

// TestAdopt: a matrix that is encoded already is taken in the patterns that the variant takes, and in no others.
func TestAdopt(t *testing.T) {
	a := &formats.CSR[float32]{Rows: 128, Cols: 192, RowPtr: make([]int64, 129)} // no entries: any pattern will do
	for _, p := range []format.Pattern{{N: 2, M: 4, V: 1, W: 1}, {N: 4, M: 8, V: 1, W: 1}, {N: 33, M: 64, V: 1, W: 1}, {N: 1, M: 4, V: 1, W: 2},
		{N: 2, M: 4, V: 8, W: 1}, {N: 2, M: 4, V: 12, W: 1}, {N: 2, M: 4, V: 24, W: 4}, {N: 2, M: 4, V: 24, W: 3}, {N: 2, M: 4, V: 64, W: 2}, {N: 2, M: 4, V: 128, W: 1}} {
		for _, v := range nm.Format.Variants {
			tall := int(v.Const("V"))
			want := p.V == 1 && p.W == 1 && tall == 1 && p.N <= 32 && (!nm.Is24(v) || p.N == 2) || p.W != 3 && p.V > 1 && (tall == 8 && p.V%8 == 0 || tall == p.V)
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
