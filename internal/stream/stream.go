// Package stream multiplies with a matrix that stays in the host's memory.
//
// Its panels, ranges of rows, go to the device one after another, into two sets of buffers: while one is multiplied
// by, the other is written. A Stream keeps the panels in memory that the device reads, and which of them are in the
// buffers.
package stream

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/spmmrun/spmm/api"
	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/device"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Stream is the panels of a matrix in the host's memory, and the buffers that they go to: panel i to set i mod 2.
type Stream struct {
	dev    *device.Device
	panels [][]backend.HostMemory // by panel and array
	sets   [2][]backend.Buffer
	loaded [2]int // the panel in each set, -1 if there is none
	owner  bool   // of the sets
}

// Mark says that launches from number At on read panel Part.
type Mark struct{ At, Part int }

// New copies packed panels into memory that the device reads by itself, where it can, and allocates two sets of
// buffers for them, unless it is to share those of another stream.
func New(ctx context.Context, d *device.Device, panels []*spec.Packed, with *Stream) (*Stream, error) {
	s := &Stream{dev: d, loaded: [2]int{-1, -1}, owner: with == nil}
	if with != nil {
		s.sets = with.sets
	} else if err := s.alloc(panels); err != nil {
		return nil, cmp.Or(err, s.Close())
	}
	s.panels = make([][]backend.HostMemory, len(panels))
	const atOnce = 8
	run, ctx := errgroup.WithContext(ctx)
	run.SetLimit(atOnce)
	for i, p := range panels {
		run.Go(func() error {
			for k, a := range p.Arrays {
				if err := ctx.Err(); err != nil {
					return err
				}
				if most := s.sets[0][k].Size(); int64(len(a.Data)) > most {
					return fmt.Errorf("array %s of a panel takes %d bytes, of %d: %w", a.Name, len(a.Data), most,
						backend.ErrOutOfMemory)
				}
				s.panels[i] = append(s.panels[i], lockedCopy(d, a.Data))
			}
			return nil
		})
	}
	if err := run.Wait(); err != nil {
		return nil, cmp.Or(err, s.Close())
	}
	return s, nil
}

// Set returns the buffers that panel i goes to.
func (s *Stream) Set(i int) []backend.Buffer { return s.sets[i&1] }

// Forget notes that another stream, which shares the buffers, may have written to them.
func (s *Stream) Forget() { s.loaded = [2]int{-1, -1} }

// alloc allocates the sets.
func (s *Stream) alloc(panels []*spec.Packed) error {
	for i := range s.sets[:min(2, len(panels))] {
		for k, a := range panels[0].Arrays {
			most := 0
			for _, p := range panels {
				most = max(most, len(p.Arrays[k].Data))
			}
			b, err := s.dev.NewBuffer(int64(most), "array "+a.Name+" of a panel")
			if err != nil {
				return err
			}
			s.sets[i] = append(s.sets[i], b)
		}
	}
	if len(panels) == 1 {
		s.sets[1] = s.sets[0]
	}
	return nil
}

// lockedCopy copies data into such memory as hostMemory returns.
func lockedCopy(d *device.Device, data []byte) backend.HostMemory {
	m := d.HostMemory(int64(len(data)))
	copy(m.Bytes(), data)
	return m
}

// Close frees the panels, and the sets if they are the stream's own.
func (s *Stream) Close() error {
	var errs []error
	for _, p := range s.panels {
		for _, a := range p {
			errs = append(errs, a.Close())
		}
	}
	s.panels = nil
	if s.owner {
		for _, set := range s.sets { // of one panel they are the same: a second Close does nothing
			for _, b := range set {
				errs = append(errs, b.Close())
			}
		}
	}
	return cmp.Or(errs...)
}

// load copies a panel to its set, unless it is there, and returns the bytes that were copied.
func (s *Stream) load(ctx context.Context, i int) (n int64, err error) {
	set := i & 1
	if s.loaded[set] == i {
		return 0, nil
	}
	s.loaded[set] = -1
	for k, m := range s.panels[i] {
		p := m.Bytes()
		if len(p) == 0 {
			continue
		}
		if w, ok := s.sets[set][k].(backend.SideWriter); ok {
			err = w.WriteAside(ctx, 0, p)
		} else {
			err = device.WriteChunks(ctx, s.sets[set][k], p)
		}
		if err != nil {
			return n, err
		}
		n += int64(len(p))
	}
	s.loaded[set] = i
	return n, nil
}

// Run runs launches a number of times, each panel's after it has been copied.
func (s *Stream) Run(ctx context.Context, launches []backend.Launch, marks []Mark, times int) (api.Streamed, error) {
	r := streaming{Stream: s, launches: launches, marks: marks, times: times, full: make(chan int),
		out: api.Streamed{Panels: len(s.panels)}}
	for i := range r.free {
		r.free[i] = make(chan struct{}, 1)
		r.free[i] <- struct{}{}
	}
	run, ctx := errgroup.WithContext(ctx)
	run.Go(func() error { return r.copy(ctx) })
	run.Go(func() error { return r.compute(ctx) })
	err := run.Wait()
	return r.out, err
}

// streaming is a run: one goroutine copies panels to the two sets of buffers in turn, and another computes with them.
type streaming struct {
	*Stream
	launches []backend.Launch
	marks    []Mark
	times    int
	free     [2]chan struct{} // sets of buffers that may be written
	full     chan int         // panels, as they have come
	out      api.Streamed
}

func (r *streaming) copy(ctx context.Context) error {
	for range r.times {
		for _, m := range r.marks {
			select {
			case <-r.free[m.Part&1]:
			case <-ctx.Done():
				return ctx.Err()
			}
			start := time.Now()
			n, err := r.load(ctx, m.Part)
			if err != nil {
				return err
			}
			if n > 0 {
				r.out.Bytes, r.out.Copy = r.out.Bytes+n, r.out.Copy+time.Since(start)
			}
			select {
			case r.full <- m.Part:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
	return nil
}

func (r *streaming) compute(ctx context.Context) error {
	run := func(l []backend.Launch) error {
		if len(l) == 0 {
			return nil
		}
		t, err := r.dev.Run(ctx, l...)
		r.out.Compute += t.Best()
		return err
	}
	for range r.times {
		if err := run(r.launches[:r.marks[0].At]); err != nil {
			return err
		}
		for i, m := range r.marks {
			select {
			case <-r.full:
			case <-ctx.Done():
				return ctx.Err()
			}
			end := len(r.launches)
			if i+1 < len(r.marks) {
				end = r.marks[i+1].At
			}
			if err := run(r.launches[m.At:end]); err != nil {
				return err
			}
			r.free[m.Part&1] <- struct{}{}
		}
	}
	return nil
}
