// Plans and tensors shared by goroutines, and closed under their calls. make test-race runs this with the race
// detector.

package spmm_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/formats"
)

// Goroutines multiply with one plan and their own data, in host memory.
func TestConcurrentMultiply(t *testing.T) {
	dev := openCPU(t)
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(9, 10))
			a := sparse[float32](r, 60, 50, 4)
			plan := prepare(t, dev, a, mode.options)
			defer plan.Close()
			var g errgroup.Group
			for i := range 8 {
				b, c := dense[float32](r, 50, 3+i, 0, false), dense[float32](r, 60, 3+i, 0, i%2 == 0)
				want := expected(1, a, b, 0, c)
				g.Go(func() error {
					for range 10 {
						if _, err := spmm.Multiply(ctx, plan, 1, b, 0, c); err != nil {
							return err
						}
						if err := differ(c, want); err != nil {
							return err
						}
						plan.Info()
						plan.Reproduced()
					}
					return nil
				})
			}
			must(t, g.Wait())
		})
	}
}

// modes are options of both executors.
var modes = []struct {
	name    string
	options spmm.Options
}{
	{"fast", spmm.Options{Format: "csr"}},
	{"reproducible", spmm.Options{Mode: spmm.Reproducible}},
	{"reproducible auto", spmm.Options{Mode: spmm.Reproducible, P: spmm.AutoP}},
}

// Two plans share B, which others read; each has its own C.
func TestConcurrentTensors(t *testing.T) {
	dev := openCPU(t)
	r := rand.New(rand.NewPCG(9, 11))
	x := newTensor[float32](t, dev, 50, 9, false)
	defer x.Close()
	b := dense[float32](r, 50, 9, 0, false)
	must(t, x.Upload(ctx, b))
	var g errgroup.Group
	for _, mode := range modes {
		a := sparse[float32](r, 60, 50, 4)
		plan := prepare(t, dev, a, mode.options)
		want := expected(1, a, b, 0, formats.NewDense[float32](60, 9))
		for range 2 { // of each plan
			g.Go(func() error {
				y, err := spmm.NewTensor[float32](dev, 60, 9, false)
				if err != nil {
					return err
				}
				defer y.Close()
				got, back := formats.NewDense[float32](60, 9), formats.NewDense[float32](50, 9)
				for range 10 {
					_, err := plan.Run(ctx, 1, x, 0, y)
					if err := errors.Join(err, y.Download(ctx, got), x.Download(ctx, back)); err != nil {
						return err
					}
					if err := errors.Join(differ(got, want), differ(back, b)); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	must(t, g.Wait())
}

// Whatever is closed, calls that use it end without an error or say that it was closed: no crash, no race, and a
// result that was reported as good is good.
func TestCloseWhileUsed(t *testing.T) {
	for _, mode := range modes {
		for _, what := range []string{"B", "C", "plan", "device"} {
			t.Run(mode.name+" "+what, func(t *testing.T) {
				for seed := range uint64(4) {
					closeWhileUsed(t, mode.options, what, seed)
				}
			})
		}
	}
}

func closeWhileUsed(t *testing.T, o spmm.Options, what string, seed uint64) {
	dev := openCPU(t)
	r := rand.New(rand.NewPCG(9, seed))
	a, b := sparse[float32](r, 300, 200, 4), dense[float32](r, 200, 33, 3, false)
	plan := prepare(t, dev, a, o)
	x, y := tensorsFor[float32, float32](t, plan, 33)
	must(t, x.Upload(ctx, b))
	want := expected(1, a, b, 0, formats.NewDense[float32](300, 33))
	calls := []func() error{
		func() error { _, err := plan.Run(ctx, 1, x, 0, y); return err },
		func() error { _, err := plan.Repeat(ctx, 3, 1, x, 0, y); return err },
		func() error { return x.Upload(ctx, b) },
		func() error { return y.Download(ctx, formats.NewDense[float32](300, 33)) },
		func() error {
			c := formats.NewDense[float32](300, 33)
			if _, err := spmm.Multiply(ctx, plan, 1, b, 0, c); err != nil {
				return err
			}
			return differ(c, want)
		},
	}
	shut := map[string]func() error{"B": x.Close, "C": y.Close, "plan": plan.Close, "device": dev.Close}[what]
	if err := closeUnder(calls, 50, shut); err != nil {
		t.Errorf("%s closed, seed %d: %v", what, seed, err)
	}
	if err := shut(); err != nil {
		t.Errorf("%s closed again: %v", what, err)
	}
}

// closeUnder makes each of the calls `times` times, all at the same time. Once one of them has returned, it closes what
// they use, twice. A call that says that it was closed is the last of its kind.
func closeUnder(calls []func() error, times int, shut func() error) error {
	var g errgroup.Group
	started := make(chan struct{}, len(calls))
	for _, call := range calls {
		g.Go(func() error {
			for i := range times {
				err := call()
				if i == 0 {
					started <- struct{}{}
				}
				if err != nil && strings.Contains(err.Error(), "after Close") {
					return nil
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	<-started
	g.Go(shut)
	g.Go(shut) // a second Close waits as well
	return g.Wait()
}
