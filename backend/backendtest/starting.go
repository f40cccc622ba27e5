// Starting launches now and waiting for them later.

package backendtest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/spmmrun/spmm/backend"
)

var starting = []subtest{
	{"started launches in order", startedInOrder},
	{"start and wait for a long launch", startReturns},
	{"timing of started launches", timingOfStarted},
	{"launches are the caller's after start", startCopies},
	{"wrong launches are not started", startRefuses},
	{"nothing to start", startNothing},
	{"started and never awaited", neverAwaited},
	{"closed while started launches run", closeStarted},
	{"device closed while started launches run", closeDeviceStarted},
	{"many goroutines start", manyStart},
}

func (r *rig) start(t testing.TB, l ...backend.Launch) backend.Pending {
	t.Helper()
	return Start(t, r.dev, l...)
}

func wait(t testing.TB, p backend.Pending) backend.Timing {
	t.Helper()
	return must[backend.Timing](t, "Wait")(p.Wait(t.Context()))
}

// What is started runs after what was started or run before, and before what is run, read or written after.
func startedInOrder(t *testing.T, r *rig) {
	const n = 10_007
	k := r.load(t, "step")
	a, b := r.upload(t, ramp(n)), r.alloc(t, 4*n)
	ls, want := steps(k, a, b, n, 60)
	for _, awaited := range []bool{true, false} {
		Write(t, a, ramp(n))
		var all []backend.Pending
		for i := 0; i < 60; {
			for _, count := range []int{1, 3, 11} { // three Starts, then a Run
				all = append(all, r.start(t, ls[i:i+count]...))
				i += count
			}
			r.run(t, ls[i:i+5]...)
			i += 5
		}
		if awaited {
			slices.Reverse(all)
			for _, p := range all {
				wait(t, p)
			}
		}
		equalWords(t, "60 launches, started and run by turns", read(t, a, n), want)
	}
	// More launches than go to a device at once.
	ls, want = steps(k, a, b, n, 700)
	Write(t, a, ramp(n))
	p := r.start(t, ls...)
	equalWords(t, "700 started launches", read(t, a, n), want)
	wait(t, p)
	// A write comes after what was started before it.
	Write(t, a, ramp(n))
	r.start(t, ls...)
	Write(t, a, ramp(n))
	equalWords(t, "what was written after a Start", read(t, a, n), ramp(n))
}

// Start returns at once, Wait when the launch is done or its context ends, whichever is first.
func startReturns(t *testing.T, r *rig) {
	k, dst := r.load(t, "spin"), r.alloc(t, 256)
	l := r.spinLaunch(t, k, dst, long)
	ctx, cancel := context.WithCancel(t.Context())
	begun := time.Now()
	p, err := r.dev.Start(ctx, l)
	if err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took > soon {
		t.Errorf("Start of a launch that takes %v returned after %v", long, took)
	}
	cancel() // which is nothing to what was started
	r.alloc(t, 64)
	if took := time.Since(begun); took > soon {
		t.Errorf("Alloc during a launch that takes %v returned after %v", long, took)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = p.Wait(ctx)
	if took := time.Since(begun); took > soon {
		t.Errorf("Wait returned %v after Start, and its context ended after 10 ms", took)
	}
	checkError(t, err, "Wait with a context that ends", context.DeadlineExceeded)

	tm := wait(t, p)
	if took := time.Since(begun); took < soon/2 || tm.Host < soon/2 || tm.Host > took || tm.Device > took+took/10 {
		t.Errorf("Wait for a launch that takes %v returned %v after Start, with times %+v", long, took, tm)
	}
	if again := wait(t, p); again != tm {
		t.Errorf("a second Wait returns %+v, the first %+v", again, tm)
	}
	if _, err := p.Wait(cancelled()); err != nil {
		t.Errorf("Wait for what is done, with a cancelled context: %v", err)
	}
	r.works(t)
}

// Device time is that of the launches themselves, not of those that were started before them.
func timingOfStarted(t *testing.T, r *rig) {
	k, dst := r.load(t, "spin"), r.alloc(t, 256)
	l := r.spinLaunch(t, k, dst, 30*time.Millisecond)
	begun := time.Now()
	var all []backend.Pending
	for range 4 {
		all = append(all, r.start(t, l))
	}
	var sum, last time.Duration
	for _, p := range all {
		tm := wait(t, p)
		if tm.Host <= 0 || tm.Device < 0 {
			t.Errorf("times %+v", tm)
		}
		sum, last = sum+tm.Device, tm.Host
	}
	if wall := time.Since(begun); sum > wall+wall/10 || last > wall {
		t.Errorf("four launches that were started took the device %v in all, and %v went by", sum, wall)
	}
}

func startCopies(t *testing.T, r *rig) {
	const n = 64 * 50
	k, spin := r.load(t, "step"), r.load(t, "spin")
	a, b, c := r.upload(t, ramp(n)), r.alloc(t, 4*n), r.alloc(t, 4*n)
	s := step{n: n, rot: 7, mul: 3, add: 1}
	first, l := r.spinLaunch(t, spin, c, 20*time.Millisecond), stepLaunch(k, a, b, s)
	Write(t, c, ramp(n))
	ls := []backend.Launch{first, l}
	p := r.start(t, ls...)
	clear(l.Params)
	l.Args[1] = c
	ls[1] = backend.Launch{}
	wait(t, p)
	equalWords(t, "a launch whose list was changed after Start", read(t, b, n), s.apply(ramp(n)))
	equalWords(t, "a buffer that was put into the list after Start", read(t, c, n)[64:], ramp(n)[64:])
}

func startRefuses(t *testing.T, r *rig) {
	k, src, dst := r.load(t, "step"), r.upload(t, ramp(64)), r.upload(t, ramp(64))
	good := stepLaunch(k, src, dst, step{n: 64, mul: 3})
	bad := good
	bad.Params = nil
	_, err := r.dev.Start(t.Context(), good, bad)
	checkError(t, err, "Start with a wrong launch")
	_, err = r.dev.Start(cancelled(), good)
	checkError(t, err, "Start with a cancelled context", context.Canceled)
	closed := r.alloc(t, 256)
	closed.Close()
	bad = good
	bad.Args = []backend.Buffer{src, closed}
	_, err = r.dev.Start(t.Context(), good, bad)
	checkError(t, err, "Start with a closed buffer")
	equalWords(t, "output of refused launches", read(t, dst, 64), ramp(64))
	r.works(t)
}

func startNothing(t *testing.T, r *rig) {
	k, src, dst := r.load(t, "step"), r.upload(t, ramp(64)), r.upload(t, ramp(64))
	wait(t, r.start(t))
	empty := stepLaunch(k, src, dst, step{n: 64, mul: 3})
	empty.Groups[1] = 0
	wait(t, r.start(t, empty))
	equalWords(t, "zero-sized grid", read(t, dst, 64), ramp(64))
}

// What nobody waits for is done all the same, and costs nothing then.
func neverAwaited(t *testing.T, r *rig) {
	const n, turns = 500, 400
	k, a, b := r.load(t, "step"), r.upload(t, ramp(n)), r.alloc(t, 4*n)
	ls, want := steps(k, a, b, n, turns)
	for _, l := range ls {
		r.start(t, l)
	}
	equalWords(t, "400 Starts that nobody awaits", read(t, a, n), want)
	r.works(t)
}

// A buffer and a kernel that are closed while the device works on them are freed when it is done.
func closeStarted(t *testing.T, r *rig) {
	other, k := r.alloc(t, 256), r.load(t, "spin")
	l := r.spinLaunch(t, k, other, long/10)
	p := r.start(t, l)
	closeTwice(t, "buffer of started launches", other)
	closeTwice(t, "kernel of started launches", k)
	wait(t, p)
	r.works(t)
}

func closeDeviceStarted(t *testing.T, r *rig) {
	o := r.another(t)
	k, dst := o.load(t, "spin"), o.alloc(t, 256)
	l := o.spinLaunch(t, k, dst, long/10)
	p := []backend.Pending{o.start(t, l), o.start(t, l)}
	closeTwice(t, "device of started launches", o.dev)
	for _, p := range p {
		if tm := wait(t, p); tm.Host <= 0 {
			t.Errorf("times %+v", tm)
		}
	}
	_, err := o.dev.Start(t.Context(), l)
	checkError(t, err, "Start on a closed device")
	r.works(t)
}

func manyStart(t *testing.T, r *rig) {
	k := r.load(t, "step")
	var wg sync.WaitGroup
	for g := range 6 {
		n := 200 + 37*g
		a, b := r.upload(t, ramp(n)), r.alloc(t, int64(4*n))
		ls, want := steps(k, a, b, n, 20)
		wg.Go(func() {
			var last backend.Pending
			for _, l := range ls {
				p, err := r.dev.Start(t.Context(), l)
				if err != nil {
					t.Error(err)
					return
				}
				last = p
			}
			var both sync.WaitGroup
			for range 2 {
				both.Go(func() {
					if _, err := last.Wait(t.Context()); err != nil {
						t.Error(err)
					}
				})
			}
			both.Wait()
			got := make([]uint32, n)
			if err := a.Read(t.Context(), 0, backend.Bytes(got)); err != nil || !slices.Equal(got, want) {
				t.Errorf("goroutine %d: wrong result, error %v", g, err)
			}
		})
	}
	wg.Wait()
}
