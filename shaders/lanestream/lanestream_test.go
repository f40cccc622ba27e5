// Products on every device present, held against exact sums, in both layouts; which variant multiplies, and what it
// launches.

package lanestream_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/half"
	format "github.com/spmmrun/spmm/formats/lanestream"
	"github.com/spmmrun/spmm/shaders/lanestream"
	"github.com/spmmrun/spmm/shaders/shadertest"
	"github.com/spmmrun/spmm/shaders/spec"
)

var suite = shadertest.Suite{
	Format: lanestream.Format,
	Cases:  func(*spec.Variant, dtype.Type) []shadertest.Case { return cases() },
	Twice: func(*spec.Variant) []shadertest.Case {
		q := shadertest.Case{Name: "scattered", Pattern: shadertest.Scattered(100, 2000, 0.4), K: 2000, Real: true}
		return shadertest.Columns(q, 3, 16, 40)
	},
}

func TestFormat(t *testing.T) { suite.Run(t) }

// uneven is a pattern whose left half is full, with empty rows, empty groups and a full row.
func uneven(rows, k int) [][]int32 {
	p := shadertest.Scattered(rows, k, 0.1)
	for i := range p {
		switch {
		case i%7 == 3, i/32%3 == 1:
			p[i] = nil
		case i%7 == 4:
			p[i] = shadertest.Spread(k/2, k/2)[0]
		case i == rows/2+1:
			p[i] = shadertest.Spread(k, k)[0]
		}
	}
	return p
}

func cases() []shadertest.Case {
	scattered := func(rows, k, _ int, density float64) [][]int32 { return shadertest.Scattered(rows, k, density) }
	cs := append(shadertest.Basics(scattered), []shadertest.Case{
		{Name: "K=0", Pattern: make([][]int32, 70), K: 0, N: 9, Beta: 2},
		{Name: "dense", Pattern: shadertest.Scattered(70, 700, 1), K: 700, N: 8},
		{Name: "several tiles of columns", Pattern: shadertest.Scattered(40, 130, 0.5), K: 130, N: 531, Beta: 1},
		{Name: "inexact, long", Pattern: shadertest.Scattered(70, 600, 0.4), K: 600, N: 30, Alpha: 0.3, Beta: 1.7,
			Real: true},
		{Name: "many groups", Pattern: shadertest.Scattered(9000, 70, 0.4), K: 70, N: 7},
		{Name: "several tiles of rows and columns", Pattern: uneven(700, 203), K: 203, N: 300},
		{Name: "dense, many columns", Pattern: shadertest.Scattered(70, 333, 1), K: 333, N: 140, LDC: 141, Beta: 1},
	}...)
	cs = append(cs, shadertest.Epilogues(shadertest.Case{Name: "epilogue", Pattern: uneven(100, 300), K: 300, N: 21})...)
	for _, d := range []float64{0.02, 0.1, 0.2, 0.35, 0.5, 0.75} {
		cs = append(cs, shadertest.Case{Name: fmt.Sprintf("density %v", d),
			Pattern: shadertest.Scattered(66, 3000, d), K: 3000, N: 9})
	}
	return append(cs, shadertest.Columns(shadertest.Case{Name: "uneven", Pattern: uneven(150, 1111), K: 1111}, 1, 2,
		7, 8, 15, 16, 24, 32, 65)...)
}

// inPairs is the format with matrices packed as layout Pairs, whatever their density.
func inPairs() *spec.Format {
	k := *lanestream.Format
	k.Encode = func(a formats.Sparse, v *spec.Variant) (*spec.Packed, error) {
		e, err := lanestream.Format.Encode(a, v)
		if err != nil {
			return nil, err
		}
		if v.Const("PAIRS") == 1 {
			return lanestream.Format.Adopt(e.Format.(formats.Encoded), v)
		}
		splits := e.Format.(interface{ Shape() format.Shape }).Shape().Splits
		m, err := format.Format.Pack(a, map[string]int{"layout": format.Pairs, "splits": splits, "ring-rows": 68})
		if err != nil {
			return nil, err
		}
		return lanestream.Format.Adopt(m, v)
	}
	return &k
}

// TestPairs: the other layout, which the variants that read it may adopt.
func TestPairs(t *testing.T) {
	suite.Each(t, func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
		if v.Quant != dtype.Invalid {
			return // packed as places always
		}
		if v.Code != backend.CodeGo && v.Const("PAIRS") == 0 {
			a := &formats.CSR[half.F16]{Rows: 1, Cols: 1, RowPtr: []int64{0, 0}}
			if _, err := inPairs().Encode(a, v); err == nil && v.In == dtype.F16 {
				t.Error("a variant that does not read pairs adopts them")
			}
			return
		}
		for _, q := range cases() {
			t.Run(q.Name, func(t *testing.T) { q.Run(t, dev, inPairs(), v, out) })
		}
		shadertest.NonFinite().Run(t, dev, inPairs(), v, out)
	})
}

// fewColumns are products by at most 32 columns, at densities at which segments have one, two and four steps.
func fewColumns() []shadertest.Case {
	cs := shadertest.Epilogues(shadertest.Case{Name: "epilogue", Pattern: uneven(100, 300), K: 300, N: 21})
	for _, d := range []float64{0.02, 0.1, 0.35, 0.75} {
		q := shadertest.Case{Name: fmt.Sprintf("density %v", d), Pattern: shadertest.Scattered(130, 1203, d), K: 1203,
			Alpha: 2, Beta: 0.5}
		cs = append(cs, shadertest.Columns(q, 1, 7, 8, 9, 16, 17, 32)...)
	}
	return append(cs,
		shadertest.Case{Name: "one number", Pattern: shadertest.Spread(1, 1), K: 1, N: 1},
		shadertest.Case{Name: "many groups", Pattern: shadertest.Scattered(9000, 70, 0.4), K: 70, N: 7},
		shadertest.Case{Name: "inexact", Pattern: shadertest.Scattered(70, 600, 0.4), K: 600, N: 30, Alpha: 0.3, Real: true})
}

// TestColumns: the forms for a column-major C, and for a B of one column or, in kernels for it, of few columns.
func TestColumns(t *testing.T) {
	suite.Each(t, func(t *testing.T, dev backend.Device, v *spec.Variant, out dtype.Type) {
		if !v.ColumnsOfC && !v.Lines {
			return
		}
		for _, q := range shadertest.InOrders(v, fewColumns()) {
			if q.BCol || q.CCol {
				t.Run(q.Name, func(t *testing.T) { q.Run(t, dev, lanestream.Format, v, out) })
			}
		}
		for _, n := range []int{1, 3, 8, 9} {
			x := shadertest.NonFinite()
			x.N, x.Col = n, true
			t.Run(fmt.Sprintf("not finite, %d columns", n), func(t *testing.T) { x.Run(t, dev, lanestream.Format, v, out) })
		}
	})
}

// TestColumnsTaken: few columns of C need no pass in either kernel and layout, nor does a B of one column.
func TestColumnsTaken(t *testing.T) {
	caps := backend.Caps{Code: backend.CodePTX, Arch: 90, Units: 132, SharedBytes: 227 << 10,
		MaxLocal: [3]uint32{1024, 1024, 64}, MaxInvocations: 1024}
	taken := 0
	for _, v := range lanestream.Format.Variants {
		if !v.ColumnsOfC || v.In != dtype.F16 {
			continue
		}
		for _, d := range []float64{0.05, 0.1, 0.3, 0.5} {
			a := shadertest.Ones[half.F16](shadertest.Scattered(256, 4096, d), 4096)
			e, err := lanestream.Format.Encode(a, v)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range []int{1, 8, 9, 16, 17, 32} {
				p := spec.Problem{M: a.Rows, K: a.Cols, N: n, LDB: a.Cols, LDC: a.Rows, BCol: n == 1, CCol: true, Out: dtype.F16,
					Caps: caps}
				if _, err := lanestream.Format.LaunchSuited(v, e, p); err != nil {
					t.Errorf("%s, density %v, %d columns: %v", v.Name, d, n, err)
				}
				taken++
			}
		}
	}
	if taken == 0 {
		t.Error("no variant takes a column-major C")
	}
}

// TestLines: a column-major B of 2 to 8 columns is read as it lies where the kernel has room for its rows.
func TestLines(t *testing.T) {
	caps := backend.Caps{Code: backend.CodePTX, Arch: 90}
	for _, q := range []struct {
		packed     string
		rows, k, n int
		density    float64
		taken      bool
	}{
		{"few_pairs_n8", 255, 4096, 8, 0.1, true},
		{"few_pairs_n8", 256, 4096, 2, 0.2, true},
		{"few_pairs_n8", 256, 14336, 8, 0.1, true},
		{"few_pairs_n8", 256, 1 << 15, 8, 0.05, false},
		{"few_pairs_n8", 256, 1 << 15, 2, 0.05, false},
		{"few_pairs_n8", 256, 4096, 9, 0.1, false},
		{"few_pairs_n8", 256, 4096, 1, 0.1, false},
		{"few_n8", 256, 4096, 8, 0.3, false},
		{"pairs_n8", 512, 8192, 8, 0.1, true},
		{"pairs_n8", 512, 8192, 4, 0.2, true},
		{"pairs_n8", 512, 1 << 15, 8, 0.05, false},
	} {
		k := lanestream.Format
		v := k.Variants[slices.IndexFunc(k.Variants, func(v *spec.Variant) bool {
			return v.Name == "cuda_"+q.packed+"_f16"
		})]
		a := shadertest.Ones[half.F16](shadertest.Scattered(q.rows, q.k, q.density), q.k)
		e, err := k.Encode(a, v)
		if err != nil {
			t.Fatal(err)
		}
		p := spec.Problem{M: q.rows, K: q.k, N: q.n, LDB: q.k, LDC: q.rows, BCol: true, CCol: true, Out: dtype.F16,
			Alpha: 1, Caps: caps}
		runs := k.Runs(v, e, p)
		if runs.Lines != q.taken {
			t.Errorf("%s, %d×%d, %d columns: %s multiplies", q.packed, q.rows, q.k, q.n, runs.Name)
		}
		if !q.taken {
			continue
		}
		resident := *e // the arrays are on the device
		resident.Arrays = nil
		l, err := k.Launch(runs, &resident, p)
		if err != nil {
			t.Fatal(err)
		}
		m := e.Format.(*format.Matrix[half.F16])
		at := 4 * int(shadertest.Param(k.Program, l.Passes[0], "masklayout"))
		middles := unsafe.Slice((*uint32)(unsafe.Pointer(&e.Arrays[0].Data[at])), q.rows)
		for i, middle := range middles {
			begin, end := m.RemainderPtr[i], m.RemainderPtr[i+1]
			if middle < begin || middle > end || middle > begin && m.RemainderCol[middle-1] >= uint32(q.k/2) ||
				middle < end && m.RemainderCol[middle] < uint32(q.k/2) {
				t.Fatalf("%s, %d×%d: row %d has entries %d to %d and middle %d", q.packed, q.rows, q.k, i, begin, end, middle)
			}
		}
		if p.BCol, p.LDB = false, 8; !k.Runs(runs, e, p).TakesOrders(q.n, false, true) {
			t.Errorf("%s: a row-major B is not taken", q.packed)
		}
		if _, err := k.Launch(runs, e, p); err == nil {
			t.Errorf("%s launches a row-major B as lines", q.packed)
		}
	}
}

// TestPanels: each panel is filled while the one before is multiplied, with tiles whose sums are cut.
func TestPanels(t *testing.T) {
	defer lanestream.SmallPanels(1 << 20)()
	shadertest.Each(t, func(t *testing.T, dev backend.Device) {
		for _, v := range shadertest.Variants(dev, lanestream.Format.Program) {
			if !strings.HasPrefix(v.Name, "cuda_filled_") {
				continue
			}
			for _, q := range []shadertest.Case{
				{Name: "panels", Pattern: shadertest.Scattered(3000, 460, 0.3), K: 460, N: 270, Beta: 1},
				{Name: "sums cut", Pattern: shadertest.Scattered(300, 1500, 0.2), K: 1500, N: 270},
			} {
				t.Run(v.Name+"/"+q.Name, func(t *testing.T) { q.Run(t, dev, lanestream.Format, v, dtype.F32) })
			}
		}
	})
}

// TestPasses: what is filled and multiplied by the launches of many columns, and the workspace for it.
func TestPasses(t *testing.T) {
	defer lanestream.SmallPanels(1 << 20)()
	k := lanestream.Format
	v := k.Variants[slices.IndexFunc(k.Variants, func(v *spec.Variant) bool { return v.Name == "cuda_filled_n256_f16" })]
	caps := backend.Caps{Code: backend.CodePTX, Arch: 90, Units: 132, Matrix: v.Need.Shapes, SharedBytes: 1 << 20,
		MaxLocal: [3]uint32{1024, 1024, 64}, MaxInvocations: 1024}
	for _, q := range []struct {
		rows, cols, passes int
		workspace          int64
	}{
		{0, 0, 2, 16},
		{1, 1, 2, 4 * 64 * 64 * 2},
		{512, 460, 2, 8*64*512*2 + 2*4*2*256*256}, // one panel of 8 groups, whose two tiles are each summed in 2 splits
		{3000, 460, 4, 2 * 16 * 64 * 512 * 2},     // three panels of 16 groups, two at a time
	} {
		e, err := k.Encode(&formats.CSR[half.F16]{Rows: q.rows, Cols: q.cols, RowPtr: make([]int64, q.rows+1)}, v)
		if err != nil {
			t.Fatal(err)
		}
		l, err := k.LaunchSuited(v, e, spec.Problem{M: q.rows, K: q.cols, N: 100, LDB: 104, LDC: 100, Out: dtype.F32,
			Alpha: 1, Caps: caps})
		if err != nil {
			t.Fatal(err)
		}
		if len(l.Passes) != q.passes || l.Passes[0].Variant != v.Before || l.Passes[1].Variant != v ||
			l.Workspace < q.workspace {
			t.Errorf("%d×%d: %d launches, workspace of %d bytes; want %d, at least %d", q.rows, q.cols, len(l.Passes), l.Workspace, q.passes, q.workspace)
		}
	}
}

// TestRuns: the matrix and the number of columns decide which variant multiplies, and the device which there are.
func TestRuns(t *testing.T) {
	k := lanestream.Format
	variants := map[string]*spec.Variant{}
	for _, v := range k.Variants {
		variants[v.Name] = v
	}
	for _, q := range []struct {
		packed  string
		size    int // of a square matrix
		arch, n int
		variant string
	}{
		{packed: "hopper_n8", size: 1, arch: 90, n: 1, variant: "hopper_n8"},
		{packed: "hopper_n8", size: 1, arch: 90, n: 9, variant: "hopper_n16"},
		{packed: "hopper_n8", size: 1, arch: 90, n: 32, variant: "hopper_n32"},
		{packed: "hopper_n8", size: 1, arch: 90, n: 33, variant: "hopper_n32"},
		{packed: "hopper_n8", size: 1, arch: 90, n: 64, variant: "hopper_n32"},
		{packed: "hopper_n8", size: 1, arch: 90, n: 65, variant: "prefill_n128"},
		{packed: "hopper_n8", size: 1, arch: 90, n: 129, variant: "prefill_n256"},
		{packed: "hopper_n8", size: 1, arch: 90, n: 4096, variant: "prefill_n256"},
		{packed: "hopper_n8", size: 1, arch: 100, n: 4096, variant: "hopper_n32"},
		{packed: "hopper_n8", size: 4096, arch: 90, n: 128, variant: "prefill_n128"},
		{packed: "hopper_n8", size: 4096, arch: 90, n: 4096, variant: "filled_n256"},
		{packed: "hopper_n8", size: 4096, arch: 100, n: 4096, variant: "hopper_n32"},
		{packed: "pairs_n8", size: 4096, arch: 90, n: 32, variant: "pairs_n32"},
		{packed: "pairs_n8", size: 4096, arch: 90, n: 128, variant: "pairs_n32"},
		{packed: "pairs_n8", size: 4096, arch: 90, n: 512, variant: "filled_pairs_n256"},
		{packed: "few_pairs_n8", size: 4096, arch: 90, n: 64, variant: "few_pairs_n32"},
		{packed: "few_pairs_n8", size: 4096, arch: 90, n: 128, variant: "filled_pairs_n256"},
		{packed: "few_pairs_n8", size: 4096, arch: 90, n: 512, variant: "filled_pairs_n256"},
		{packed: "few_n8", size: 4096, arch: 90, n: 2048, variant: "filled_n256"},
		{packed: "few_n8", size: 4096, arch: 90, n: 8, variant: "few_n8"},
		{packed: "few_n8", size: 4096, arch: 90, n: 64, variant: "few_n32"},
		{packed: "few_n8", size: 4096, arch: 90, n: 65, variant: "prefill_n128"},
		{packed: "staged_n8", size: 4096, arch: 90, n: 64, variant: "staged_n32"},
		{packed: "staged_n8", size: 4096, arch: 90, n: 65, variant: "prefill_n128"},
		{packed: "filled_n256", size: 1, arch: 90, n: 32, variant: "hopper_n32"},
		{packed: "filled_n256", size: 1, arch: 90, n: 33, variant: "filled_n256"},
	} {
		v := variants["cuda_"+q.packed+"_f16"]
		e, err := k.Encode(&formats.CSR[half.F16]{Rows: q.size, Cols: q.size, RowPtr: make([]int64, q.size+1)}, v)
		if err != nil {
			t.Fatal(err)
		}
		caps := backend.Caps{
			Code: backend.CodePTX, Arch: q.arch, Units: 132, Matrix: variants["cuda_hopper_n8_f16"].Need.Shapes,
			SharedBytes: 1 << 20, MaxLocal: [3]uint32{1024, 1024, 64},
			MaxInvocations: 1024,
		}
		want := "cuda_" + q.variant + "_f16"
		if v := k.Runs(v, e, spec.Problem{M: q.size, K: q.size, N: q.n, Caps: caps}); v.Name != want {
			t.Errorf("%d×%d packed for %s, capability %d, %d columns: %s, want %s", q.size, q.size, q.packed, q.arch, q.n,
				v.Name, want)
		}
	}
}

// TestGrids: variants that compute a tile of C in each workgroup have as many workgroups as C has tiles, however large
// the device.
func TestGrids(t *testing.T) {
	const rows, n = 1 << 15, 1000
	a := &formats.CSR[half.F16]{Rows: rows, Cols: 1, RowPtr: make([]int64, rows+1)}
	k := lanestream.Format
	for _, v := range k.Variants {
		if v.Code != backend.CodeSPIRV || v.In != dtype.F16 {
			continue
		}
		e, err := k.Encode(a, v)
		if err != nil {
			t.Fatal(err)
		}
		l, err := k.LaunchSuited(v, e, spec.Problem{M: rows, K: 1, N: n, LDB: n, LDC: n, Out: dtype.F32, Alpha: 1,
			Caps: backend.Caps{Units: 132}})
		if err != nil {
			t.Fatal(err)
		}
		p := l.Passes[0]
		down := max(1, int(p.Variant.Const("GROUPS"))) * format.GroupRows
		if each := int(shadertest.Param(k.Program, p, "each")); p.Variant.Const("GROUPS") == 0 {
			down *= each
		}
		tiles := spec.Ceil(rows, down) * spec.Ceil(n, int(p.Variant.Const("COLS")))
		if have := int(p.Groups[0]) * int(p.Groups[1]) * int(p.Groups[2]); have < tiles {
			t.Errorf("%s runs %s with %d workgroups for %d tiles", v.Name, p.Variant.Name, have, tiles)
		}
	}
}
