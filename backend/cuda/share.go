//go:build cuda && cgo && linux && (amd64 || arm64)

// What other libraries of CUDA need to work on the device's memory: addresses, its context, and streams.

package cuda

import (
	"errors"

	"gorgonia.org/cu"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/cuda/internal/driver"
)

// Unique returns the GPU's UUID. See backend.Sharer.
func (d *device) Unique() ([16]byte, error) {
	id, err := d.dev.UUID()
	if err != nil {
		return [16]byte{}, wrap("asking for the UUID", err)
	}
	return id, nil
}

// Address returns where a buffer lies.
func (d *device) Address(b backend.Buffer) (uintptr, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	x, ok := b.(*buffer)
	switch {
	case !ok || x == nil || x.dev != d:
		return 0, errors.New("cuda: the buffer is not of this device")
	case x.closed:
		return 0, errBufferClosed
	}
	return uintptr(x.ptr), nil
}

// Within calls f with the context current. The device's other calls go on meanwhile.
func (d *device) Within(f func() error) error {
	d.mu.Lock()
	err := d.usable()
	d.mu.Unlock()
	if err == nil {
		err = d.push()
	}
	if err != nil {
		return err
	}
	defer d.pop()
	return f()
}

// NewStream makes a stream of the highest priority.
func (d *device) NewStream() (backend.Stream, error) {
	s := &stream{dev: d}
	err := d.Within(func() (err error) {
		_, highest, err := cu.StreamPriorityRange()
		if err == nil {
			s.cu, err = cu.MakeStreamWithPriority(highest, cu.NonBlocking)
		}
		return err
	})
	if err != nil {
		return nil, wrap("making a stream", err)
	}
	return s, nil
}

// stream is one that others submit to.
type stream struct {
	dev    *device
	cu     cu.Stream
	closed bool
}

func (s *stream) Handle() uintptr { return StreamOf(s.cu) }

func (s *stream) Done() (done bool, err error) {
	err = s.dev.Within(s.cu.Query)
	switch driver.Code(err) {
	case 0:
		return err == nil, err
	case driver.NotReady:
		return false, nil
	}
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	return false, s.dev.fail("waiting for a stream", err)
}

func (s *stream) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	if err := s.dev.Within(s.cu.Destroy); err != nil {
		return wrap("freeing a stream", err)
	}
	return nil
}
