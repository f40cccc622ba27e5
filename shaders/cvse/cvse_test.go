// Products on every device present, held against exact sums; values that are not finite; refusals.

package cvse_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/shaders/cvse"
	"github.com/spmmrun/spmm/shaders/panel"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/spec"
)

// vectors is a pattern whose rows are alike in groups of v; each group has each column with
// probability density.
func vectors(rows, k, v int, density float64) [][]int32 {
	p := make([][]int32, rows)
	for i := range p {
		r := rand.New(rand.NewPCG(uint64(i/v), uint64(v)))
		for j := range k {
			if r.Float64() < density {
				p[i] = append(p[i], int32(j))
			}
		}
	}
	return p
}

// ragged is a pattern of mostly short rows, empty panels and one full row.
func ragged(rows, k int) [][]int32 {
	p := vectors(rows, k, 1, 3/float64(k))
	for i := rows / 3; i < rows/3+40 && i < rows; i++ {
		p[i] = nil
	}
	p[rows/2] = shadertest.Spread(k, k)[0]
	return p
}

func cases() []shadertest.Case {
	cs := []shadertest.Case{
		{Name: "one number", Pattern: shadertest.Spread(1, 1), K: 1, N: 1},
		{Name: "no entries", Pattern: make([][]int32, 5), K: 3, N: 9, Beta: 2},
		{Name: "no entries, C forgotten", Pattern: make([][]int32, 5), K: 3, N: 9},
		{Name: "K=1", Pattern: vectors(37, 1, 1, 0.7), K: 1, N: 40, Alpha: 2},
		{Name: "one dense row", Pattern: shadertest.Spread(999, 0, 0, 999, 0), K: 999, N: 17, Alpha: -2, Beta: 0.5},
		{Name: "whole vectors", Pattern: vectors(64, 200, 16, 0.3), K: 200, N: 128},
		{Name: "scattered", Pattern: vectors(40, 90, 1, 0.1), K: 90, N: 72, Alpha: 3},
		{Name: "padding", Pattern: vectors(29, 60, 8, 0.3), K: 60, N: 33, LDB: 64, LDC: 77, Beta: -1},
		{Name: "rows of C apart by whole quads", Pattern: vectors(29, 60, 8, 0.3), K: 60, N: 34, LDC: 40, Beta: 2},
		{Name: "several column blocks", Pattern: vectors(21, 50, 8, 0.5), K: 50, N: 531, Beta: 1},
		{Name: "inexact", Pattern: vectors(50, 300, 4, 0.2), K: 300, N: 50, Alpha: 0.3, Beta: 1.7, Real: true},
	}
	for _, n := range []int{1, 2, 7, 8, 31, 64, 129} {
		cs = append(cs, shadertest.Case{Name: fmt.Sprintf("ragged, %d columns", n), Pattern: ragged(150, 400), K: 400, N: n})
	}
	for _, n := range []int{5, 70, 513} { // of ten panels and more one in many parts
		cs = append(cs, shadertest.Case{Name: fmt.Sprintf("a heavy panel, %d columns", n), Pattern: ragged(190, 5003), K: 5003, N: n, LDC: n + 3, Alpha: -2, Beta: 0.5})
	}
	// Panels of every length around the stages.
	var p [][]int32
	for n := range 70 {
		p = append(p, make([][]int32, 16)...)
		p[16*n+n%16] = shadertest.Spread(80, n)[0]
	}
	cs = append(cs, shadertest.Epilogues(shadertest.Case{Pattern: vectors(29, 60, 8, 0.3), K: 60, N: 77})...)
	return append(cs, shadertest.Case{Name: "every length", Pattern: p, K: 80, N: 20})
}

// each runs f for each variant of each device, and type of C that the variant writes. Where the
// device is the software driver with cooperative matrices, it runs other vendors' tiles too, which
// the driver does not list but computes.
func each(t *testing.T, f func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type)) {
	if shadertest.CompileOnly() {
		t.Log("this device runs nothing; TestLoad is for it")
		return
	}
	shadertest.Each(t, func(t *testing.T, dev backend.Device) {
		vs := shadertest.Variants(dev, cvse.Format.Program)
		if c := dev.Caps(); len(c.Matrix) > 0 && dev.Info().Kind == "cpu" {
			vs = append(vs, cvse.CoopVariants(c.SubgroupMin)...)
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
			for _, rows := range []uint32{8, 16} {
				if !has(vs, prec, rows) {
					t.Errorf("no variant for %v and panels of %d rows", prec, rows)
				}
			}
		}
	})
}

func has(vs []*spec.Variant, prec dtype.Type, rows uint32) bool {
	for _, v := range vs {
		if v.In == prec && v.Const("V") == rows {
			return true
		}
	}
	return false
}

func TestMultiply(t *testing.T) {
	each(t, func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
		for _, q := range cases() {
			t.Run(q.Name, func(t *testing.T) { q.Run(t, dev, cvse.Format, v, out) })
		}
	})
}

// TestReproducible: two runs give the same bits.
func TestReproducible(t *testing.T) {
	q := shadertest.Case{Pattern: vectors(100, 500, 2, 0.1), K: 500, N: 70, Real: true}
	each(t, func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
		q.RunTwice(t, dev, cvse.Format, v, out)
	})
}

// TestNonFinite: see shadertest.NonFinite.
func TestNonFinite(t *testing.T) {
	each(t, func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
		shadertest.NonFinite(t, dev, cvse.Format, v, out)
	})
}

// TestLoad: every device loads what its capabilities say it runs. On the driver that only compiles
// (AMD's) that is all that can be tested, and there all tiles are compiled in both wave sizes.
func TestLoad(t *testing.T) {
	shadertest.Each(t, func(t *testing.T, dev backend.Device) {
		vs := shadertest.Variants(dev, cvse.Format.Program)
		if shadertest.CompileOnly() {
			if !has(vs, dtype.F16, 16) || vs[0].Sub != 32 {
				t.Errorf("the variant for 16×16×16 and waves of 32 is not the first for this device")
			}
			vs = append(vs, append(cvse.CoopVariants(32), cvse.CoopVariants(64)...)...)
		}
		for _, v := range vs {
			bin, err := cvse.Format.Binary(v)
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
	for _, v := range cvse.Format.Variants {
		if !v.Matrix || v.Need.Lanes {
			continue
		}
		c := v.Const
		acrossTile, downTile := c("TN"), c("TM")
		if c("SWAP") == 1 {
			acrossTile, downTile = downTile, acrossTile
		}
		for _, whole := range []struct {
			name string
			a, b uint32
		}{
			{"vectors of a stage in steps of the operation", c("STAGE"), c("TK")},
			{"loads of a stage by all invocations", c("STAGE") * c("COLS") / 8, v.Local[0]},
			{"invocations in subgroups", v.Local[0], v.Sub * c("SUBS")},
			{"a subgroup's columns in tiles", c("COLS") / c("SUBS"), acrossTile},
			{"a panel's rows in tiles", c("V"), downTile},
			{"columns in powers of two", 1 << 16, c("COLS")},
			{"subgroups in powers of two", 1 << 16, c("SUBS")},
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

// TestManyPanels: more panels than one side of a grid has room for.
func TestManyPanels(t *testing.T) {
	q := shadertest.Case{Pattern: make([][]int32, 8*65536+9), K: 5, N: 3, LDC: 3}
	for i := range q.Pattern {
		if i%997 == 0 || i == len(q.Pattern)-1 {
			q.Pattern[i] = []int32{int32(i % 5)}
		}
	}
	seen := map[string]bool{}
	each(t, func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
		kind := dev.Info().Backend + v.Unit.Source
		if v.In == dtype.F16 && v.Const("V") == 8 && !seen[kind] {
			seen[kind] = true
			q.Run(t, dev, cvse.Format, v, out)
		}
	})
}

func TestEncode(t *testing.T) {
	a := &formats.CSR[half.F16]{Rows: 9, Cols: 3, RowPtr: []int64{0, 1, 1, 1, 1, 1, 1, 1, 1, 3},
		ColIdx: []int32{2, 0, 1}, Val: []half.F16{half.F16From(5), 0, 0}}
	for _, v := range cvse.Format.Variants {
		e, err := cvse.Format.Encode(a, v)
		if v.In != dtype.F16 {
			if err == nil {
				t.Errorf("%s packs another element type", v.Name)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", v.Name, err)
			continue
		}
		if e.Rows != 9 || e.Cols != 3 || e.NNZ != 3 || e.Stats.Fill <= 0 || len(e.Arrays) != panel.ArgB {
			t.Errorf("%s: %d×%d, %d entries, %d arrays, stats %+v", v.Name, e.Rows, e.Cols, e.NNZ, len(e.Arrays), e.Stats)
		}
		for i, x := range e.Arrays {
			if x.Name != cvse.Format.Args[i].Name || len(x.Data) == 0 {
				t.Errorf("%s: array %d is %s of %d bytes, want %s", v.Name, i, x.Name, len(x.Data), cvse.Format.Args[i].Name)
			}
		}
	}
	bad := *a
	bad.ColIdx = []int32{2, 0, 3}
	if _, err := cvse.Format.Encode(&bad, cvse.Format.Variants[0]); err == nil {
		t.Error("a column outside the matrix is accepted")
	}
}

// TestLaunch: grids cover C, and problems that do not fit the matrix are refused.
func TestLaunch(t *testing.T) {
	a := &formats.CSR[half.F16]{Rows: 100, Cols: 3, RowPtr: make([]int64, 101)}
	for _, v := range cvse.Format.Variants {
		if v.In != dtype.F16 {
			continue
		}
		e, err := cvse.Format.Encode(a, v)
		if err != nil {
			t.Fatal(err)
		}
		p := spec.Problem{M: 100, K: 3, N: 700, LDB: 704, LDC: 700, Out: dtype.F32}
		l, err := cvse.Format.Launch(v, e, p)
		if err != nil {
			t.Errorf("%s: %v", v.Name, err)
		}
		if cover := l.Passes[0].Groups[1] * v.Const("COLS"); !panel.InStreams(v) && (cover < 700 || cover >= 700+v.Const("COLS")) {
			t.Errorf("%s: %d blocks of %d columns for 700", v.Name, l.Passes[0].Groups[1], v.Const("COLS"))
		}
		p.N = 0
		if l, err := cvse.Format.Launch(v, e, p); err != nil || l.Passes[0].Groups[0]*l.Passes[0].Groups[1]*l.Passes[0].Groups[2] != 0 {
			t.Errorf("%s: no columns: a grid of %v, error %v", v.Name, l.Passes, err)
		}
		p.N, p.M = 700, 99
		if _, err := cvse.Format.Launch(v, e, p); err == nil {
			t.Errorf("%s: a problem of 99 rows with a matrix of 100", v.Name)
		}
		p.M, p.Out = 100, dtype.S8
		if _, err := cvse.Format.Launch(v, e, p); !errors.Is(err, backend.ErrUnsupported) {
			t.Errorf("%s: C in s8: error %v", v.Name, err)
		}
	}
}
