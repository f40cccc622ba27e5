//go:build js || (cgo && amd64 && (linux || (windows && webgpu)))

// Launches that were started. One submission is in flight at a time: the next one waits for it.

package webgpu

import (
	"context"
	"time"

	"github.com/spmmrun/spmm/backend"
)

// Start waits for all batches but the last.
func (d *device) Start(ctx context.Context, launches ...backend.Launch) (backend.Pending, error) {
	begun := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.ready(ctx); err != nil {
		return nil, err
	}
	if err := d.checkAll(launches); err != nil {
		return nil, err
	}
	d.worked = 0
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n := min(len(launches), batchSize)
		if n == len(launches) {
			break
		}
		worked, err := d.runBatch(ctx, launches[:n])
		if err != nil {
			return nil, err
		}
		d.worked += worked
		launches = launches[n:]
	}
	if _, err := d.encode(launches); err != nil {
		return nil, err
	}
	d.launch()
	d.started = backend.NewTicket(begun, d.looks)
	return d.started, nil
}

// look looks whether what was started is done, unless the device is in use.
func (d *device) look() {
	if !d.mu.TryLock() {
		return
	}
	defer d.mu.Unlock()
	if d.started != nil && d.gpu.look() {
		d.finish(d.finished(false))
	}
}

// Record keeps a copy of the launches. A command buffer can be submitted once, so each run encodes them anew, into one.
func (d *device) Record(launches ...backend.Launch) (backend.Recording, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return nil, err
	}
	if err := d.checkAll(launches); err != nil {
		return nil, err
	}
	return backend.Replay(d, launches), nil
}
