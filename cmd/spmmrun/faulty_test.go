// Backends that fail in the ways that devices fail.

package main

import (
	"context"
	"os"
	"sync/atomic"
	"time"

	"github.com/spmmrun/spmm/backend"
)

// fault is a driver that hands out the cpu's device with something broken.
type fault struct {
	name  string
	alloc error                                                // what Alloc returns
	run   func(ctx context.Context, ls []backend.Launch) error // what goes wrong before
	after func(ctx context.Context, ls []backend.Launch) error // and after the launches
}

func registerFaulty() {
	for _, f := range []*fault{
		{name: "full", alloc: backend.ErrOutOfMemory},
		{name: "lost", run: func(context.Context, []backend.Launch) error { return backend.ErrDeviceLost }},
		{name: "stuck", run: func(context.Context, []backend.Launch) error { mark("running"); time.Sleep(time.Minute); return nil }},
		{name: "lost-later", run: func(context.Context, []backend.Launch) error {
			if launches.Add(1) > 100 {
				return backend.ErrDeviceLost
			}
			return nil
		}},
		{name: "stuck-later", run: func(context.Context, []backend.Launch) error {
			if launches.Add(1) > 100 {
				mark("running")
				time.Sleep(time.Minute)
			}
			return nil
		}},
		{name: "marking", run: func(context.Context, []backend.Launch) error { mark("running"); return nil }},
		{name: "wrong", after: spoil},
		{name: "panics", run: func(context.Context, []backend.Launch) error { panic("a kernel that is wrong") }},
		{name: "panics-elsewhere", run: func(context.Context, []backend.Launch) error {
			go panic("a thread that is wrong")
			time.Sleep(time.Minute)
			return nil
		}},
		{name: "missing"},
	} {
		backend.Register(f)
	}
}

// launches counts those of devices that fail later.
var launches atomic.Int32

// mark makes an empty file that tells how far a job is.
func mark(name string) {
	if f, err := os.Create(name); err == nil {
		f.Close()
	}
}

// spoil changes one output: the sixth element of C, which is the buffer that csr writes.
func spoil(ctx context.Context, ls []backend.Launch) error {
	if ls[0].Groups == [3]uint32{} {
		return nil
	}
	var word [4]byte
	c := ls[0].Args[len(ls[0].Args)-2]
	if err := c.Read(ctx, 20, word[:]); err != nil {
		return err
	}
	word[2] ^= 0x40
	return c.Write(ctx, 20, word[:])
}

func (f *fault) Name() string { return f.name }

func (f *fault) Devices(ctx context.Context) ([]backend.Info, error) {
	if f.name == "missing" {
		return nil, backend.ErrUnavailable
	}
	return []backend.Info{{Backend: f.name, Name: "faulty", Kind: "cpu"}}, nil
}

func (f *fault) Open(ctx context.Context, info backend.Info) (backend.Device, error) {
	d, err := backend.Find("cpu")
	if err != nil {
		return nil, err
	}
	mark("opened")
	infos, err := d.Devices(ctx)
	if err != nil {
		return nil, err
	}
	dev, err := d.Open(ctx, infos[0])
	return &faulty{dev, f, info}, err
}

type faulty struct {
	backend.Device
	f    *fault
	info backend.Info
}

func (d *faulty) Info() backend.Info { return d.info }

func (d *faulty) Alloc(n int64) (backend.Buffer, error) {
	if d.f.alloc != nil {
		return nil, d.f.alloc
	}
	return d.Device.Alloc(n)
}

func (d *faulty) Run(ctx context.Context, ls ...backend.Launch) (backend.Timing, error) {
	if d.f.run != nil {
		if err := d.f.run(ctx, ls); err != nil {
			return backend.Timing{}, err
		}
	}
	t, err := d.Device.Run(ctx, ls...)
	if err == nil && d.f.after != nil {
		err = d.f.after(ctx, ls)
	}
	return t, err
}

// Start and Record go through Run.
func (d *faulty) Start(ctx context.Context, ls ...backend.Launch) (backend.Pending, error) {
	t, err := d.Run(ctx, ls...)
	return backend.Done(t), err
}

func (d *faulty) Record(ls ...backend.Launch) (backend.Recording, error) {
	return backend.Replay(d, ls), nil
}
