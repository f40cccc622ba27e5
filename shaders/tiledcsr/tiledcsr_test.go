package tiledcsr_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	"github.com/spmmrun/spmm/shaders/panel"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/spec"
	"github.com/spmmrun/spmm/shaders/tiledcsr"
)

// scattered is a pattern whose rows have each column with a probability of their own: density times 0 to 2.
func scattered(rows, k int, density float64) [][]int32 {
	r := rand.New(rand.NewPCG(uint64(rows), uint64(k)))
	p := make([][]int32, rows)
	for i := range p {
		own := density * 2 * r.Float64()
		for j := range k {
			if r.Float64() < own {
				p[i] = append(p[i], int32(j))
			}
		}
	}
	return p
}

// ragged is a pattern of mostly short rows, empty rows and one full row.
func ragged(rows, k int) [][]int32 {
	p := scattered(rows, k, 3/float64(k))
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
		{Name: "K=1", Pattern: scattered(37, 1, 0.7), K: 1, N: 40, Alpha: 2},
		{Name: "one dense row", Pattern: shadertest.Spread(999, 0, 0, 999, 0), K: 999, N: 17, Alpha: -2, Beta: 0.5},
		{Name: "whole groups", Pattern: scattered(64, 200, 0.3), K: 200, N: 128},
		{Name: "scattered", Pattern: scattered(40, 90, 0.1), K: 90, N: 72, Alpha: 3},
		{Name: "padding", Pattern: scattered(29, 60, 0.3), K: 60, N: 33, LDB: 64, LDC: 77, Beta: -1},
		{Name: "rows of C apart by whole quads", Pattern: scattered(29, 60, 0.3), K: 60, N: 34, LDC: 40, Beta: 2},
		{Name: "several column blocks", Pattern: scattered(21, 50, 0.5), K: 50, N: 1300, Beta: 1},
		{Name: "one strip", Pattern: scattered(61, 50, 0.5), K: 50, N: 1300, Units: 1 << 20},
		{Name: "a strip for each block", Pattern: scattered(20, 3000, 0.01), K: 3000, N: 1030, Units: 1},
		{Name: "a grid that turns round", Pattern: scattered(300, 50, 0.2), K: 50, N: 300, Fold: true},
		{Name: "inexact", Pattern: scattered(50, 300, 0.2), K: 300, N: 50, Alpha: 0.3, Beta: 1.7, Real: true},
	}
	for _, n := range []int{1, 2, 7, 8, 31, 64, 129, 513} {
		cs = append(cs, shadertest.Case{Name: fmt.Sprintf("ragged, %d columns", n), Pattern: ragged(150, 400), K: 400, N: n})
	}
	for _, n := range []int{5, 70, 513} { // of ten panels and more one in many parts
		cs = append(cs, shadertest.Case{Name: fmt.Sprintf("a heavy panel, %d columns", n), Pattern: ragged(190, 5003), K: 5003, N: n, LDC: n + 3, Alpha: -2, Beta: 0.5})
	}
	// Groups of every number of tiles around the stages, in rows that the shuffle cannot bring together.
	var p [][]int32
	for n := range 12 {
		for range 16 {
			p = append(p, shadertest.Spread(200, 16*n)[0])
		}
	}
	cs = append(cs, shadertest.Epilogues(shadertest.Case{Pattern: scattered(29, 60, 0.3), K: 60, N: 77})...)
	return append(cs, shadertest.Case{Name: "every number of tiles", Pattern: p, K: 200, N: 20})
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
		vs := shadertest.Variants(dev, tiledcsr.Format.Program)
		if c := dev.Caps(); len(c.Matrix) > 0 && dev.Info().Kind == "cpu" {
			vs = append(vs, panel.Coops(c.SubgroupMin)...)
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
			if !has(vs, prec) {
				t.Errorf("no variant for %v", prec)
			}
		}
	})
}

func has(vs []*spec.Variant, prec dtype.Type) bool {
	for _, v := range vs {
		if v.In == prec && v.Const("V") == 8 {
			return true
		}
	}
	return false
}

func TestMultiply(t *testing.T) {
	each(t, func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
		for _, q := range cases() {
			q.Fold = q.Fold && !panel.InStreams(v) // whose clusters take tiles in turn
			t.Run(q.Name, func(t *testing.T) { q.Run(t, dev, tiledcsr.Format, v, out) })
		}
	})
}

// TestReproducible: two runs give the same bits, and so do other strips.
func TestReproducible(t *testing.T) {
	q := shadertest.Case{Pattern: scattered(100, 500, 0.1), K: 500, N: 270, Real: true}
	each(t, func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
		first := q.Run(t, dev, tiledcsr.Format, v, out)
		for _, units := range []int{0, 1, 1 << 20} {
			q.Units = units
			if !bytes.Equal(first, q.Run(t, dev, tiledcsr.Format, v, out)) {
				t.Errorf("a run as on %d multiprocessors gave other bits", units)
			}
		}
	})
}

// TestNonFinite: see shadertest.NonFinite.
func TestNonFinite(t *testing.T) {
	each(t, func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
		shadertest.NonFinite(t, dev, tiledcsr.Format, v, out)
	})
}

// TestLoad: every device loads what its capabilities say it runs. On the driver that only compiles
// (AMD's) that is all that can be tested, and there all tiles are compiled in both wave sizes.
func TestLoad(t *testing.T) {
	shadertest.Each(t, func(t *testing.T, dev backend.Device) {
		vs := shadertest.Variants(dev, tiledcsr.Format.Program)
		if shadertest.CompileOnly() {
			vs = append(vs, append(panel.Coops(32), panel.Coops(64)...)...)
		}
		for _, v := range vs {
			bin, err := tiledcsr.Format.Binary(v)
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

func TestEncode(t *testing.T) {
	a := &formats.CSR[half.F16]{Rows: 9, Cols: 3, RowPtr: []int64{0, 1, 1, 1, 1, 1, 1, 1, 1, 3},
		ColIdx: []int32{2, 0, 1}, Val: []half.F16{half.F16From(5), 0, 0}}
	for _, v := range tiledcsr.Format.Variants {
		e, err := tiledcsr.Format.Encode(a, v)
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
			if x.Name != tiledcsr.Format.Args[i].Name || len(x.Data) == 0 {
				t.Errorf("%s: array %d is %s of %d bytes, want %s", v.Name, i, x.Name, len(x.Data), tiledcsr.Format.Args[i].Name)
			}
		}
	}
	bad := *a
	bad.ColIdx = []int32{2, 0, 3}
	if _, err := tiledcsr.Format.Encode(&bad, tiledcsr.Format.Variants[0]); err == nil {
		t.Error("a column outside the matrix is accepted")
	}
}

// TestLaunch: grids cover C without a strip to spare, and problems that do not fit the matrix are refused.
func TestLaunch(t *testing.T) {
	a := &formats.CSR[half.F16]{Rows: 100, Cols: 3, RowPtr: make([]int64, 101)}
	for _, v := range tiledcsr.Format.Variants {
		if v.In != dtype.F16 {
			continue
		}
		e, err := tiledcsr.Format.Encode(a, v)
		if err != nil {
			t.Fatal(err)
		}
		for _, units := range []int{0, 4, 1000} {
			p := spec.Problem{M: 100, K: 3, N: 700, LDB: 704, LDC: 700, Out: dtype.F32, Caps: backend.Caps{Units: units}}
			l, err := tiledcsr.Format.Launch(v, e, p)
			if err != nil {
				t.Errorf("%s: %v", v.Name, err)
				continue
			}
			if panel.InStreams(v) {
				continue // see package panel
			}
			if v.Const("WINDOW") > 0 {
				if l.Passes[0].Groups[1]*v.Const("COLS") < 700 || l.Passes[0].Groups[0]*v.Const("PANELS")*v.Const("WARPS")*v.Const("V") < 100 {
					t.Errorf("%s: a grid of %v", v.Name, l.Passes[0].Groups)
				}
				continue
			}
			groups, strip := spec.Ceil(100, v.Const("V")), shadertest.Param(tiledcsr.Format.Program, l.Passes[0], "strip")
			cols := v.Const("COLS") * max(1, v.Const("WARPS"))
			if strip == 0 || l.Passes[0].Groups[0] != groups*strip || l.Passes[0].Groups[1]*strip*cols < 700 || (l.Passes[0].Groups[1]-1)*strip*cols >= 700 {
				t.Errorf("%s: a grid of %v with strips of %d blocks of %d columns", v.Name, l.Passes[0].Groups, strip, cols)
			}
		}
		p := spec.Problem{M: 100, K: 3, LDB: 704, LDC: 700, Out: dtype.F32}
		if l, err := tiledcsr.Format.Launch(v, e, p); err != nil || l.Passes[0].Groups[0]*l.Passes[0].Groups[1]*l.Passes[0].Groups[2] != 0 {
			t.Errorf("%s: no columns: a grid of %v, error %v", v.Name, l.Passes, err)
		}
		p.N, p.M = 700, 99
		if _, err := tiledcsr.Format.Launch(v, e, p); err == nil {
			t.Errorf("%s: a problem of 99 rows with a matrix of 100", v.Name)
		}
		p.M, p.Out = 100, dtype.S8
		if _, err := tiledcsr.Format.Launch(v, e, p); !errors.Is(err, backend.ErrUnsupported) {
			t.Errorf("%s: C in s8: error %v", v.Name, err)
		}
	}
}

// TestManyGroups: more groups than one side of a grid has room for.
func TestManyGroups(t *testing.T) {
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
			q.Run(t, dev, tiledcsr.Format, v, out)
		}
	})
}
