//go:build cuda && cgo && linux && (amd64 || arm64)

// Launches that were started: they wait in the stream, in order.

package cuda

import (
	"context"
	"slices"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/cuda/internal/driver"
)

// started is launches in the stream that are not known to be done.
type started struct {
	clock  driver.Clock
	ticket *backend.Ticket
	first  string // kernel
}

// mostStarted is how many Starts may be in flight.
const mostStarted = 4096

// Start submits all launches before it returns: what else goes into the stream runs after them.
func (d *device) Start(ctx context.Context, launches ...backend.Launch) (backend.Pending, error) {
	begun := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.room(ctx); err != nil {
		return nil, err
	}
	left, err := d.checkAll(launches)
	if err != nil {
		return nil, err
	}
	if left == 0 {
		return backend.Done(backend.Timing{Host: time.Since(begun)}), nil
	}
	return d.begin(begun, launches, func(c driver.Clock) error { return d.submitAll(ctx, c, launches, left) })
}

// room makes room for another Start.
func (d *device) room(ctx context.Context) error {
	if err := d.usable(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := d.settleRun(ctx); err != nil {
		return err
	}
	d.reap()
	for len(d.started) >= mostStarted {
		if err := d.awaitFirst(ctx); err != nil {
			return err
		}
	}
	return d.lost
}

// begin submits launches, at least one of them not empty, with a clock, and adds them to the started ones.
func (d *device) begin(begun time.Time, launches []backend.Launch, submit func(driver.Clock) error) (backend.Pending,
	error) {
	c, err := d.clock()
	if err != nil {
		return nil, err
	}
	if err := submit(c); err != nil {
		d.clocks = append(d.clocks, c)
		return nil, err
	}
	s := started{clock: c, ticket: backend.NewTicket(begun, d.look), first: firstKernel(launches)}
	d.started = append(d.started, s)
	return s.ticket, nil
}

// clock returns one that nobody uses.
func (d *device) clock() (driver.Clock, error) {
	if n := len(d.clocks); n > 0 {
		c := d.clocks[n-1]
		d.clocks = d.clocks[:n-1]
		return c, nil
	}
	if err := d.push(); err != nil {
		return driver.Clock{}, d.fail("entering the context", err)
	}
	defer d.pop()
	c, err := driver.NewClock()
	if err != nil {
		c.Destroy()
		return driver.Clock{}, d.fail("making events", err)
	}
	return c, nil
}

// submitAll passes the launches that are not empty, left of them, to the queue, which blocks while the driver's own is
// full. If the context ends in between, those submitted go on.
func (d *device) submitAll(ctx context.Context, c driver.Clock, launches []backend.Launch, left int) error {
	batch, first := 0, 0
	for i := range launches {
		if launches[i].Empty() {
			continue
		}
		d.add(&launches[i])
		left--
		if left > 0 && !d.queue.Full() {
			continue
		}
		if err := ctx.Err(); err != nil {
			return d.abandon(err)
		}
		if err := d.queue.Submit(c, batch == 0, left == 0); err != nil {
			d.running = false // Submit has waited
			return d.abandon(d.fail(d.blame(launches[first:]), err))
		}
		d.running = left > 0
		batch, first = batch+1, i+1
	}
	return nil
}

func firstKernel(launches []backend.Launch) string {
	for i := range launches {
		if !launches[i].Empty() {
			return launches[i].Kernel.(*kernel).bin.Name
		}
	}
	return "kernels"
}

// tryReap reaps unless the device is in use.
func (d *device) tryReap() {
	if d.mu.TryLock() {
		d.reap()
		d.mu.Unlock()
	}
}

// reap finishes what is done of what was started, without waiting.
func (d *device) reap() {
	for len(d.started) > 0 {
		err := d.queue.Look(d.started[0].clock)
		if err == driver.NotReady {
			return
		}
		d.finishFirst(err)
	}
}

// awaitFirst waits for what was started first.
func (d *device) awaitFirst(ctx context.Context) error {
	err := d.queue.WaitFor(d.started[0].clock, ctx.Err)
	if err != nil && err == ctx.Err() {
		return err
	}
	d.finishFirst(err)
	return nil
}

// finishFirst tells who waits for what was started first what became of it.
func (d *device) finishFirst(err error) {
	s := d.started[0]
	d.started = slices.Delete(d.started, 0, 1)
	d.clocks = append(d.clocks, s.clock)
	if err != nil {
		s.ticket.Finish(0, d.fail("running "+s.first, err))
		return
	}
	s.ticket.Finish(s.clock.Elapsed(), nil)
}
