// Exchanging what lies in the memory of devices.

package comm

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
)

// Buffer is memory of a rank's device. Buffers of package backend implement it. Offsets and lengths are multiples of 4.
type Buffer interface {
	Size() int64
	Read(ctx context.Context, off int64, p []byte) error
	Write(ctx context.Context, off int64, p []byte) error
}

// DeviceComm exchanges data between the memories of the ranks' devices: comm/nccl, if each rank has an NVIDIA GPU of
// its own, or Staged. Its operations are collective like those of Comm. They take the same parts, in items of a
// multiple of 4 bytes. One goroutine at a time may use it.
//
// An operation returns when it has begun; Transfer.Wait waits for its end. Until then the data that are sent must not
// be written, and the memory that receives must not be used. The device may work on other memory meanwhile. Whoever
// calls an operation must have waited for the launches that write the data to send.
type DeviceComm interface {
	AllToAllV(ctx context.Context, item int, send Buffer, sent []Part, recv Buffer, received []Part) (Transfer, error)
	// AllGatherV sends the first items of send, as many as this rank's part has.
	AllGatherV(ctx context.Context, item int, send, recv Buffer, parts []Part) (Transfer, error)
	// Name says how data travel, for reports.
	Name() string
	// Close frees it; the Comm that it was made of stays. It is not collective.
	Close() error
}

// Transfer is an operation that has begun.
type Transfer interface {
	// Wait returns when this rank's part of the operation is done. If the context ends first, it returns the context's
	// error, and the job must be aborted. It is called once.
	Wait(ctx context.Context) error
}

// CheckBuffer checks parts of a buffer: there must be one for each of size ranks, and each must be inside the buffer.
// item is the bytes of an item.
func CheckBuffer(size, item int, buffer Buffer, parts []Part) error {
	switch {
	case buffer == nil:
		return errors.New("comm: a buffer is missing")
	case item < 4 || item%4 != 0:
		return fmt.Errorf("comm: items of %d bytes in a device's memory: want a multiple of 4", item)
	case len(parts) != size:
		return fmt.Errorf("comm: parts for %d ranks, there are %d", len(parts), size)
	}
	have := buffer.Size() / int64(item)
	for r, p := range parts {
		if p.Start < 0 || p.Count < 0 || p.Count > math.MaxInt32 || int64(p.Count) > have ||
			int64(p.Start) > have-int64(p.Count) {
			return fmt.Errorf("comm: part %d is %d items from %d on, of %d", r, p.Count, p.Start, have)
		}
	}
	return nil
}

// Staged returns a DeviceComm that exchanges data through the host's memory, by c. Nothing else may use c between the
// beginning of an operation and its end. It works with every device.
func Staged(c Comm) DeviceComm { return &staged{c: c} }

type staged struct {
	c          Comm
	send, recv memory
	under      atomic.Int32 // transfers that are not done
}

// memory is the host's, as much as was needed so far.
type memory struct {
	data []byte
	free func()
}

// atLeast returns that many bytes of it.
func (m *memory) atLeast(c Comm, bytes int) ([]byte, error) {
	if len(m.data) < bytes {
		m.release()
		var err error
		if m.data, m.free, err = Alloc(c, bytes); err != nil {
			return nil, err
		}
	}
	return m.data[:bytes], nil
}

func (m *memory) release() {
	if m.free != nil {
		m.free()
	}
	m.data, m.free = nil, nil
}

func (s *staged) Name() string { return "the host's memory" }

// Close leaves the memory of transfers that were given up, and are not done, to these.
func (s *staged) Close() error {
	if s.under.Load() != 0 {
		return nil
	}
	s.send.release()
	s.recv.release()
	return nil
}

func (s *staged) AllToAllV(ctx context.Context, item int, send Buffer, sent []Part, recv Buffer,
	received []Part) (Transfer, error) {
	err := errors.Join(CheckBuffer(s.c.Size(), item, send, sent), CheckBuffer(s.c.Size(), item, recv, received))
	if err != nil {
		return nil, err
	}
	out, in, err := s.stage(ctx, item, send, sent, End(received))
	if err != nil {
		return nil, err
	}
	return s.begin(item, recv, in, received, func() error { return s.c.AllToAllV(item, out, sent, in, received) }), nil
}

func (s *staged) AllGatherV(ctx context.Context, item int, send, recv Buffer, parts []Part) (Transfer, error) {
	err := CheckBuffer(s.c.Size(), item, recv, parts)
	if err == nil {
		mine := make([]Part, s.c.Size())
		mine[s.c.Rank()].Count = parts[s.c.Rank()].Count
		err = CheckBuffer(s.c.Size(), item, send, mine)
	}
	if err != nil {
		return nil, err
	}
	out, in, err := s.stage(ctx, item, send, []Part{{Count: parts[s.c.Rank()].Count}}, End(parts))
	if err != nil {
		return nil, err
	}
	return s.begin(item, recv, in, parts, func() error { return s.c.AllGatherV(item, out, in, parts) }), nil
}

// stage reads what is sent, and returns that and room for what is received.
func (s *staged) stage(ctx context.Context, item int, send Buffer, sent []Part, received int) (out, in []byte,
	err error) {
	if out, err = s.send.atLeast(s.c, End(sent)*item); err != nil {
		return nil, nil, err
	}
	if in, err = s.recv.atLeast(s.c, received*item); err != nil {
		return nil, nil, err
	}
	for _, p := range joined(sent) {
		if err := send.Read(ctx, int64(p.Start)*int64(item), out[p.Start*item:][:p.Count*item]); err != nil {
			return nil, nil, err
		}
	}
	return out, in, nil
}

// begin transfers on a goroutine.
func (s *staged) begin(item int, recv Buffer, in []byte, received []Part, f func() error) Transfer {
	t := &stagedTransfer{item: item, recv: recv, in: in, received: received, done: make(chan error, 1)}
	s.under.Add(1)
	go func() {
		err := f()
		s.under.Add(-1)
		t.done <- err
	}()
	return t
}

type stagedTransfer struct {
	item     int
	recv     Buffer
	in       []byte
	received []Part
	done     chan error
}

// Wait writes what has come to the device.
func (t *stagedTransfer) Wait(ctx context.Context) error {
	select {
	case err := <-t.done:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return ctx.Err()
	}
	for _, p := range joined(t.received) {
		if err := t.recv.Write(ctx, int64(p.Start)*int64(t.item), t.in[p.Start*t.item:][:p.Count*t.item]); err != nil {
			return err
		}
	}
	return nil
}

// joined returns the parts that are not empty, those that follow each other as one.
func joined(parts []Part) []Part {
	var out []Part
	for _, p := range parts {
		if last := len(out) - 1; last >= 0 && out[last].Start+out[last].Count == p.Start {
			out[last].Count += p.Count
		} else if p.Count > 0 {
			out = append(out, p)
		}
	}
	return out
}
