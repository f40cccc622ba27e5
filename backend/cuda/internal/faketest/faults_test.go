//go:build cuda && cgo && linux && (amd64 || arm64)

// A driver of which one call fails, whichever it is: an error, nothing left in the context, no wrong output, and what is
// done next works.

package faketest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spmmrun/spmm/backend"
)

// program is one run of what a program does with two devices.
type program struct {
	*testing.T
	code int // that the driver's call returns
	hit  func() bool
}

// lost is what ends a program whose device is lost.
type lost struct{}

// do makes a call. If that fails because the driver does, it says so, and works the second time, unless the device is lost.
func (p *program) do(what string, call func() error) {
	p.Helper()
	err := call()
	if err == nil {
		return
	}
	if !p.hit() {
		p.Errorf("%s: %v", what, err)
		panic(lost{})
	}
	if strings.Contains(err.Error(), "\n") {
		p.Errorf("%s: an error of several lines: %q", what, err)
	}
	if p.code == 2 && !errors.Is(err, backend.ErrOutOfMemory) && !errors.Is(err, backend.ErrUnavailable) {
		p.Errorf("%s: out of memory is told as %v", what, err)
	}
	if errors.Is(err, backend.ErrDeviceLost) {
		if again := call(); !errors.Is(again, backend.ErrDeviceLost) {
			p.Errorf("%s of a lost device: %v", what, again)
		}
		panic(lost{})
	}
	if err := call(); err != nil {
		if !errors.Is(err, backend.ErrDeviceLost) {
			p.Errorf("%s, again: %v", what, err)
		}
		panic(lost{})
	}
}

// step is the parameter block of kernel step: dst[i] = src[(i+1) mod n]·m + a.
func step(n, m, a uint32) []byte {
	var b []byte
	for _, x := range []uint32{n, 1, m, a} {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}

// run opens two devices, copies, launches, starts, records and closes. What is read must be right, whatever failed before.
func (p *program) run() {
	const n = 64
	ctx := p.Context()
	defer func() {
		if r := recover(); r != nil && r != (lost{}) {
			panic(r)
		}
	}()
	devs := make([]backend.Device, 2)
	for i := range devs {
		p.do("Open", func() (err error) {
			devs[i], err = cuda(p).Open(ctx, backend.Info{Backend: "cuda", Index: i})
			return err
		})
		defer devs[i].Close()
	}
	d := devs[0]
	host := make([]byte, 4*n)
	for i := range n {
		binary.LittleEndian.PutUint32(host[4*i:], uint32(i*i+1))
	}
	buffers := make([]backend.Buffer, 3)
	for i := range buffers {
		p.do("Alloc", func() (err error) { buffers[i], err = devs[i/2].Alloc(4 * n); return err })
	}
	src, dst, other := buffers[0], buffers[1], buffers[2]
	p.do("Write", func() error { return src.Write(ctx, 0, host) })
	var k backend.Kernel
	p.do("Load", func() (err error) { k, err = d.Load(bin("step", 2, 16)); return err })
	l := backend.Launch{Kernel: k, Groups: [3]uint32{1, 1, 1}, Args: []backend.Buffer{src, dst}, Params: step(n, 3, 5)}
	check := func(b backend.Buffer, m, a uint32) {
		p.Helper()
		got := make([]byte, 4*n)
		p.do("Read", func() error { return b.Read(ctx, 0, got) })
		for i := range n {
			if x, want := binary.LittleEndian.Uint32(got[4*i:]), uint32((i+1)%n*((i+1)%n)+1)*m+a; x != want {
				p.Fatalf("word %d is %d, want %d", i, x, want)
			}
		}
	}
	p.do("Run", func() error { _, err := d.Run(ctx, l); return err })
	check(dst, 3, 5)
	l.Params = step(n, 7, 1)
	p.do("Start", func() error {
		w, err := d.Start(ctx, l)
		if err == nil {
			_, err = w.Wait(ctx)
		}
		return err
	})
	check(dst, 7, 1)
	l.Params = step(n, 2, 9)
	var r backend.Recording
	p.do("Record", func() (err error) { r, err = d.Record(l, l); return err })
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
	check(dst, 2, 9)
	lines := backend.Lines{Pitch: 64, HostPitch: 64, Width: 60, Count: 4}
	p.do("ReadLines", func() error { return dst.(backend.LineCopier).ReadLines(ctx, lines, make([]byte, 256)) })
	p.do("WriteLines", func() error { return src.(backend.LineCopier).WriteLines(ctx, lines, host) })
	p.do("AllocHost", func() error {
		m, err := d.(backend.HostAllocator).AllocHost(4 * n)
		if err != nil {
			return err
		}
		defer m.Close()
		copy(m.Bytes(), host)
		return src.Write(ctx, 0, m.Bytes())
	})
	p.do("WriteAside", func() error { return src.(backend.SideWriter).WriteAside(ctx, 0, host) })
	if c := other.(backend.PeerCopier); c.CanCopyFrom(dst) {
		p.do("CopyFrom", func() error {
			return c.CopyFrom(ctx, dst, backend.PeerLines{Pitch: 4 * n, SrcPitch: 4 * n, Width: 4 * n, Count: 1})
		})
		check(other, 2, 9)
	}
	p.do("Close", func() error { return errors.Join(r.Close(), k.Close(), src.Close()) })
}

// TestFaults lets each call of the driver fail: with an error of the caller's, for lack of memory, and so that the context is
// lost. Without SPMM_ALL_FAULTS, some of them.
func TestFaults(t *testing.T) {
	play := func(at, code int) []string {
		t.Helper()
		logged := calls(t)
		hit := func() bool { return slices.Contains(logged(), "failed") }
		os.Setenv("FAKE_FAIL_AT", "")
		if at > 0 {
			os.Setenv("FAKE_FAIL_AT", fmt.Sprintf("%d=%d", at, code))
		}
		(&program{T: t, code: code, hit: hit}).run()
		os.Setenv("FAKE_FAIL_AT", "")
		return logged()
	}
	defer os.Unsetenv("FAKE_FAIL_AT")
	whole := play(0, 0)
	// ends counts the contexts that ended. What a lost one held goes with it: the driver refuses to free it.
	ends := func(l []string) int {
		n := 0
		for _, s := range l {
			if strings.HasPrefix(s, "end ") {
				n++
				if s != "end lost=0 blocks=0 events=0 streams=0 modules=0 graphs=0" && !strings.HasPrefix(s, "end lost=719 ") {
					t.Errorf("not freed: %q", s)
				}
			}
		}
		return n
	}
	if n := ends(whole); n != 2 {
		t.Fatalf("%d contexts end, want 2", n)
	}
	every := 1
	if os.Getenv("SPMM_ALL_FAULTS") == "" {
		every = 7
	}
	for _, code := range []int{1, 2, 719} {
		for at, done := 1+code%every, false; !done && !t.Failed(); at += every {
			l := play(at, code)
			done = !slices.Contains(l, "failed")
			ends(l)
			if i := slices.Index(l, "failed"); t.Failed() {
				t.Fatalf("call %d, %s, returns %d", at, l[max(0, i-1)], code)
			}
			if l := play(0, 0); ends(l) != 2 {
				t.Fatalf("after call %d has returned %d, contexts are left over: %q", at, code, slices.DeleteFunc(l, func(s string) bool { return !strings.HasPrefix(s, "end") }))
			}
		}
	}
}
