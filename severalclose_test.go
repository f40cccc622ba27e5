// Groups, their plans, tensors and sequences that are closed, or calls that are cancelled, while goroutines use them. make test-race
// runs this with the race detector.

package spmm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/spmmrun/spmm"
	"github.com/spmmrun/spmm/formats"
	"github.com/spmmrun/spmm/formats/gen"
)

// shared is what the goroutines of a test share: a plan on two devices, with its operands and a sequence.
type shared struct {
	g       *spmm.Device
	p       *spmm.Plan
	b       *formats.Dense[float32]
	want    *formats.Dense[float32]
	values  []float32
	x, y    *spmm.Tensor[float32]
	s       *spmm.Sequence // nil: the plan streams
	streams bool
}

// newShared has B on the first device, so that it moves, and for the sequence operands of its own.
func newShared(t *testing.T, o spmm.Options) *shared {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	h := &shared{g: openSeveral(t, "cpu,cpu"), streams: o.Memory > 0}
	a, err := gen.CSR("gen:uniform,rows=2000,cols=200,density=0.1,values=int:-4:4")
	must(err)
	h.values = append(h.values, a.Val...)
	h.b = gen.Dense(200, 40, 1, gen.Values{Kind: gen.Int, Lo: -8, Hi: 8})
	h.want = expected(1, a, h.b, 0, formats.NewDense[float32](2000, 40))
	h.p, err = spmm.Prepare(ctx, h.g, a, o)
	must(err)
	n := 40
	if most := h.p.Info().Columns; most > 0 {
		n = min(n, most)
	}
	h.x, err = spmm.NewTensorAt[float32](h.p, 200, n, spmm.On(0))
	must(err)
	_, h.y, err = spmm.TensorsFor[float32, float32](h.p, n)
	must(err)
	must(h.x.Upload(ctx, gen.Dense(200, n, 1, gen.Values{})))
	if h.streams {
		timing, err := h.p.Run(ctx, 1, h.x, 0, h.y)
		must(err)
		if timing.Streamed.Panels < 2 {
			t.Fatalf("A comes in %d panels", timing.Streamed.Panels)
		}
		return h
	}
	h.s = h.g.NewSequence()
	u, v, err := spmm.TensorsFor[float32, float32](h.p, n)
	must(err)
	must(u.Upload(ctx, gen.Dense(200, n, 1, gen.Values{})))
	must(errors.Join(h.s.Add(h.p, 1, u, 0, v), h.s.Add(h.p, 1, u, 1, v)))
	return h
}

// calls are what the goroutines do.
func (h *shared) calls() []func(ctx context.Context) error {
	all := []func(ctx context.Context) error{
		func(ctx context.Context) error {
			c := formats.NewDense[float32](2000, 40)
			if _, err := spmm.Multiply(ctx, h.p, 1, h.b, 0, c); err != nil {
				return err
			}
			return differ(c, h.want)
		},
		func(ctx context.Context) error { return second(h.p.Run(ctx, 1, h.x, 0, h.y)) },
		func(ctx context.Context) error { return second(h.p.Repeat(ctx, 2, 1, h.x, 1, h.y)) },
		func(ctx context.Context) error {
			_, n := h.y.Dims()
			return h.y.Download(ctx, formats.NewDense[float32](2000, n))
		},
	}
	if !h.streams {
		all = append(all,
			func(ctx context.Context) error { return second(h.s.Run(ctx)) },
			func(ctx context.Context) error { return spmm.SetValues(ctx, h.p, h.values) },
		)
	}
	return all
}

var groupUses = map[string]spmm.Options{
	"columns":      {Split: spmm.ByColumns},
	"rows":         {Split: spmm.ByRows},
	"reproducible": {Split: spmm.ByRows, Mode: spmm.Reproducible},
	"streamed":     {Split: spmm.ByRows, Memory: 120 << 10, Cols: 8},
}

// Whatever is closed, calls that use it end without an error or say that it was closed, and what was reported as good is good.
func TestSeveralCloseWhileUsed(t *testing.T) {
	for name, o := range groupUses {
		for _, what := range []string{"B", "C", "plan", "sequence", "a device", "group"} {
			t.Run(name+"/"+what, func(t *testing.T) {
				h := newShared(t, o)
				shut := map[string]func() error{
					"B": h.x.Close, "C": h.y.Close, "plan": h.p.Close, "a device": h.g.Devices()[1].Close, "group": h.g.Close,
				}[what]
				if what == "sequence" {
					if shut = h.p.Close; h.s != nil {
						shut = h.s.Close
					}
				}
				calls := h.calls()
				started := make(chan struct{}, len(calls))
				var g errgroup.Group
				for i, call := range calls {
					g.Go(func() error {
						for k := range 12 {
							err := call(ctx)
							if k == 0 {
								started <- struct{}{}
							}
							if err != nil && strings.Contains(err.Error(), "after Close") {
								return nil
							}
							if err != nil {
								return fmt.Errorf("call %d: %w", i, err)
							}
						}
						return nil
					})
				}
				<-started
				g.Go(shut)
				g.Go(shut)
				if err := g.Wait(); err != nil {
					t.Error(err)
				}
				if err := shut(); err != nil {
					t.Errorf("closed again: %v", err)
				}
			})
		}
	}
}

// A call that is cancelled says so, or has done its work, and the next one works.
func TestSeveralCancel(t *testing.T) {
	for name, o := range groupUses {
		t.Run(name, func(t *testing.T) {
			h := newShared(t, o)
			var g errgroup.Group
			for i, call := range h.calls() {
				g.Go(func() error {
					for k := range 12 {
						soon, stop := context.WithTimeout(ctx, time.Duration(k*k)*15*time.Microsecond)
						err := call(soon)
						stop()
						if err != nil && !errors.Is(err, context.DeadlineExceeded) && !strings.Contains(err.Error(), "set its values again") {
							return fmt.Errorf("call %d: %w", i, err)
						}
					}
					return nil
				})
			}
			if err := g.Wait(); err != nil {
				t.Error(err)
			}
			if !h.streams {
				if err := spmm.SetValues(ctx, h.p, h.values); err != nil {
					t.Error(err)
				}
			}
			for i, call := range h.calls() {
				if err := call(ctx); err != nil {
					t.Errorf("call %d, when nothing is cancelled: %v", i, err)
				}
			}
			if err := errors.Join(h.x.Close(), h.y.Close(), h.p.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}
