// Rows that groups of ranks share: the bits are those of one process, and what crosses is what the algorithm says.

package dist_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/comm/local"
	"github.com/spmmrun/spmm/dist"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
	"github.com/spmmrun/spmm/formats/half"
	"pgregory.net/rapid"
)

// groups are ranks and how many share rows.
var groups = [][2]int{{1, 1}, {2, 2}, {3, 3}, {4, 2}, {4, 4}, {6, 3}}

// withWild returns a copy of a some values of which are not finite, or far larger than the rest.
func withWild(a *formats.CSR[float32]) *formats.CSR[float32] {
	a = a.Clone().(*formats.CSR[float32])
	for e, x := range map[int]float32{3: float32(math.Inf(-1)), 700: float32(math.NaN()), 901: 0x1p30, 1500: -0x1p-100, 2001: float32(math.Inf(1))} {
		if e < len(a.Val) {
			a.Val[e] = x
		}
	}
	return a
}

func TestSharedRows(t *testing.T) {
	dev := openCPU(t)
	for name, a := range map[string]*formats.CSR[float32]{
		"graph": graph(700, 9), "values not finite": withWild(graph(300, 9)), "stencil": stencil(20), "wide": must(gen.CSR("gen:uniform,rows=60,cols=900,density=0.02")),
		"tall": must(gen.CSR("gen:powerlaw,rows=900,cols=70,nnz-per-row=5")), "R-MAT": must(gen.CSR("gen:rmat,scale=9")),
		"no entries": must(gen.CSR("gen:uniform,rows=50,density=0")), "three rows": must(gen.CSR("gen:uniform,rows=3,cols=40,density=0.5")),
	} {
		for _, p := range []int{15, 23, 31, 47, spmm.AutoP} {
			const n = 5
			o := spmm.Options{Mode: spmm.Reproducible, P: p}
			b, c := outliers(a.Cols, n, true), gen.Dense(a.Rows, n, 4, gen.Values{})
			want := alone(t, dev, o, a, 0.5, b, 0.25, c)
			for i, g := range groups {
				q := &job[float32]{a: a, b: b, c: c, alpha: 0.5, beta: 0.25, o: dist.Options{Multiply: o, Replicate: g[1]}, uneven: (i+p)%2 == 0}
				got, err := q.on(dev, g[0])
				if err != nil {
					t.Fatalf("%s, p = %d, %d ranks, %d share rows: %v", name, p, g[0], g[1], err)
				}
				if !got.Equal(want) {
					t.Errorf("%s, p = %d, %d ranks, %d share rows: other bits than in one process", name, p, g[0], g[1])
				}
				if q.infos[0].Replicate != g[1] {
					t.Errorf("%d ranks share rows, want %d", q.infos[0].Replicate, g[1])
				}
			}
		}
	}
}

// Any matrix and B, in f16, without columns too.
func TestSharedRowsRandom(t *testing.T) {
	dev := openCPU(t)
	rapid.Check(t, func(rt *rapid.T) {
		m, k := rapid.IntRange(0, 60).Draw(rt, "m"), rapid.IntRange(0, 60).Draw(rt, "k")
		a := formats.Convert[half.F16](must(gen.CSR(fmt.Sprintf("gen:uniform,rows=%d,cols=%d,density=%v,seed=%d", m, k,
			rapid.SampledFrom([]float64{0, 0.02, 0.2, 1}).Draw(rt, "density"), rapid.IntRange(0, 99).Draw(rt, "seed")))))
		b, c := formats.ConvertDense[half.F16](gen.Dense(k, rapid.IntRange(0, 9).Draw(rt, "n"), 1, gen.Values{})), (*formats.Dense[float32])(nil)
		c = gen.Dense(m, b.Cols, 2, gen.Values{})
		g := rapid.SampledFrom(groups).Draw(rt, "groups")
		q := &job[half.F16]{
			a: a, b: b, c: c, alpha: 1, beta: rapid.SampledFrom([]float32{0, 1}).Draw(rt, "beta"), uneven: rapid.Bool().Draw(rt, "uneven"),
			o: dist.Options{Multiply: spmm.Options{Mode: spmm.Reproducible, P: rapid.SampledFrom([]int{15, 23, 47}).Draw(rt, "p")}, Replicate: g[1]},
		}
		q.asAlone(t, rt, dev, g[0])
	})
}

// A rank receives rows of B for its columns, and for each of the others of its group the sums of its own rows, in 8 bytes
// where these suffice. With many entries a row and many ranks that is less than without sharing.
func TestSharedRowsReceive(t *testing.T) {
	dev := openCPU(t)
	const rows, n, ranks = 640, 3, 16
	a := must(gen.CSR(fmt.Sprintf("gen:uniform,rows=%d,cols=%d,density=0.3", rows, rows)))
	received := func(c, p int) (total int64) {
		q := &job[float32]{
			a: a, b: outliers(rows, n, false), c: formats.NewDense[float32](rows, n), alpha: 1,
			o: dist.Options{Multiply: spmm.Options{Mode: spmm.Reproducible, P: p}, Replicate: c},
		}
		if _, err := q.on(dev, ranks); err != nil {
			t.Fatal(err)
		}
		for r, x := range q.timings {
			i := q.infos[r]
			sums := int64(0)
			if c > 1 {
				sums = i.Rows * int64(c-1) * n * map[int]int64{23: 8, 47: 16}[p]
			}
			if want := i.Ghosts*n*4 + sums; x.Received != want {
				t.Errorf("rank %d of %d that share rows receives %d bytes at p = %d, want %d", r, c, x.Received, p, want)
			}
			total += x.Received
		}
		return total
	}
	alone, shared, wide := received(1, 23), received(4, 23), received(4, 47)
	if shared >= alone*7/10 || wide <= shared {
		t.Errorf("%d bytes are received, with groups of four %d, and %d with sums of 128 bits", alone, shared, wide)
	}
}

// A bias and ReLU come after the rounding, and steps of propagation have the same bits.
func TestSharedRowsEpilogue(t *testing.T) {
	dev := openCPU(t)
	a := graph(200, 8)
	const n = 4
	b, bias := outliers(a.Cols, n, true), gen.Dense(a.Rows, 1, 5, gen.Values{})
	bias.Data[7] = float32(math.NaN())
	colBias := gen.Dense(1, n, 6, gen.Values{})
	o := spmm.Options{Mode: spmm.Reproducible}
	for _, byRow := range []bool{true, false} {
		product := func(c comm.Comm, replicate int, out *formats.Dense[float32]) error {
			s, err := dist.FromRoot(c, map[bool]*formats.CSR[float32]{true: a}[c.Rank() == 0])
			if err == nil {
				s, err = dist.Balance(ctx, c, s)
			}
			if err != nil {
				return err
			}
			p, err := dist.Prepare(ctx, c, dev, s, dist.Options{Multiply: o, Replicate: replicate})
			if err != nil {
				return err
			}
			defer p.Close()
			lo, hi := p.Shares().Range(c.Rank())
			mine := formats.NewDense[float32](hi-lo, n)
			d := colBias
			if byRow {
				d = rowsOf(bias, lo, hi)
			}
			x, err := spmm.NewTensor[float32](dev, d.Rows, d.Cols, false)
			if err != nil {
				return err
			}
			defer x.Close()
			if err := x.Upload(ctx, d); err != nil {
				return err
			}
			e := spmm.Epilogue{Activation: spmm.ReLU}
			if byRow {
				e.RowBias = x
			} else {
				e.ColBias = x
			}
			if _, err := p.Run(ctx, 1, rowsOf(b, lo, hi), 0, mine, e); err != nil {
				return err
			}
			for i := range mine.Rows {
				copy(out.Line(lo+i), mine.Line(i))
			}
			return nil
		}
		var outs []*formats.Dense[float32]
		for _, g := range [][2]int{{1, 1}, {4, 2}, {3, 3}} {
			out := formats.NewDense[float32](a.Rows, n)
			if err := local.Run(g[0], func(c comm.Comm) error { return product(c, g[1], out) }); err != nil {
				t.Fatal(err)
			}
			if outs = append(outs, out); !out.Equal(outs[0]) {
				t.Errorf("a bias by rows %t, %v: other bits than on one rank", byRow, g)
			}
		}
	}
}

// By prediction, ranks share rows where each would meet nearly all rows of B, and do not where few rows cross, where sums are of
// 128 bits and so outweigh that, in fast mode, and where it is forbidden.
func TestSharedRowsAuto(t *testing.T) {
	dev := openCPU(t)
	const n, ranks = 2, 16
	dense := must(gen.CSR("gen:uniform,rows=640,cols=640,density=0.3"))
	for _, tt := range []struct {
		name string
		a    *formats.CSR[float32]
		o    dist.Options
		want int
	}{
		{"many entries a row", dense, dist.Options{Multiply: spmm.Options{Mode: spmm.Reproducible, P: 23}}, 2},
		{"a stencil", stencil(25), dist.Options{Multiply: spmm.Options{Mode: spmm.Reproducible, P: 23}}, 1},
		{"sums of 128 bits", dense, dist.Options{Multiply: spmm.Options{Mode: spmm.Reproducible, P: 47}}, 1},
		{"fast mode", dense, dist.Options{}, 1},
		{"forbidden", dense, dist.Options{Multiply: spmm.Options{Mode: spmm.Reproducible, P: 23}, Replicate: 1}, 1},
	} {
		b, c := outliers(tt.a.Cols, n, false), formats.NewDense[float32](tt.a.Rows, n)
		q := &job[float32]{a: tt.a, b: b, c: c, alpha: 1, o: tt.o}
		got, err := q.on(dev, ranks)
		if err != nil {
			t.Fatal(err)
		}
		for r, i := range q.infos {
			if i.Replicate != tt.want || i.Why == "" {
				t.Errorf("%s: on rank %d, %d share rows, because %q; want %d", tt.name, r, i.Replicate, i.Why, tt.want)
			}
		}
		if !got.Equal(alone(t, dev, tt.o.Multiply, tt.a, 1, b, 0, c)) {
			t.Errorf("%s: other bits than in one process", tt.name)
		}
	}
}
