// Products with a matrix that is not on the device.

package plan

import (
	"context"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/resident"
)

// runStreamed multiplies with a matrix that is not on the device. Its time is the host's.
func (p *Plan) runStreamed(ctx context.Context, m *resident.Matrix, w launch.RunList, times int) (backend.Timing,
	error) {
	start := time.Now()
	if len(w.Marks) == 0 {
		return p.dev.Run(ctx, w.Launches...)
	}
	var err error
	p.streamed, err = m.Stream.Run(ctx, w.Launches, w.Marks, times)
	return backend.Timing{Host: time.Since(start)}, err
}

// begun is a product that a goroutine computes from now on.
func begun(compute func() (backend.Timing, error)) backend.Pending {
	w := &waited{done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.t, w.err = compute()
	}()
	return w
}

// waited is a product that a goroutine computes.
type waited struct {
	done chan struct{}
	t    backend.Timing
	err  error
}

func (w *waited) Wait(ctx context.Context) (backend.Timing, error) {
	select {
	case <-w.done:
		return w.t, w.err
	default:
	}
	select {
	case <-w.done:
		return w.t, w.err
	case <-ctx.Done():
		return backend.Timing{}, ctx.Err()
	}
}
