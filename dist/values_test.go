// New values: products have the bits of a plan that was prepared with them.

package dist_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/comm"
	"github.com/spmmrun/spmm/comm/local"
	"github.com/spmmrun/spmm/dist"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
)

func TestSetValues(t *testing.T) {
	dev := openCPU(t)
	const n = 5
	for name, a := range map[string]*formats.CSR[float32]{"graph": graph(600, 9), "stencil": stencil(25)} {
		r := rand.New(rand.NewPCG(1, 2))
		changed := a.Clone().(*formats.CSR[float32])
		for e := range changed.Val {
			changed.Val[e] = float32(r.IntN(1<<20)) * 0x1p-30
		}
		b, zero := outliers(a.Cols, n, true), formats.NewDense[float32](a.Rows, n)
		for mode, o := range modes {
			want := alone(t, dev, o, changed, 1, b, 0, zero)
			for _, ranks := range []int{1, 3} {
				for _, onDevice := range []bool{false, true} {
					err := local.Run(ranks, func(c comm.Comm) error {
						lo, hi := dist.Even(a.Rows, ranks).Range(c.Rank())
						p, err := dist.Prepare(ctx, c, dev, dist.Share[float32]{First: lo, A: a.Range(lo, hi)}, dist.Options{Multiply: o})
						if err != nil {
							return err
						}
						defer p.Close()
						mine, of := formats.NewDense[float32](hi-lo, n), rowsOf(b, lo, hi)
						if _, err := dist.Multiply(ctx, p, 1, of, 0, mine); err != nil { // which encodes A, with AutoP
							return err
						}
						values := changed.Range(lo, hi).Val
						if onDevice {
							err = p.SetValues(ctx, upload(t, dev, &formats.Dense[float32]{Rows: 1, Cols: len(values), LD: len(values),
								Data: values}))
						} else {
							err = dist.SetValues(ctx, p, values)
						}
						if err != nil {
							return err
						}
						if _, err := dist.Multiply(ctx, p, 1, of, 0, mine); err != nil {
							return err
						}
						if !mine.Equal(rowsOf(want, lo, hi)) {
							return fmt.Errorf("rank %d: other bits than with these values from the first", c.Rank())
						}
						return nil
					})
					if err != nil {
						t.Errorf("%s, %s, %d ranks, from the device %t: %v", name, mode, ranks, onDevice, err)
					}
				}
			}
		}
	}
	err := local.Run(2, func(c comm.Comm) error {
		a := must(gen.CSR("gen:diagonal,rows=6"))
		p, err := dist.Prepare(ctx, c, dev, dist.Share[float32]{First: 3 * c.Rank(), A: a.Range(3*c.Rank(), 3*c.Rank()+3)},
			dist.Options{})
		if err != nil {
			return err
		}
		defer p.Close()
		for what, err := range map[string]error{
			"values of another type":  dist.SetValues(ctx, p, make([]float64, 3)),
			"too few on one rank":     dist.SetValues(ctx, p, make([]float32, 3-c.Rank())),
			"a tensor that is no row": p.SetValues(ctx, upload(t, dev, formats.NewDense[float32](2, 2))),
			"no tensor":               p.SetValues(ctx, nil),
		} {
			if err == nil {
				return fmt.Errorf("%s: not refused", what)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Repeat adds each product to the last one's, and what they took.
func TestRepeat(t *testing.T) {
	dev := openCPU(t)
	a := stencil(12)
	const n, ranks, times = 3, 2, 4
	b := gen.Dense(a.Cols, n, 1, gen.Values{Kind: gen.Int, Lo: -8, Hi: 8})
	want := formats.NewDense[float32](a.Rows, n)
	for range times {
		want = alone(t, dev, spmm.Options{}, a, 1, b, 1, want)
	}
	err := local.Run(ranks, func(c comm.Comm) error {
		lo, hi := dist.Even(a.Rows, ranks).Range(c.Rank())
		p, err := dist.Prepare(ctx, c, dev, dist.Share[float32]{First: lo, A: a.Range(lo, hi)}, dist.Options{})
		if err != nil {
			return err
		}
		defer p.Close()
		mine := formats.NewDense[float32](hi-lo, n)
		x, y := upload(t, dev, rowsOf(b, lo, hi)), upload(t, dev, mine)
		took, err := p.Repeat(ctx, times, 1, x, 1, y)
		if err == nil {
			err = y.Download(ctx, mine)
		}
		switch {
		case err != nil:
			return err
		case !mine.Equal(rowsOf(want, lo, hi)):
			return fmt.Errorf("rank %d: other bits than one product after the other", c.Rank())
		case took.Received != times*p.Info().Halo*n*4:
			return fmt.Errorf("rank %d: %d bytes received", c.Rank(), took.Received)
		}
		if _, err := p.Repeat(ctx, 0, 1, x, 1, y); err == nil {
			return fmt.Errorf("no repetition is not refused")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
