// Running launches: a batch at a time is recorded, submitted and awaited in one call of C.

//go:build cgo && linux && !android && (amd64 || arm64 || ppc64le || riscv64 || loong64)

package vulkan

/*
#include "native.h"
*/
import "C"

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/spmmrun/spmm/backend"
)

func (d *device) Run(ctx context.Context, launches ...backend.Launch) (t backend.Timing, err error) {
	start := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.ready(ctx); err != nil {
		return t, err
	}
	if err := d.checkAll(launches); err != nil {
		return t, err
	}
	if err := ctx.Err(); err != nil {
		return t, err
	}
	if err := d.run(ctx, launches, &t); err != nil {
		return t, err
	}
	t.Host = time.Since(start)
	return t, nil
}

// run runs launches that were checked on a device that is idle, and adds to t how long it works.
func (d *device) run(ctx context.Context, launches []backend.Launch, t *backend.Timing) error {
	n := 0
	for i := range launches {
		l := &launches[i]
		if l.Empty() {
			continue
		}
		d.fill(n, l)
		n++
		if d.batch.Add(&l.Kernel.(*kernel).pace, l.Groups, flight) || n == len(d.launches) {
			if err := d.runBatch(ctx, n, t); err != nil {
				return err
			}
			n = 0
		}
	}
	if n > 0 {
		return d.runBatch(ctx, n, t)
	}
	return nil
}

// checkAll refuses launches before any of them runs.
func (d *device) checkAll(launches []backend.Launch) error {
	for i := range launches {
		if err := d.checkLaunch(&launches[i]); err != nil {
			return err
		}
	}
	return nil
}

// checkLaunch refuses a launch before anything runs.
func (d *device) checkLaunch(l *backend.Launch) error {
	k, ok := l.Kernel.(*kernel)
	switch {
	case !ok || k == nil || k.d != d:
		return errors.New("vulkan: launch of a kernel that is not of this device")
	case k.pipeline == 0:
		return fmt.Errorf("vulkan: kernel %s %w", k.bin.Name, backend.ErrClosed)
	}
	if err := backend.CheckLaunch(l, &k.bin, &d.caps); err != nil {
		return fmt.Errorf("vulkan: %w", err)
	}
	for i, a := range l.Args {
		switch b, ok := a.(*buffer); {
		case !ok || b == nil || b.d != d:
			return fmt.Errorf("vulkan: kernel %s: argument %d is not a buffer of this device", k.bin.Name, i)
		case b.block == nil:
			return fmt.Errorf("vulkan: kernel %s: argument %d: buffer %w", k.bin.Name, i, backend.ErrClosed)
		}
	}
	if d.pool.memoryType < 0 {
		return fmt.Errorf("vulkan: %s only compiles: %w", d.a.info.Name, backend.ErrUnsupported)
	}
	return nil
}

// fill writes a checked launch as number n of a batch, as C reads it: the addresses, then the parameters.
func (d *device) fill(n int, l *backend.Launch) {
	k, c := l.Kernel.(*kernel), &d.launches[n]
	if n == 0 { // what was before is waited for in any case
		d.hazards.reset()
	}
	c.wait = C.uint32_t(d.hazards.add(l))
	c.pipeline, c.layout, c.push_bytes = k.pipeline, k.layout, k.push
	c.groups = [3]C.uint32_t{C.uint32_t(l.Groups[0]), C.uint32_t(l.Groups[1]), C.uint32_t(l.Groups[2])}
	push := unsafe.Slice((*byte)(unsafe.Pointer(&c.push)), len(c.push))
	for i, a := range l.Args {
		binary.NativeEndian.PutUint64(push[8*i:], a.(*buffer).address())
	}
	copy(push[8*len(l.Args):], l.Params)
}

// flight is how long the launches that are submitted together should take.
const flight = 50 * time.Millisecond

// runBatch runs the first n launches of d.launches. When the context ends they are left running.
func (d *device) runBatch(ctx context.Context, n int, t *backend.Timing) error {
	err := ctx.Err()
	if err == nil {
		start := time.Now()
		d.running = true
		if err = d.await(ctx, C.sv_run(d.native, C.uint32_t(n)), t); err == nil {
			d.batch.Done(time.Since(start))
			return nil
		}
	}
	d.batch.Drop()
	return err
}

// settle awaits what a cancelled Run has left running, and what was started.
func (d *device) settle(ctx context.Context) error {
	if err := d.settleRun(ctx); err != nil {
		return err
	}
	for len(d.started) > 0 {
		if err := d.awaitFirst(ctx); err != nil {
			return err
		}
	}
	if d.lost {
		return errLost
	}
	return nil
}

// settleRun awaits what a cancelled Run has left running.
func (d *device) settleRun(ctx context.Context) error {
	if !d.running {
		return nil
	}
	return d.await(ctx, C.sv_wait(d.native), new(backend.Timing))
}

// await goes on waiting for launches, whose state o describes, and checks the context in between.
func (d *device) await(ctx context.Context, o C.sv_outcome, t *backend.Timing) error {
	for ; o.result == C.SV_RUNNING; o = C.sv_wait(d.native) {
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	d.running = false
	t.Device += d.time(o)
	return d.check(o.result, "vkQueueSubmit")
}

// time is the device time by the timestamps of finished launches.
func (d *device) time(o C.sv_outcome) time.Duration {
	return time.Duration(float64(uint64(o.ticks)&d.tickMask) * d.tick)
}
