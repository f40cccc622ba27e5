// What a program does when one call of the driver fails.

package backendtest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
)

// RunFaulty uses all that the driver's first two devices have, while a call of the API below the driver fails: failed
// tells whether that has happened. Each call of the driver must return right answers or an error in one line, and work
// the second time, unless the device is lost, which it then stays; lost tells whether one was. What was made is closed
// at the end. What is left over then is the caller's to see.
func RunFaulty(t *testing.T, d backend.Driver, failed func() bool) (lost bool) {
	p := &faulty{T: t, d: d, failed: failed}
	defer func() {
		for _, c := range slices.Backward(p.open) {
			if err := c(); err != nil && !errors.Is(err, backend.ErrDeviceLost) {
				t.Errorf("Close: %v", err)
			}
		}
		if r := recover(); r != nil && r != (ended{}) {
			panic(r)
		}
		lost = p.lost
	}()
	p.run()
	return
}

// faulty is one such run.
type faulty struct {
	*testing.T
	d      backend.Driver
	failed func() bool
	lost   bool
	open   []func() error
}

// ended is how a run ends whose device is lost, or whose driver does not work.
type ended struct{}

func (p *faulty) do(what string, call func() error) {
	p.Helper()
	err := call()
	if err == nil {
		return
	}
	if strings.Contains(err.Error(), "\n") || !p.failed() {
		p.Errorf("%s: %q", what, err)
		panic(ended{})
	}
	p.lost = errors.Is(err, backend.ErrDeviceLost)
	if !p.lost || what == "Open" { // which makes another device
		if err = call(); err == nil {
			return
		}
	}
	if !errors.Is(err, backend.ErrDeviceLost) {
		p.Errorf("%s, again: %v", what, err)
	} else if again := call(); !errors.Is(again, backend.ErrDeviceLost) {
		p.Errorf("%s of a lost device: %v", what, again)
	}
	panic(ended{})
}

func (p *faulty) closes(c interface{ Close() error }) { p.open = append(p.open, c.Close) }

func (p *faulty) run() {
	const n = 300
	ctx := p.Context()
	var infos []backend.Info
	p.do("Devices", func() (err error) { infos, err = p.d.Devices(ctx); return err })
	devs := make([]backend.Device, min(2, len(infos)))
	for i := range devs {
		p.do("Open", func() (err error) { devs[i], err = p.d.Open(ctx, infos[i]); return err })
		p.closes(devs[i])
	}
	d, in, got := devs[0], ramp(n), make([]uint32, n)
	buffers := make([]backend.Buffer, 3)
	for i := range buffers {
		p.do("Alloc", func() (err error) { buffers[i], err = devs[i/2%len(devs)].Alloc(4 * n); return err })
		p.closes(buffers[i])
	}
	src, dst, other := buffers[0], buffers[1], buffers[2]
	p.do("Alloc", func() error { // of a block of its own
		b, err := d.Alloc(24 << 20)
		if err != nil {
			return err
		}
		return b.Close()
	})
	p.do("Write", func() error { return src.Write(ctx, 0, backend.Bytes(in)) })
	var k backend.Kernel
	p.do("Load", func() (err error) { k, err = d.Load(binaryOf("step", d.Caps().Code)); return err })
	p.closes(k)
	check := func(b backend.Buffer, s step) {
		p.Helper()
		p.do("Read", func() error { return b.Read(ctx, 0, backend.Bytes(got)) })
		equalWords(p, "with a driver that fails", got, s.apply(in))
	}
	s := step{n: n, rot: 1, mul: 3, add: 5}
	p.do("Run", func() error { _, err := d.Run(ctx, stepLaunch(k, src, dst, s)); return err })
	check(dst, s)
	s = step{n: n, rot: 7, mul: 9, add: 1}
	p.do("Start", func() error {
		w, err := d.Start(ctx, stepLaunch(k, src, dst, s))
		if err == nil {
			_, err = w.Wait(ctx)
		}
		return err
	})
	check(dst, s)
	s = step{n: n, rot: 2, mul: 2, add: 9}
	var r backend.Recording
	p.do("Record", func() (err error) {
		r, err = d.Record(stepLaunch(k, src, dst, step{n: n, mul: 1}), stepLaunch(k, src, dst, s))
		return err
	})
	p.closes(r)
	for range 3 {
		p.do("Recording.Run", func() error { _, err := r.Run(ctx); return err })
	}
	p.do("Recording.Start", func() error {
		w, err := r.Start(ctx)
		if err == nil {
			_, err = w.Wait(ctx)
		}
		return err
	})
	check(dst, s)
	p.extensions(d, src, dst, in)
	if c, ok := other.(backend.PeerCopier); ok && c.CanCopyFrom(dst) {
		p.do("CopyFrom", func() error {
			return c.CopyFrom(ctx, dst, backend.PeerLines{Pitch: 4 * n, SrcPitch: 4 * n, Width: 4 * n, Count: 1})
		})
		check(other, s)
	}
}

// extensions makes the calls that only some devices have.
func (p *faulty) extensions(d backend.Device, src, dst backend.Buffer, in []uint32) {
	ctx := p.Context()
	if c, ok := dst.(backend.LineCopier); ok {
		l := backend.Lines{Pitch: 64, HostPitch: 64, Width: 60, Count: 4}
		p.do("ReadLines", func() error { return c.ReadLines(ctx, l, make([]byte, 256)) })
		p.do("WriteLines", func() error { return src.(backend.LineCopier).WriteLines(ctx, l, backend.Bytes(in)) })
	}
	if a, ok := d.(backend.HostAllocator); ok {
		p.do("AllocHost", func() error {
			m, err := a.AllocHost(int64(4 * len(in)))
			if err != nil {
				return err
			}
			defer m.Close()
			copy(m.Bytes(), backend.Bytes(in))
			return src.Write(ctx, 0, m.Bytes())
		})
	}
	if w, ok := src.(backend.SideWriter); ok {
		p.do("WriteAside", func() error { return w.WriteAside(ctx, 0, backend.Bytes(in)) })
	}
}
