// The contract of comm.DeviceComm.

package commtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/spmmrun/spmm/comm"
)

// CheckDevice runs all operations of d, which was made from c, on buffers that alloc makes. Every rank calls it. It
// returns the first error that this rank finds.
func CheckDevice(ctx context.Context, c comm.Comm, d comm.DeviceComm,
	alloc func(bytes int64) (comm.Buffer, error)) error {
	x := deviceCheck{ctx, c, d, alloc}
	if d.Name() == "" {
		return errors.New("no name")
	}
	for range 2 { // the second time with what the first has left
		for _, item := range []int{4, 256, 4096} {
			if err := x.exchange(item); err != nil {
				return fmt.Errorf("AllToAllV of %d bytes on rank %d of %d: %w", item, c.Rank(), c.Size(), err)
			}
			if err := x.gather(item); err != nil {
				return fmt.Errorf("AllGatherV of %d bytes on rank %d of %d: %w", item, c.Rank(), c.Size(), err)
			}
		}
	}
	return x.refuses()
}

type deviceCheck struct {
	ctx   context.Context
	c     comm.Comm
	d     comm.DeviceComm
	alloc func(bytes int64) (comm.Buffer, error)
}

// items are n items that rank r sends to rank s; nothing for some.
func (x deviceCheck) items(item, r, s int) []byte {
	n := (3*r + 5*s) % 7
	return bytes.Repeat([]byte{byte(1 + r), byte(100 + s), byte(n), 7}, n*item/4)
}

// buffer makes one with these contents, and an item more.
func (x deviceCheck) buffer(item int, contents []byte) (comm.Buffer, error) {
	b, err := x.alloc(int64(len(contents) + item))
	if err == nil && len(contents) > 0 {
		err = b.Write(x.ctx, 0, contents)
	}
	return b, err
}

// compare waits for a transfer and reads what came.
func (x deviceCheck) compare(t comm.Transfer, err error, recv comm.Buffer, want []byte) error {
	if err == nil {
		err = t.Wait(x.ctx)
	}
	if err != nil {
		return err
	}
	got := make([]byte, len(want))
	if err := recv.Read(x.ctx, 0, got); err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return errors.New("other bytes than were sent, or outside the parts")
	}
	return nil
}

// exchange has parts of send in reverse order, and an item between those of recv, which stays as it is.
func (x deviceCheck) exchange(item int) error {
	size, me := x.c.Size(), x.c.Rank()
	sent, received := make([]comm.Part, size), make([]comm.Part, size)
	var send, want []byte
	for r := size - 1; r >= 0; r-- {
		data := x.items(item, me, r)
		sent[r] = comm.Part{Start: len(send) / item, Count: len(data) / item}
		send = append(send, data...)
	}
	for r := range size {
		want = append(want, bytes.Repeat([]byte{untouched}, item)...)
		data := x.items(item, r, me)
		received[r] = comm.Part{Start: len(want) / item, Count: len(data) / item}
		want = append(want, data...)
	}
	from, err := x.buffer(item, send)
	if err != nil {
		return err
	}
	to, err := x.buffer(item, bytes.Repeat([]byte{untouched}, len(want)))
	if err != nil {
		return err
	}
	t, err := x.d.AllToAllV(x.ctx, item, from, sent, to, received)
	return x.compare(t, err, to, want)
}

func (x deviceCheck) gather(item int) error {
	size, me := x.c.Size(), x.c.Rank()
	parts := make([]comm.Part, size)
	var want []byte
	for r := range size {
		data := x.items(item, r, 1)
		want = append(want, bytes.Repeat([]byte{untouched}, item)...)
		parts[r] = comm.Part{Start: len(want) / item, Count: len(data) / item}
		want = append(want, data...)
	}
	from, err := x.buffer(item, x.items(item, me, 1))
	if err != nil {
		return err
	}
	to, err := x.buffer(item, bytes.Repeat([]byte{untouched}, len(want)))
	if err != nil {
		return err
	}
	t, err := x.d.AllGatherV(x.ctx, item, from, to, parts)
	return x.compare(t, err, to, want)
}

// refuses: each of these is an error on every rank, and nothing is sent.
func (x deviceCheck) refuses() error {
	b, err := x.buffer(4, nil)
	if err != nil {
		return err
	}
	none := make([]comm.Part, x.c.Size())
	far := make([]comm.Part, x.c.Size())
	far[0] = comm.Part{Start: 1, Count: 1}
	for what, f := range map[string]func() (comm.Transfer, error){
		"half a word":              func() (comm.Transfer, error) { return x.d.AllToAllV(x.ctx, 2, b, none, b, none) },
		"parts for one rank less":  func() (comm.Transfer, error) { return x.d.AllToAllV(x.ctx, 4, b, none[1:], b, none) },
		"a part beyond the buffer": func() (comm.Transfer, error) { return x.d.AllGatherV(x.ctx, 4, b, b, far) },
		"no buffer":                func() (comm.Transfer, error) { return x.d.AllToAllV(x.ctx, 4, nil, none, b, none) },
	} {
		if _, err := f(); err == nil {
			return fmt.Errorf("%s is not refused", what)
		}
	}
	return nil
}
