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
	plan := prepare(t, dev, a, o)
	defer plan.Close()
	var all []operands
	for _, n := range []int{5, 5, 9} {
		p := operands{b: dense[float32](r, 30, n, 0, colMajor), c: dense[float32](r, 40, n, 0, colMajor)}
		p.x = newTensor[float32](t, dev, 30, n, colMajor)
		defer p.x.Close()
		p.y = newTensor[float32](t, dev, 40, n, colMajor)
		defer p.y.Close()
		must(t, p.x.Upload(ctx, p.b))
		all = append(all, p)
	}
	negative := float32(math.Copysign(0, -1))
	first := product{all[0], all[0], 1, 3, 1}
	for _, next := range []product{
		{all[0], all[0], -2, 3, 1}, {all[0], all[0], 0, 3, 1}, {all[0], all[0], negative, 3, 1},
		{all[0], all[0], 1, -1, 1}, {all[0], all[0], 1, 0, 1}, {all[0], all[0], 1, negative, 1},
		{all[1], all[0], 1, 3, 1}, {all[0], all[1], 1, 3, 1}, {all[2], all[2], 1, 3, 1},
		{all[0], all[0], 1, 3, 2},
	} {
		for i, q := range []product{first, next, first, next} { // composed, composed, kept, kept
			if err := q.check(plan, a); err != nil {
				t.Fatalf("%d. of %v, %v after %v, %v: %v", i+1, q.alpha, q.beta, first.alpha, first.beta, err)
			}
		}
	}
}

// product is C = alpha·A·B + beta·C, some times in a row: b has B, c has C.
type product struct {
	b, c        operands
	alpha, beta float32
	times       int
}

// check multiplies and compares.
func (q product) check(plan *spmm.Plan, a *formats.CSR[float32]) error {
	if err := q.c.y.Upload(ctx, q.c.c); err != nil {
		return err
	}
	if _, err := plan.Repeat(ctx, q.times, float64(q.alpha), q.b.x, float64(q.beta), q.c.y); err != nil {
		return err
	}
	got := *q.c.c
	got.Data = make([]float32, len(got.Data))
	if err := q.c.y.Download(ctx, &got); err != nil {
		return err
	}
	want := q.c.c
	for range q.times {
		want = expected(q.alpha, a, q.b.b, q.beta, want)
	}
	return differ(&got, want)
}

// The sign of an alpha of 0 is that of the product, whichever came before.
func TestReuseSignOfZero(t *testing.T) {
	dev := openCPU(t)
	a := &formats.CSR[float32]{Rows: 1, Cols: 1, RowPtr: []int64{0, 1}, ColIdx: []int32{0}, Val: []float32{1}}
	for _, mode := range modes {
		plan := prepare(t, dev, a, mode.options)
		defer plan.Close()
		b, c := formats.NewDense[float32](1, 1), formats.NewDense[float32](1, 1)
		b.Data[0] = 1
		for _, alpha := range []float32{0, float32(math.Copysign(0, -1)), 0} {
			must(t, second(spmm.Multiply(ctx, plan, float64(alpha), b, 0, c)))
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
