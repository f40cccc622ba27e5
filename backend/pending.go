// What was started and is not awaited yet, and lists of launches that are kept to be run again.

package backend

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"
)

// Pending stands for launches that were started. Its method may be called from any goroutine, any number of times.
type Pending interface {
	// Wait returns when the launches are done: how long they took, Host being the time from Start on, or why
	// they failed. Later calls return the same. When the context ends first, Wait returns its error within some
	// 100 ms, the launches go on, and Wait may be called again. Close of the device waits for what was
	// started, so Wait has an answer after it, too.
	Wait(ctx context.Context) (Timing, error)
}

// Recording is a list of launches to be run again and again. Its methods may be called from any goroutine.
type Recording interface {
	// Run and Start do what Device's do. They refuse to run anything once a buffer or a kernel of the recording, or the
	// device, is closed. If the launches' time is not known, the first call may run them as a list to measure it, and
	// Start may wait for that. Later calls submit prepared batches of some 50 ms, as a list does: a shorter recording is
	// one submission, and a cancelled one has at most two batches still to run. Repeated calls of Run allocate nothing on
	// the heap where the binding allows it.
	Run(ctx context.Context) (Timing, error)
	Start(ctx context.Context) (Pending, error)
	// Close waits until the recording is not running, and frees it. A second call does nothing.
	Close() error
}

// Done returns the Pending of launches that are done.
func Done(t Timing) Pending { return done(t) }

type done Timing

func (d done) Wait(context.Context) (Timing, error) { return Timing(d), nil }

// Ticket is a Pending for devices that must be polled.
type Ticket struct {
	look    func()
	begun   time.Time
	outcome atomic.Pointer[outcome]
}

type outcome struct {
	t   Timing
	err error
}

// NewTicket returns a ticket for launches whose Start was called at the time begun. Wait calls look from time to time,
// from any goroutine. look polls the device, unless another goroutine does, and has Finish called for the launches that
// are done.
func NewTicket(begun time.Time, look func()) *Ticket { return &Ticket{look: look, begun: begun} }

// Finish reports that the launches are done: how long the device worked, or why they failed. Only the first call
// counts.
func (p *Ticket) Finish(device time.Duration, err error) {
	o := &outcome{err: err}
	if err == nil {
		o.t = Timing{Device: device, Host: time.Since(p.begun)}
	}
	p.outcome.CompareAndSwap(nil, o)
}

// Wait is Pending's. It polls often at first, because short launches are done soon, and then at intervals of about a
// hundredth of the time that it has waited.
func (p *Ticket) Wait(ctx context.Context) (Timing, error) {
	const often, apart = time.Millisecond, 500 * time.Microsecond
	for start := time.Now(); ; {
		p.look()
		if o := p.outcome.Load(); o != nil {
			return o.t, o.err
		}
		if err := ctx.Err(); err != nil {
			return Timing{}, err
		}
		if waited := time.Since(start); waited < often {
			runtime.Gosched()
		} else {
			nap(min(apart, waited/100))
		}
	}
}

// CloneLaunches returns a copy of launches that shares nothing with them but kernels and buffers. Launches of an empty
// grid are left out.
func CloneLaunches(launches []Launch) []Launch {
	var list []Launch
	for _, l := range launches {
		if l.Empty() {
			continue
		}
		l.Args, l.Params, l.Maps = slices.Clone(l.Args), slices.Clone(l.Params), slices.Clone(l.Maps)
		list = append(list, l)
	}
	return list
}

// Empty reports whether the launch's grid has a zero side.
func (l *Launch) Empty() bool { return l.Groups[0] == 0 || l.Groups[1] == 0 || l.Groups[2] == 0 }

// Replay returns a Recording for devices whose API cannot prepare launches. It passes a copy of the launches to the
// device's Run or Start each time. The caller has checked them.
func Replay(d Device, launches []Launch) Recording {
	r := &replay{d: d}
	list := CloneLaunches(launches)
	r.launches.Store(&list)
	return r
}

type replay struct {
	d        Device
	launches atomic.Pointer[[]Launch] // nil once closed
}

var errRecordingClosed = fmt.Errorf("recording %w", ErrClosed)

func (r *replay) Run(ctx context.Context) (Timing, error) {
	l := r.launches.Load()
	if l == nil {
		return Timing{}, errRecordingClosed
	}
	return r.d.Run(ctx, *l...)
}

func (r *replay) Start(ctx context.Context) (Pending, error) {
	l := r.launches.Load()
	if l == nil {
		return nil, errRecordingClosed
	}
	return r.d.Start(ctx, *l...)
}

func (r *replay) Close() error {
	r.launches.Store(nil)
	return nil
}
