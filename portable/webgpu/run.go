//go:build js || (cgo && amd64 && (linux || (windows && webgpu)))

// Running launches: in batches that share one command buffer, one upload of parameters and one wait.

package webgpu

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spmmrun/spmm/backend"
)

// batchSize is the most launches that are submitted together.
const batchSize = 256

// paramRing is a uniform buffer with a slot for each launch of a batch, and what was last written to it: a
// repeated Run with the same parameters uploads nothing.
type paramRing struct {
	ref     ref
	slot    int
	written []byte
	next    []byte
}

func (r *paramRing) make(d *device) error {
	r.slot = slotSize(d.limits.uniformAlign)
	r.written, r.next = make([]byte, 0, batchSize*r.slot), make([]byte, 0, batchSize*r.slot)
	r.ref = d.gpu.buffer(useUniform, int64(batchSize*r.slot))
	return d.take("the buffer for parameters")
}

// slotSize returns the bytes of a slot: room for a launch's parameters, and a multiple of the alignment, a power of
// two, that the device asks of offsets.
func slotSize(align int) int {
	align = max(align, 4)
	return (backend.MaxParams + align - 1) &^ (align - 1)
}

func (r *paramRing) free(d *device) {
	if r.ref != none {
		d.gpu.freeBuffer(r.ref)
	}
	*r = paramRing{}
}

// add puts a block into the next slot and returns its offset.
func (r *paramRing) add(block []byte) int {
	off := len(r.next)
	r.next = r.next[:off+r.slot]
	clear(r.next[off+copy(r.next[off:], block):])
	return off
}

// upload writes the slots, unless the buffer holds them already.
func (r *paramRing) upload(d *device) {
	if len(r.next) > 0 && !bytes.HasPrefix(r.written, r.next) {
		d.gpu.write(r.ref, 0, r.next)
		r.written, r.next = r.next, r.written
	}
	r.next = r.next[:0]
}

// flight is how long the launches that are submitted together should take.
const flight = 50 * time.Millisecond

func (d *device) Run(ctx context.Context, launches ...backend.Launch) (backend.Timing, error) {
	start := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.ready(ctx); err != nil {
		return backend.Timing{}, err
	}
	if err := d.checkAll(launches); err != nil {
		return backend.Timing{}, err
	}
	var t backend.Timing
	for len(launches) > 0 {
		if err := ctx.Err(); err != nil {
			return t, err
		}
		n := d.cut(launches)
		worked, err := d.runBatch(ctx, launches[:n])
		if err != nil {
			d.times.Drop()
			return t, err
		}
		t.Device += worked
		launches = launches[n:]
	}
	t.Host = time.Since(start)
	return t, nil
}

// cut returns how many of the launches, which were checked, to submit together.
func (d *device) cut(launches []backend.Launch) int {
	n := 0
	for n < min(len(launches), batchSize) {
		l := &launches[n]
		n++
		if !l.Empty() && d.times.Add(&l.Kernel.(*kernel).pace, l.Groups, flight) {
			break
		}
	}
	return n
}

// checkAll refuses launches before any of them runs.
func (d *device) checkAll(launches []backend.Launch) error {
	for i := range launches {
		if err := d.check(&launches[i]); err != nil {
			return err
		}
	}
	return nil
}

func (d *device) check(l *backend.Launch) error {
	k, ok := l.Kernel.(*kernel)
	if !ok || k == nil || k.dev != d {
		return errors.New("launch of a kernel that this device did not load")
	}
	if k.nat == nil {
		return errClosed
	}
	if err := backend.CheckLaunch(l, &k.bin, &d.caps); err != nil {
		return err
	}
	for i, a := range l.Args {
		b, ok := a.(*buffer)
		if !ok || b == nil || b.dev != d {
			return fmt.Errorf("kernel %s: argument %d is no buffer of this device", k.bin.Name, i)
		}
		if b.ref == none {
			return fmt.Errorf("kernel %s: argument %d: %w", k.bin.Name, i, errClosed)
		}
	}
	return nil
}

// runBatch submits launches that were checked, waits, and returns the time the device worked.
func (d *device) runBatch(ctx context.Context, launches []backend.Launch) (time.Duration, error) {
	start := time.Now()
	n, err := d.encode(launches)
	if err != nil || n == 0 {
		return 0, err
	}
	worked, err := d.submit(ctx)
	if err == nil {
		d.times.Done(time.Since(start))
	}
	return worked, err
}

// encode makes launches that were checked the batch to submit next, and returns how many there are that do something.
func (d *device) encode(launches []backend.Launch) (n int, err error) {
	d.gpu.reset()
	d.params.next = d.params.next[:0]
	for i := range launches {
		launches[i].Kernel.(*kernel).trim()
	}
	for i := range launches {
		if launches[i].Empty() {
			continue
		}
		if err := d.append(&launches[i]); err != nil {
			return 0, err
		}
		n++
	}
	d.params.upload(d)
	return n, nil
}

func (d *device) append(l *backend.Launch) error {
	k := l.Kernel.(*kernel)
	var args arguments
	for i, a := range l.Args {
		args[i] = a.(*buffer)
	}
	group, err := k.group(args)
	if err != nil {
		return err
	}
	offset := -1
	if len(l.Params) > 0 {
		offset = d.params.add(l.Params)
	}
	d.gpu.append(k.nat, group, offset, l.Groups)
	return nil
}

// submit runs the batch, which may be empty. When the context ends it is left running.
func (d *device) submit(ctx context.Context) (time.Duration, error) {
	d.launch()
	return d.await(ctx, true)
}

// launch submits the batch.
func (d *device) launch() {
	d.pending = 0
	d.gpu.run()
}

// await waits for what was submitted, just now or not.
func (d *device) await(ctx context.Context, now bool) (time.Duration, error) {
	if err := d.gpu.await(ctx); err != nil {
		return 0, err
	}
	return d.finished(now)
}

// finished returns what became of a submission that is not running any more; now: and was until now.
func (d *device) finished(now bool) (time.Duration, error) {
	if err := d.take("running kernels"); err != nil {
		d.params.written = d.params.written[:0] // what the ring holds now is not known
		return 0, err
	}
	return d.gpu.worked(now), nil
}

// settle waits for what was started, or a cancelled Run has left running.
func (d *device) settle(ctx context.Context) error {
	if d.started == nil && !d.gpu.running() {
		return nil
	}
	worked, err := d.await(ctx, false)
	if d.gpu.running() { // the context has ended
		return err
	}
	if d.started == nil {
		return err
	}
	d.finish(worked, err)
	return d.usable()
}

// finish tells who waits for the submission that is done.
func (d *device) finish(worked time.Duration, err error) {
	d.started.Finish(d.worked+worked, err)
	d.started = nil
}
