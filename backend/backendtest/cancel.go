// Cancelling: a run ends soon after its context does, and what it leaves on the device harms nobody.

package backendtest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/spmmrun/spmm/backend"
)

var cancelling = []subtest{
	{"cancelled in a long launch", cancelInLaunch},
	{"cancelled in many launches", cancelInRun},
	{"closed after a cancelled run", closeAfterCancel},
	{"timing in several batches", timingInBatches},
}

// long is how long the launches take that are cancelled, on a device that nobody else uses.
var long = 2 * time.Second

// soon is within what time a run ends after its context: far more than the contract says, since the machine may be
// busy, and far less than a long launch, which may be shorter than it was measured to be on a busy machine.
var soon = long / 4

// spinLaunch returns a launch that takes about so long. On a busy machine one measurement may be many times too long,
// so that the fastest of several, of two lengths, counts.
func (r *rig) spinLaunch(t testing.TB, k backend.Kernel, dst backend.Buffer, want time.Duration) backend.Launch {
	t.Helper()
	const enough = 10 * time.Millisecond
	l := backend.Launch{Kernel: k, Groups: [3]uint32{2048, 1, 1}, Args: []backend.Buffer{dst}}
	turns := 0.0 // a nanosecond, at the most
	for n, longEnough := uint32(16), 0; longEnough < 2; n *= 4 {
		l.Params = params(n)
		took := time.Hour
		for range 3 { // the least: others may use the device
			start := time.Now()
			r.run(t, l)
			took = min(took, time.Since(start))
		}
		turns = max(turns, float64(n)/float64(took))
		if took >= enough || n >= 1<<28 {
			longEnough++
		}
	}
	l.Params = params(uint32(min(turns*float64(want), 1<<31)))
	return l
}

// cancelSoon runs launches, which take longer than the time given, under a context that ends after a moment, and
// fails the test unless Run returns its error before.
func (r *rig) cancelSoon(t testing.TB, before time.Duration, l ...backend.Launch) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer time.AfterFunc(10*time.Millisecond, cancel).Stop()
	start := time.Now()
	_, err := r.dev.Run(ctx, l...)
	if took := time.Since(start); took > before {
		t.Errorf("Run returned %v after its context ended", took)
	}
	checkError(t, err, "cancelled Run", context.Canceled)
}

func cancelInLaunch(t *testing.T, r *rig) {
	k, dst := r.load(t, "spin"), r.alloc(t, 256)
	l := r.spinLaunch(t, k, dst, long)
	r.cancelSoon(t, soon, l)

	// The device may be busy: a copy whose own context ends says so, and one that waits is right.
	b := r.alloc(t, 256)
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := b.Write(ctx, 0, make([]byte, 256)); err != nil {
		checkError(t, err, "Write on a busy device", context.DeadlineExceeded)
	}
	r.works(t)

	// The same launch in full, with a buffer and a kernel closed while the device is busy.
	other, k2 := r.alloc(t, 256), r.load(t, "spin")
	l.Args, l.Kernel = []backend.Buffer{other}, k2
	r.cancelSoon(t, soon, l)
	closeTwice(t, "buffer of a cancelled run", other)
	closeTwice(t, "kernel of a cancelled run", k2)
	r.works(t)
}

// Of a list of launches the device has no more than a part when Run returns.
func cancelInRun(t *testing.T, r *rig) {
	k, dst := r.load(t, "spin"), r.alloc(t, 256)
	l := r.spinLaunch(t, k, dst, long/100)
	r.run(t, l)
	start := time.Now()
	r.cancelSoon(t, soon, slices.Repeat([]backend.Launch{l}, 300)...)
	r.works(t)
	if took := time.Since(start); took > 2*long {
		t.Errorf("the device worked for %v after a cancelled Run of 300 launches of %v", took, long/100)
	}
}

func closeAfterCancel(t *testing.T, r *rig) {
	o := r.another(t)
	k, dst := o.load(t, "spin"), o.alloc(t, 256)
	o.cancelSoon(t, soon, o.spinLaunch(t, k, dst, long))
	closeTwice(t, "device of a cancelled run", o.dev)
	r.works(t)
}

// timedSpin returns a launch of some milliseconds, and its times: on the device the least of several.
func (r *rig) timedSpin(t *testing.T) (backend.Launch, backend.Timing) {
	t.Helper()
	k, dst := r.load(t, "spin"), r.alloc(t, 256)
	l := r.spinLaunch(t, k, dst, 30*time.Millisecond)
	one := r.run(t, l)
	for range 4 {
		one.Device = min(one.Device, r.run(t, l).Device)
	}
	return l, one
}

// Device time is the sum of all parts of a run, and no more than the run took.
func timingInBatches(t *testing.T, r *rig) {
	l, one := r.timedSpin(t)
	start := time.Now()
	all := r.run(t, slices.Repeat([]backend.Launch{l}, 8)...)
	if wall := time.Since(start); all.Host > wall || all.Device > wall+wall/10 {
		t.Errorf("times %+v of a call that took %v", all, wall)
	}
	if one.Device > 0 && all.Device < 2*one.Device { // other programs may have slowed down the one
		t.Errorf("8 launches took the device %v, one of them %v", all.Device, one.Device)
	}
}
