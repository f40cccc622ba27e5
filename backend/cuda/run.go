//go:build cuda && cgo && linux && (amd64 || arm64)

// Running launches.

package cuda

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/cuda/internal/driver"
)

// Run submits the launches in batches of driver.Batch, back to back in one stream. It looks at the
// context before each batch; two are in flight at most, so that a cancelled run ends soon.
//
// Timing.Device is the time between events before the first launch and after the last. For a short
// kernel it includes what the host takes to submit a launch: pass the launch many times to measure
// the kernel alone.
func (d *device) Run(ctx context.Context, launches ...backend.Launch) (backend.Timing, error) {
	var t backend.Timing
	begin := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return t, err
	}
	if err := ctx.Err(); err != nil {
		return t, err
	}
	left := 0
	for i := range launches {
		if empty(&launches[i]) {
			continue
		}
		if err := d.checkLaunch(&launches[i]); err != nil {
			return t, err
		}
		left++
	}
	if left > 0 {
		if err := d.submit(ctx, launches, left); err != nil {
			return t, err
		}
		t.Device = d.queue.Elapsed()
	}
	t.Host = time.Since(begin)
	return t, nil
}

func empty(l *backend.Launch) bool {
	return l.Groups[0] == 0 || l.Groups[1] == 0 || l.Groups[2] == 0
}

// submit passes the launches that are not empty, left of them, to the queue.
func (d *device) submit(ctx context.Context, launches []backend.Launch, left int) error {
	first, from := true, 0
	for i := range launches {
		if empty(&launches[i]) {
			continue
		}
		d.add(&launches[i])
		left--
		if left > 0 && !d.queue.Full() {
			continue
		}
		if err := ctx.Err(); err != nil && !first {
			return d.abandon(err)
		}
		if err := d.queue.Submit(first, left == 0); err != nil {
			return d.fail(d.blame(launches[from:]), err)
		}
		first, from = false, i+1
	}
	return nil
}

// add appends a checked launch to the queue's batch.
func (d *device) add(l *backend.Launch) {
	k := l.Kernel.(*kernel)
	d.queue.Add(k.fn, l.Groups, k.bin.Local, k.bin.Shared, l.Params)
	for _, a := range l.Args {
		d.queue.Arg(a.(*buffer).ptr)
	}
}

// abandon ends a cancelled run: what was submitted is finished first.
func (d *device) abandon(cause error) error {
	d.queue.Reset()
	if err := d.queue.Wait(); err != nil {
		return d.fail("finishing a cancelled run", err)
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
		if empty(&batch[i]) {
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
		return fmt.Errorf("cuda: kernel %s is closed", k.bin.Name)
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
