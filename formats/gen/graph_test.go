// Graphs, grids, and rows that are made without the others.

package gen_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
)

// Any rows of any kind are those of the whole matrix.
func TestGenerateRows(t *testing.T) {
	for _, spec := range []string{
		"gen:uniform,rows=1003,cols=500,density=0.02", "gen:vector,rows=1003,cols=99,v=8",
		"gen:block,rows=1003,cols=997,block=16",
		"gen:nm,rows=333,cols=101,v=4", "gen:banded,rows=1000,cols=500", "gen:powerlaw,rows=3000,nnz-per-row=4",
		"gen:onedense,rows=100",
		"gen:diagonal,rows=10,cols=20", "gen:rmat,scale=9", "gen:rmat,scale=9,permute=0,empty=0.2", "gen:stencil,side=9",
		"gen:stencil,points=5,side=20",
	} {
		whole := mustCSR(t, spec)
		s, err := gen.Parse(spec, 0)
		if err != nil {
			t.Fatal(err)
		}
		n := whole.Rows
		for _, r := range [][2]int{{0, n}, {0, 0}, {n, n}, {0, 1}, {n - 1, n}, {n / 3, n/3 + 1}, {n / 3, n - 3}} {
			part, err := s.GenerateRows(context.Background(), formats.Limits{}, r[0], r[1])
			if err != nil {
				t.Fatal(err)
			}
			if !part.Equal(whole.Range(r[0], r[1])) {
				t.Errorf("%s: rows %d to %d differ from the whole matrix's", spec, r[0], r[1])
			}
		}
		for _, r := range [][2]int{{-1, 2}, {3, 2}, {0, n + 1}} {
			if _, err := s.GenerateRows(context.Background(), formats.Limits{}, r[0], r[1]); err == nil {
				t.Errorf("%s: rows %d to %d are not refused", spec, r[0], r[1])
			}
		}
		if _, err := s.GenerateRows(context.Background(), formats.Limits{NNZ: 3}, 0, n); err == nil {
			t.Errorf("%s: limits are not heeded", spec)
		}
	}
}

func TestDenseRows(t *testing.T) {
	whole := gen.Dense(50, 7, 3, gen.Values{})
	for _, r := range [][2]int{{0, 50}, {0, 0}, {13, 14}, {20, 50}} {
		part := gen.DenseRows(r[0], r[1], 7, 3, gen.Values{})
		if part.Rows != r[1]-r[0] || !slices.Equal(part.Data, whole.Data[7*r[0]:7*r[1]]) {
			t.Errorf("rows %d to %d differ from the whole matrix's", r[0], r[1])
		}
	}
}

// rmat has the degrees of a Kronecker graph: the row of vertex 0 has the share 0.76^scale of the edges, columns alike,
// and numbering vertices anew changes no degree.
func TestRMAT(t *testing.T) {
	const scale, degree = 16, 2
	degrees := func(spec string) (rows, cols []int) {
		a := mustCSR(t, spec)
		rows, cols = make([]int, a.Rows), make([]int, a.Rows)
		for i := range a.Rows {
			rows[i] = len(row(a, i))
			for _, j := range row(a, i) {
				cols[j]++
			}
		}
		return rows, cols
	}
	rows, cols := degrees("gen:rmat,scale=16,degree=2,permute=0")
	edges := float64(degree << scale)
	for name, d := range map[string][]int{"row": rows, "column": cols} {
		sum := 0
		for _, n := range d {
			sum += n
		}
		if lost := 1 - float64(sum)/edges; lost < 0 || lost > 0.3 {
			t.Errorf("%d of %v edges", sum, edges)
		}
		for vertex, share := range map[int]float64{1 << 15: 0.24 / 0.76, 1: 0.24 / 0.76, 3: 0.24 * 0.24 / 0.76 / 0.76} {
			want := edges * math.Pow(0.76, scale) * share
			// some are drawn twice
			if got, spread := float64(d[vertex]), 4*math.Sqrt(want); got > want+spread || got < 0.8*want-spread {
				t.Errorf("%s %d has degree %v, want about %v", name, vertex, got, want)
			}
		}
	}
	again, _ := degrees("gen:rmat,scale=16,degree=2")
	if slices.Equal(again, rows) || slices.Index(again, slices.Max(again)) == 0 {
		t.Error("vertices are not numbered at random")
	}
	lows := 0
	for _, n := range again[:len(again)/2] {
		lows += n
	}
	if lows < degree<<scale/4 || lows > degree<<scale/2 {
		t.Errorf("low numbers have %d edges", lows)
	}
}

func TestStencil(t *testing.T) {
	for points, dims := range map[int]int{5: 2, 9: 2, 7: 3, 27: 3} {
		const side = 5
		a := mustCSR(t, map[int]string{5: "gen:stencil,side=5,points=5", 9: "gen:stencil,side=5,points=9",
			7: "gen:stencil,side=5,points=7", 27: "gen:stencil,side=5"}[points])
		at := func(v int) (p [3]int) {
			for d := range dims {
				p[d] = v % side
				v /= side
			}
			return p
		}
		for i := range a.Rows {
			var want []int32
			for j := range a.Rows {
				far, steps := 0, 0
				for d := range 3 {
					x := at(i)[d] - at(j)[d]
					far, steps = max(far, x, -x), steps+x*x
				}
				if far <= 1 && (points == 9 || points == 27 || steps <= 1) {
					want = append(want, int32(j))
				}
			}
			if err := same(row(a, i), want); err != nil {
				t.Fatalf("%d points: row %d: %v", points, i, err)
			}
		}
	}
}

func TestGraphSpecs(t *testing.T) {
	for _, spec := range []string{
		"gen:rmat,rows=5", "gen:stencil,k=5", "gen:rmat,scale=31", "gen:rmat,degree=65537", "gen:rmat,permute=2",
		"gen:stencil,points=6",
		"gen:stencil,side=1291", "gen:stencil,points=5,side=46341", "gen:stencil,side=0", "gen:uniform,scale=3",
	} {
		if _, err := gen.Parse(spec, 0); err == nil {
			t.Errorf("%s is not refused", spec)
		}
	}
	for spec, n := range map[string]int{"gen:rmat,scale=0": 1, "gen:rmat,scale=30": 1 << 30, "gen:stencil,side=1": 1,
		"gen:stencil,side=1290": 1290 * 1290 * 1290} {
		if s, err := gen.Parse(spec, 0); err != nil || s.Rows != n || s.Cols != n {
			t.Errorf("%s: %+v, %v", spec, s, err)
		}
	}
}
