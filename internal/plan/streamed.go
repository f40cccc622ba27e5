// Products with a matrix that is not on the device.

package plan

import (
	"context"
	"time"

	"github.com/spmmrun/spmm/backend"
)

// runStreamed multiplies with a matrix that is not on the device. Its time is the host's.
func (p *Plan) runStreamed(ctx context.Context, m *resident, w runList, times int) (backend.Timing, error) {
	start := time.Now()
	if len(w.marks) == 0 {
		return p.dev.Run(ctx, w.launches...)
	}
	var err error
	p.streamed, err = m.stream.run(ctx, w.launches, w.marks, times)
	return backend.Timing{Host: time.Since(start)}, err
}

// startStreamed is runStreamed without the wait.
func (p *Plan) startStreamed(ctx context.Context, q product) (backend.Pending, error) {
	if err := q.use(); err != nil {
		return nil, err
	}
	w := &waited{done: make(chan struct{})}
	go func() {
		defer close(w.done)
		defer q.release()
		p.mu.Lock()
		defer p.mu.Unlock()
		w.t, w.err = p.run(ctx, q)
	}()
	return w, nil
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
