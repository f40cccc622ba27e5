//go:build cuda && cgo && linux && (amd64 || arm64)

// Running launches.

package cuda

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/cuda/internal/driver"
)

// flight is how long the launches of two batches should take together.
const flight = 50 * time.Millisecond

// Run submits the launches in batches, back to back in one stream; two are in flight at most.
//
// Timing.Device is the time between events before the first launch and after the last. For a short
// kernel it includes what the host takes to submit a launch: pass the launch many times to measure
// the kernel alone.
func (d *device) Run(ctx context.Context, launches ...backend.Launch) (backend.Timing, error) {
	begin := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.ready(ctx); err != nil {
		return backend.Timing{}, err
	}
	left, err := d.checkAll(launches)
	if err != nil || left == 0 {
		return backend.Timing{Host: time.Since(begin)}, err
	}
	if err := d.submit(ctx, launches, left); err != nil {
		return backend.Timing{}, err
	}
	return backend.Timing{Device: d.queue.Clock().Elapsed(), Host: time.Since(begin)}, nil
}

// ready tells why launches cannot be run, if they cannot, after waiting for what is on the device.
func (d *device) ready(ctx context.Context) error {
	if err := d.usable(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return d.settle(ctx)
}

// checkAll refuses launches before any of them runs, and counts those that are not empty.
func (d *device) checkAll(launches []backend.Launch) (n int, err error) {
	for i := range launches {
		if launches[i].Empty() {
			continue
		}
		if err := d.checkLaunch(&launches[i]); err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}

// flying is a batch on the device.
type flying struct {
	first     int           // its first launch in the run
	times     backend.Batch // its launches, to predict their time
	submitted time.Time
}

// submit passes the launches that are not empty, left of them, to the queue and awaits them.
func (d *device) submit(ctx context.Context, launches []backend.Launch, left int) error {
	batch, first := 0, 0
	for i := range launches {
		l := &launches[i]
		if l.Empty() {
			continue
		}
		f := &d.flying[batch&1]
		full := f.times.Add(&l.Kernel.(*kernel).pace, l.Groups, flight/2)
		d.add(l)
		left--
		if left > 0 && !full && !d.queue.Full() {
			continue
		}
		if err := ctx.Err(); err != nil && batch > 0 {
			return d.abandon(err)
		}
		f.first, f.submitted = first, time.Now()
		if err := d.queue.Submit(d.queue.Clock(), batch == 0, left == 0); err != nil {
			d.running = false // Submit has waited
			return d.abandon(d.fail(d.blame(launches[first:]), err))
		}
		d.running = true
		if batch > 0 { // the one before must be done before another is begun
			if err := d.await(ctx, &d.flying[(batch-1)&1], false, launches); err != nil {
				return err
			}
		}
		batch, first = batch+1, i+1
	}
	return d.await(ctx, &d.flying[(batch-1)&1], true, launches)
}

// await waits for a batch: the last one submitted or the one before.
func (d *device) await(ctx context.Context, f *flying, last bool, launches []backend.Launch) error {
	if err := d.queue.Wait(last, ctx.Err); err != nil {
		if err == ctx.Err() {
			return d.abandon(err)
		}
		d.running = false
		return d.abandon(d.fail(d.blame(launches[f.first:]), err))
	}
	now := time.Now()
	begun := f.submitted
	if d.idle.After(begun) { // the batch before was still running
		begun = d.idle
	}
	f.times.Done(now.Sub(begun))
	d.idle, d.running = now, !last
	return nil
}

// settle waits for what a cancelled Run has left running, for what was started, and for what was enqueued.
func (d *device) settle(ctx context.Context) error {
	if err := d.settleRun(ctx); err != nil {
		return err
	}
	for len(d.started) > 0 {
		if err := d.awaitFirst(ctx); err != nil {
			return err
		}
	}
	if err := d.settleEnqueued(); err != nil {
		return err
	}
	return d.lost
}

// settleRun waits for what a cancelled Run has left running.
func (d *device) settleRun(ctx context.Context) error {
	if !d.running {
		return nil
	}
	err := d.queue.Wait(true, ctx.Err)
	if err != nil && err == ctx.Err() {
		return err
	}
	d.running = false
	if err != nil {
		return d.fail("finishing a cancelled run", err)
	}
	return nil
}

// add appends a checked launch to the queue's batch.
func (d *device) add(l *backend.Launch) {
	k := l.Kernel.(*kernel)
	overlap := d.queue.Len() > 0 && k.bin.Early != 0 && !writes(d.last, l, k.bin.Early)
	d.queue.Add(k.fn, l.Groups, k.bin.Local, k.bin.Shared, l.Params, overlap)
	for _, a := range l.Args {
		d.queue.Arg(a.(*buffer).ptr)
	}
	for i := range l.Maps {
		m := &l.Maps[i]
		d.queue.Map(l.Args[m.Arg].(*buffer).ptr, m.Rows, m.Cols, m.Pitch, m.TileRows, cmp.Or(m.TileCols, 64))
	}
	d.last = l
}

// writes reports whether launch x may write one of some arguments of y.
func writes(x, y *backend.Launch, args uint32) bool {
	k := x.Kernel.(*kernel)
	for i, a := range x.Args {
		if k.bin.ReadOnly>>i&1 != 0 {
			continue
		}
		for j, b := range y.Args {
			if args>>j&1 != 0 && a.(*buffer).overlaps(b.(*buffer)) {
				return true
			}
		}
	}
	return false
}

// abandon forgets the launches of a run that ends early and were not submitted, and returns the cause.
func (d *device) abandon(cause error) error {
	d.queue.Reset()
	for i := range d.flying {
		d.flying[i].times.Drop()
	}
	return cause
}

// blame names the launch of the batch that was refused, or the first kernel of a batch that failed
// later: which launch it was the driver does not tell.
func (d *device) blame(batch []backend.Launch) string {
	at := d.queue.Refused()
	what := "launching "
	if at < 0 {
		at, what = 0, "running "
	}
	for i := range batch {
		if batch[i].Empty() {
			continue
		}
		if at == 0 {
			return what + batch[i].Kernel.(*kernel).bin.Name
		}
		at--
	}
	return what + "kernels"
}

var errKernel = errors.New("cuda: a launch has no kernel of this device")

// checkLaunch holds a launch against its kernel, the device's limits and its arguments' state.
func (d *device) checkLaunch(l *backend.Launch) error {
	k, ok := l.Kernel.(*kernel)
	if !ok || k == nil || k.dev != d {
		return errKernel
	}
	if k.closed {
		return fmt.Errorf("cuda: kernel %s %w", k.bin.Name, backend.ErrClosed)
	}
	if err := backend.CheckLaunch(l, &k.bin, &d.caps); err != nil {
		return fmt.Errorf("cuda: %w", err)
	}
	for i, a := range l.Args {
		b, ok := a.(*buffer)
		switch {
		case !ok || b == nil || b.dev != d:
			return fmt.Errorf("cuda: kernel %s: argument %d is not a buffer of this device", k.bin.Name, i)
		case b.closed:
			return fmt.Errorf("cuda: kernel %s: argument %d: %w", k.bin.Name, i, errBufferClosed)
		}
	}
	return nil
}

// The queue has room for what a launch may bring.
var _ [driver.MaxArgs - backend.MaxArgs]struct{}
var _ [driver.MaxParams - backend.MaxParams]struct{}
var _ [driver.MaxMaps - backend.MaxMaps]struct{}
