// A plan keeps the launches of the products that it multiplied last. Whatever changes between two calls, the second
// does what it says.

package spmm_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/formats"
)

// operands are B and C on a device and what is in them.
type operands struct {
	x, y *spmm.Tensor[float32]
	b, c *formats.Dense[float32]
}

func TestReuse(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev *spmm.Device) {
		for _, mode := range modes {
			for _, colMajor := range []bool{false, true} { // staged as well
				t.Run(mode.name, func(t *testing.T) { reuse(t, dev, mode.options, colMajor) })
			}
		}
	})
}

func reuse(t *testing.T, dev *spmm.Device, o spmm.Options, colMajor bool) {
	r := rand.New(rand.NewPCG(7, 7))
	a := sparse[float32](r, 40, 30, 4)
	plan, err := spmm.Prepare(ctx, dev, a, o)
	if err != nil {
		t.Fatal(err)
	}
	defer plan.Close()
	var all []operands
	for _, n := range []int{5, 5, 9} {
		p := operands{b: dense[float32](r, 30, n, 0, colMajor), c: dense[float32](r, 40, n, 0, colMajor)}
		if p.x, err = spmm.NewTensor[float32](dev, 30, n, colMajor); err != nil {
			t.Fatal(err)
		}
		defer p.x.Close()
		if p.y, err = spmm.NewTensor[float32](dev, 40, n, colMajor); err != nil {
			t.Fatal(err)
		}
		defer p.y.Close()
		if err := p.x.Upload(ctx, p.b); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	// Every pair of neighbours differs in one of alpha, beta, B and C, and each is met again.
	scalars := []float32{1, -2, 0, float32(math.Copysign(0, -1)), 3}
	for round := range 2 {
		for i, x := range all {
			for j, y := range all {
				if x.b.Cols != y.c.Cols {
					continue
				}
				for _, alpha := range scalars {
					for _, beta := range scalars {
						if err := y.y.Upload(ctx, y.c); err != nil {
							t.Fatal(err)
						}
						if _, err := plan.Run(ctx, alpha, x.x, beta, y.y); err != nil {
							t.Fatal(err)
						}
						got := formats.NewDense[float32](40, y.c.Cols)
						got.ColMajor = colMajor
						if colMajor {
							got.LD = got.Rows
						}
						if err := y.y.Download(ctx, got); err != nil {
							t.Fatal(err)
						}
						if err := differ(got, expected(alpha, a, x.b, beta, y.c)); err != nil {
							t.Fatalf("round %d, B %d, C %d, alpha %v, beta %v: %v", round, i, j, alpha, beta, err)
						}
					}
				}
			}
		}
	}
}

// The sign of an alpha of 0 is that of the product, whichever came before.
func TestReuseSignOfZero(t *testing.T) {
	dev := openCPU(t)
	a := &formats.CSR[float32]{Rows: 1, Cols: 1, RowPtr: []int64{0, 1}, ColIdx: []int32{0}, Val: []float32{1}}
	for _, mode := range modes {
		plan, err := spmm.Prepare(ctx, dev, a, mode.options)
		if err != nil {
			t.Fatal(err)
		}
		defer plan.Close()
		b, c := formats.NewDense[float32](1, 1), formats.NewDense[float32](1, 1)
		b.Data[0] = 1
		for _, alpha := range []float32{0, float32(math.Copysign(0, -1)), 0} {
			if _, err := spmm.Multiply(ctx, plan, alpha, b, 0, c); err != nil {
				t.Fatal(err)
			}
			want := alpha
			if mode.options.Mode == spmm.Reproducible { // where a product of integers has no sign if it is 0
				answer, _, _ := exact(t, 15, alpha, a, b, 0, c)
				want = answer.Data[0]
			}
			if math.Float32bits(c.Data[0]) != math.Float32bits(want) {
				t.Errorf("%s: %v·1·1 is %v, want %v", mode.name, alpha, c.Data[0], want)
			}
		}
	}
}
