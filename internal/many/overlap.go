// Products for which B comes from other devices, in chunks of columns: one is multiplied while the next comes.

package many

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/dtype"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/plan"
	"github.com/spmmrun/spmm/internal/tensor"
)

// chunked holds a device's buffers: two chunks of B, one copied while the other is multiplied, and one of
// C.
type chunked struct {
	b [2]*tensor.Tensor
	c *tensor.Tensor
}

// overlapped computes c = alpha·A·b + beta·c by chunks, where that may be, and tells whether it was.
func (g *Plan) overlapped(ctx context.Context, n int, alpha float64, b *Tensor, beta float64, c *Tensor,
	es []launch.Epilogue, t *tally) (bool, error) {
	if err := b.use(); err != nil {
		return false, err
	}
	defer b.release()
	if err := c.use(); err != nil {
		return false, err
	}
	defer c.release()
	if !g.mayOverlap(n, b, c, es) {
		return false, nil
	}
	return true, g.overlap(ctx, n, alpha, b, beta, c, es, t)
}

// mayOverlap tells whether B, which lies elsewhere, can come in chunks while C is where it is needed: whole tiles of
// columns, which are summed as in one chunk, where some device has several; copied from device to device. A
// precision that is found from B, and a bias of columns, are for all of it. The caller uses both, see use.
func (g *Plan) mayOverlap(n int, b, c *Tensor, es []launch.Epilogue) bool {
	if g.all.Right || g.most > 0 || b.Rows == 0 { // without B there is nothing to wait for
		return false
	}
	for _, p := range b.parts { // overlap waits for all of them
		if p == nil {
			continue
		}
		if _, ok := p.Block(0, 0).(backend.PeerCopier); !ok {
			return false
		}
	}
	s, at := g.need(roleB, n)
	several := false
	for d, x := range g.boxes(s, at) {
		p, width := g.plans[d], x.c1-x.c0
		if p.Recordable() != nil || es[d].ColBias != nil || width%Tile != 0 {
			return false
		}
		if c.parts[d] == nil || width == 0 {
			continue
		}
		several = several || width > Tile
		for _, from := range b.sources(d, x) {
			to, ok := c.parts[d].Block(0, 0).(backend.PeerCopier)
			if !ok || !to.CanCopyFrom(b.parts[from].Block(0, 0)) {
				return false
			}
		}
	}
	return several
}

// overlap computes c = alpha·A·b + beta·c by chunks. The caller uses both.
func (g *Plan) overlap(ctx context.Context, n int, alpha float64, b *Tensor, beta float64, c *Tensor,
	es []launch.Epilogue, t *tally) error {
	for d, p := range b.parts { // once what was started there is done, which may write B
		if p == nil {
			continue
		}
		own := p.Block(0, 0).(backend.PeerCopier)
		if err := own.CopyFrom(ctx, own, backend.PeerLines{}); err != nil {
			return named(b.devs[d], err)
		}
	}
	s, at := g.need(roleB, n)
	boxes := g.boxes(s, at)
	return together(ctx, len(g.plans), func(ctx context.Context, d int) error {
		if c.parts[d] == nil || boxes[d].empty() {
			return nil
		}
		if err := g.overlapOn(ctx, d, boxes[d], alpha, b, beta, c, es[d], t); err != nil {
			return named(g.plans[d].Device(), err)
		}
		return nil
	})
}

// overlapOn is overlap on one device, which needs the elements of a box of B.
func (g *Plan) overlapOn(ctx context.Context, d int, need box, alpha float64, b *Tensor, beta float64, c *Tensor,
	e launch.Epilogue, t *tally) error {
	if b.boxes[d] == need {
		tm, err := g.plans[d].Run(ctx, alpha, b.parts[d], beta, c.parts[d], e)
		t.Each[d] = backend.Timing{Device: tm.Device, Host: tm.Host}
		return err
	}
	w, err := g.chunksOn(d, b.Type, c.Type)
	if err != nil {
		return err
	}
	var free, full [2]chan struct{}
	for i := range free {
		free[i], full[i] = make(chan struct{}, 1), make(chan struct{}, 1)
		free[i] <- struct{}{}
	}
	receive := func(ctx context.Context, from chan struct{}) error {
		select {
		case <-from:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	chunks := (need.c1 - need.c0) / Tile
	chunk := func(x box, k int) box { return box{x.r0, x.r1, need.c0 + k*Tile, need.c0 + (k+1)*Tile} }
	run, ctx := errgroup.WithContext(ctx)
	run.Go(func() error {
		var took time.Duration
		for k := range chunks {
			if err := receive(ctx, free[k&1]); err != nil {
				return err
			}
			begun := time.Now()
			if err := g.fetch(ctx, d, w.b[k&1], chunk(need, k), b, t); err != nil {
				return err
			}
			took += time.Since(begun)
			full[k&1] <- struct{}{}
		}
		t.adding.Lock()
		defer t.adding.Unlock()
		t.Move = max(t.Move, took)
		return nil
	})
	run.Go(func() error {
		for k := range chunks {
			if err := receive(ctx, full[k&1]); err != nil {
				return err
			}
			tm, err := g.multiplyChunk(ctx, d, alpha, w.b[k&1], beta, w.c, chunk(c.boxes[d], k), c, e)
			if err != nil {
				return err
			}
			t.Each[d].Device += tm.Device
			t.Each[d].Host += tm.Host
			free[k&1] <- struct{}{}
		}
		return nil
	})
	return run.Wait()
}

// fetch copies elements of B to a device while it computes.
func (g *Plan) fetch(ctx context.Context, d int, dst *tensor.Tensor, x box, b *Tensor, t *tally) error {
	for _, from := range b.sources(d, x) {
		n, err := copyBox(ctx, dst, x, b.parts[from], b.boxes[from], true)
		if err != nil {
			return fmt.Errorf("copying from %s:%d: %w", b.devs[from].Info().Backend, b.devs[from].Info().Index, err)
		}
		if b.devs[from] != g.plans[d].Device() {
			t.adding.Lock()
			t.Moved += n
			t.adding.Unlock()
		}
	}
	return nil
}

// multiplyChunk multiplies by a chunk of B, into elements x of C.
func (g *Plan) multiplyChunk(ctx context.Context, d int, alpha float64, b *tensor.Tensor, beta float64,
	tmp *tensor.Tensor, x box, c *Tensor, e launch.Epilogue) (api.Timing, error) {
	if beta != 0 {
		if _, err := copyBox(ctx, tmp, x, c.parts[d], c.boxes[d], false); err != nil {
			return api.Timing{}, err
		}
	}
	tm, err := g.plans[d].Run(ctx, alpha, b, beta, tmp, e)
	if err != nil {
		return tm, err
	}
	_, err = copyBox(ctx, c.parts[d], c.boxes[d], tmp, x, false)
	return tm, err
}

// chunksOn returns device d's chunks, which the plan keeps.
func (g *Plan) chunksOn(d int, b, c dtype.Type) (*chunked, error) {
	w := &g.chunks[d]
	if w.c != nil && w.b[0].Type == b && w.c.Type == c {
		return w, nil
	}
	if err := w.close(g.plans[d]); err != nil {
		return nil, err
	}
	sb, sc, err := g.plans[d].Shapes(Tile, b, false, c, false)
	if err != nil {
		return nil, err
	}
	ts, err := tensor.NewAll(g.plans[d].Device(), sb, sb, sc)
	if err != nil {
		return nil, err
	}
	*w = chunked{[2]*tensor.Tensor{ts[0], ts[1]}, ts[2]}
	return w, nil
}

// close frees the chunks; the plan forgets their launches.
func (w *chunked) close(p *plan.Plan) error {
	var errs []error
	for _, t := range []*tensor.Tensor{w.b[0], w.b[1], w.c} {
		if t != nil {
			p.Forget(t)
			errs = append(errs, t.Close())
		}
	}
	*w = chunked{}
	return errors.Join(errs...)
}
