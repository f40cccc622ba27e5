// Launches that were started: command buffers in the queue, in order.

//go:build cgo && linux && !android && (amd64 || arm64 || ppc64le || riscv64 || loong64)

package vulkan

/*
#include "native.h"
*/
import "C"

import (
	"context"
	"slices"
	"time"

	"github.com/spmmrun/spmm/backend"
)

// work is launches in a command buffer of their own.
type work struct {
	native  C.sv_work
	running bool
	took    time.Duration // once it is not running
}

// started is works that were submitted and are not known to be done.
type started struct {
	works  []*work
	ticket *backend.Ticket // nil: a cancelled Run of a recording
	spare  bool            // the works are nobody's afterwards
}

// mostStarted is how many Starts may be in flight.
const mostStarted = 64

func (d *device) Start(ctx context.Context, launches ...backend.Launch) (backend.Pending, error) {
	begun := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.room(ctx); err != nil {
		return nil, err
	}
	if err := d.checkAll(launches); err != nil {
		return nil, err
	}
	works, err := d.record(launches)
	if err != nil {
		d.spare = append(d.spare, works...)
		return nil, err
	}
	return d.begin(begun, works, true)
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
	return d.usable()
}

// record brings launches that were checked into works, each predicted to take a flight. After an error too the works
// are to be used or freed.
func (d *device) record(launches []backend.Launch) (works []*work, err error) {
	defer d.cuts.Drop()
	n, open := 0, false // launches to be added to the last work, which is still being recorded
	for i := range launches {
		l := &launches[i]
		if l.Empty() {
			continue
		}
		if !open {
			w, err := d.work()
			if err != nil {
				return works, err
			}
			works, open = append(works, w), true
			if err := d.check(C.sv_work_begin(d.native, &w.native), "vkBeginCommandBuffer"); err != nil {
				return works, err
			}
		}
		w := works[len(works)-1]
		d.fill(n, l)
		n++
		full := d.cuts.Add(&l.Kernel.(*kernel).pace, l.Groups, flight)
		if full || n == len(d.launches) {
			C.sv_work_add(d.native, &w.native, C.uint32_t(n))
			n = 0
		}
		if full {
			d.cuts.Drop()
			open = false
			if err := d.check(C.sv_work_end(d.native, &w.native), "vkEndCommandBuffer"); err != nil {
				return works, err
			}
		}
	}
	if !open {
		return works, nil
	}
	w := works[len(works)-1]
	if n > 0 {
		C.sv_work_add(d.native, &w.native, C.uint32_t(n))
	}
	return works, d.check(C.sv_work_end(d.native, &w.native), "vkEndCommandBuffer")
}

// work returns one that nobody uses.
func (d *device) work() (*work, error) {
	if n := len(d.spare); n > 0 {
		w := d.spare[n-1]
		d.spare = d.spare[:n-1]
		return w, nil
	}
	w := &work{}
	if err := d.check(C.sv_work_make(d.native, &w.native), "making a command buffer"); err != nil {
		C.sv_work_free(d.native, &w.native)
		return nil, err
	}
	return w, nil
}

func (d *device) free(works []*work) {
	for _, w := range works {
		C.sv_work_free(d.native, &w.native)
	}
}

// begin submits works and adds them to what is started. spare: nobody keeps them.
func (d *device) begin(begun time.Time, works []*work, spare bool) (backend.Pending, error) {
	if len(works) == 0 {
		return backend.Done(backend.Timing{Host: time.Since(begun)}), nil
	}
	s := started{works: works, spare: spare}
	for i, w := range works {
		if err := d.submit(w); err != nil {
			if spare {
				d.spare = append(d.spare, works[i:]...)
			}
			if s.works = works[:i]; i > 0 { // those go on, for nobody
				d.started = append(d.started, s)
			}
			return nil, err
		}
	}
	s.ticket = backend.NewTicket(begun, d.look)
	d.started = append(d.started, s)
	return s.ticket, nil
}

// submit hands a work to the queue.
func (d *device) submit(w *work) error {
	if err := d.check(C.sv_work_submit(d.native, &w.native), "vkQueueSubmit"); err != nil {
		return err
	}
	w.running = true
	return nil
}

// waitFor reports whether a work is done, after waiting for it so long at most.
func (d *device) waitFor(w *work, most time.Duration) (done bool, err error) {
	if !w.running {
		return true, nil
	}
	o := C.sv_work_wait(d.native, &w.native, C.int64_t(most))
	if o.result == C.SV_RUNNING {
		return false, nil
	}
	w.running, w.took = false, d.time(o)
	return true, d.check(o.result, "vkQueueSubmit")
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
		s := &d.started[0]
		for _, w := range s.works {
			done, err := d.waitFor(w, 0)
			if !done {
				return
			}
			if err != nil {
				d.finishFirst(err)
				return
			}
		}
		d.finishFirst(nil)
	}
}

// awaitFirst waits for what was started first.
func (d *device) awaitFirst(ctx context.Context) error {
	for _, w := range d.started[0].works {
		if err := d.awaitWork(ctx, w); err != nil {
			if w.running { // the context has ended
				return err
			}
			d.finishFirst(err)
			return nil
		}
	}
	d.finishFirst(nil)
	return nil
}

// awaitWork waits for a work; when the context ends it goes on.
func (d *device) awaitWork(ctx context.Context, w *work) error {
	for {
		if done, err := d.waitFor(w, 20*time.Millisecond); done {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// finishFirst tells who waits for what was started first what became of it.
func (d *device) finishFirst(err error) {
	s := d.started[0]
	d.started = slices.Delete(d.started, 0, 1)
	var took time.Duration
	for _, w := range s.works {
		took += w.took
		w.running = false // else the device is lost
	}
	if s.spare {
		d.spare = append(d.spare, s.works...)
	}
	if s.ticket != nil {
		s.ticket.Finish(took, err)
	}
}
