// Products that are enqueued to streams of the program: nothing is waited for, timed or, the second time, allocated.

package plan

import (
	"context"
	"errors"
	"fmt"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/launch"
	"github.com/spmmrun/spmm/internal/tensor"
)

// streams are the launchers of the streams that a plan was enqueued to. Each stream has staging and workspace of its
// own, so that products in two streams run side by side, and so have products that graphs have captured.
type streams struct {
	of       map[uintptr]*launch.Launcher
	captured bool // a graph may run the plan's launches at any time
}

// launcher returns that of a stream.
func (s *streams) launcher(p *Plan, stream uintptr) *launch.Launcher {
	l := s.of[stream]
	if l == nil {
		l = launch.NewKept(p.dev)
		if s.of == nil {
			s.of = map[uintptr]*launch.Launcher{}
		}
		s.of[stream] = l
	}
	return l
}

// Enqueue computes c = alpha·A·b + beta·c, with an epilogue, in a stream of the program.
func (p *Plan) Enqueue(stream uintptr, alpha float64, b tensor.Operand, beta float64, c tensor.Operand,
	e launch.Epilogue) error {
	q, err := p.product(alpha, b, beta, c, e, 1)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s, w, err := p.enqueued(stream, q)
	if err != nil {
		return err
	}
	defer q.Release()
	return p.submit(s, stream, w.Launches)
}

// Ready loads the kernels and allocates the memory that Enqueue of the same product needs, and multiplies nothing.
func (p *Plan) Ready(stream uintptr, alpha float64, b tensor.Operand, beta float64, c tensor.Operand,
	e launch.Epilogue) error {
	q, err := p.product(alpha, b, beta, c, e, 1)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, _, err = p.enqueued(stream, q); err == nil {
		q.Release()
	}
	return err
}

// enqueued returns the launches of a product for a stream, and keeps its tensors until release.
func (p *Plan) enqueued(stream uintptr, q launch.Product) (s backend.Streamer, w launch.RunList, err error) {
	if s, err = p.streamer(); err != nil {
		return nil, w, err
	}
	if err := p.check(q); err != nil {
		return nil, w, err
	}
	if err := q.Use(); err != nil {
		return nil, w, err
	}
	w, err = p.launchesIn(p.streams.launcher(p, stream), q)
	if err != nil {
		q.Release()
	}
	return s, w, err
}

// streamer returns the device for work in streams, if the plan can be enqueued.
func (p *Plan) streamer() (backend.Streamer, error) {
	s, ok := p.dev.Device.(backend.Streamer)
	if !ok {
		return nil, fmt.Errorf("%v takes no streams of others, CUDA devices do: %w", p.dev.Info(), backend.ErrUnsupported)
	}
	if p.Panels > 0 {
		return nil, fmt.Errorf("a matrix that stays in the host's memory is copied in each product, which waits: Run multiplies: %w",
			backend.ErrUnsupported)
	}
	if err := p.exec.Recordable(); err != nil {
		return nil, err
	}
	return s, nil
}

// launchesIn returns the launches of a product that was checked, which a launcher keeps.
func (p *Plan) launchesIn(l *launch.Launcher, q launch.Product) (launch.RunList, error) {
	m, err := p.turn(context.Background(), l, q.B) // which reads nothing back, see streamer
	if err != nil || q.C.Rows == 0 || q.C.Cols == 0 {
		return launch.RunList{}, err
	}
	if w, ok := l.Find(m, q); ok {
		return w, nil
	}
	w, err := p.compose(l, m, q)
	if err == nil {
		l.Keep(m, q, w)
	}
	return w, err
}

// submit passes launches to a stream, and remembers if a graph has captured them.
func (p *Plan) submit(s backend.Streamer, stream uintptr, launches []backend.Launch) error {
	captured, err := s.Enqueue(stream, launches...)
	p.streams.captured = p.streams.captured || captured
	return err
}

// EnqueueValues makes the elements of a tensor the values of the matrix's entries, in a stream of the program. The
// first call of SetValues or EnqueueValues also finds the entries' places, which waits for the device.
func (p *Plan) EnqueueValues(stream uintptr, v tensor.Operand) error {
	t, err := tensor.One(v)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s, err := p.streamer()
	if err != nil {
		return err
	}
	if t == nil {
		return errors.New("the tensor of values is missing")
	}
	if err := p.checkValues(context.Background(), t); err != nil {
		return err
	}
	if err := t.Use(); err != nil {
		return err
	}
	defer t.Release()
	launches, err := p.exec.SetLaunches(context.Background(), p.given, t)
	if err != nil {
		return err
	}
	return p.submit(s, stream, launches)
}
