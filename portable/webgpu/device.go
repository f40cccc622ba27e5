//go:build cgo && linux && amd64

// Devices: opening, limits, errors, closing.

package webgpu

// #cgo CFLAGS: -O2 -Wall -fexceptions
// #include "native.h"
// #include <stdlib.h>
import "C"

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/spmmrun/spmm/backend"
)

func linked() bool { return bool(C.wg_linked()) }

// device serialises all calls with mu. Everything that C points to lives in C's memory.
type device struct {
	info backend.Info
	caps backend.Caps
	mu   sync.Mutex
	nat  *C.wg_device // nil once closed

	buffers map[*buffer]struct{}
	kernels map[*kernel]struct{}
	params  paramRing
	batch   []C.wg_launch
	times   backend.Batch // the same launches, to predict their time
	staging staging
	started *backend.Ticket // of the submission that is running; nil if that is a Run's
	worked  time.Duration   // by the submissions of the same Start before it
	looks   func()          // d.look
	pending int             // bytes written since the last submission: wgpu holds a copy of them until then
	clock   clock
}

var errClosed = fmt.Errorf("webgpu: device, buffer or kernel %w", backend.ErrClosed)

// Open opens the adapter with all the limits it has.
func (d Driver) Open(ctx context.Context, info backend.Info) (backend.Device, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	list := adapters()
	if len(list) == 0 {
		return nil, errNoAdapter
	}
	if info.Backend != d.Name() || info.Index < 0 || info.Index >= len(list) {
		return nil, fmt.Errorf("device %s:%d: there are webgpu:0 to webgpu:%d: %w", info.Backend, info.Index, len(list)-1, backend.ErrUnavailable)
	}
	a := list[info.Index]
	dev := &device{info: a.info, buffers: map[*buffer]struct{}{}, kernels: map[*kernel]struct{}{}}
	dev.looks = dev.look
	dev.nat = (*C.wg_device)(C.calloc(1, C.sizeof_wg_device))
	restore := quietWayland(a.apis)
	C.wg_open(dev.nat, C.uint32_t(a.apis), C.size_t(a.place))
	restore()
	err := dev.take("opening " + a.info.String())
	if err == nil {
		err = dev.prepare()
	}
	if err != nil {
		dev.Close()
		return nil, err
	}
	return dev, nil
}

// prepare reads the limits, makes the parameter ring and sets the clock.
func (d *device) prepare() error {
	n := d.nat
	d.caps = backend.Caps{
		Code:           backend.CodeWGSL,
		SharedBytes:    uint32(n.maxShared),
		MaxInvocations: uint32(n.maxInvocations),
		MaxLocal:       [3]uint32{uint32(n.maxLocal[0]), uint32(n.maxLocal[1]), uint32(n.maxLocal[2])},
		MaxGroups:      [3]uint32{uint32(n.maxGroups), uint32(n.maxGroups), uint32(n.maxGroups)},
		MaxBinding:     int64(min(n.maxBinding, n.maxBuffer, 1<<62)),
	}
	if err := d.params.make(d); err != nil {
		return err
	}
	return d.setClock()
}

// take returns the error that the native side has kept since the last call, in one line.
func (d *device) take(doing string) error {
	n := d.nat
	if n.error == C.WG_OK {
		return nil
	}
	text := oneLine(C.GoString(&n.text[0]))
	if n.error == C.WG_LOST { // and stays so
		return fmt.Errorf("webgpu: %s: %w (%s); close it and open it again", doing, backend.ErrDeviceLost, text)
	}
	// wgpu reports a lack of memory as such or, from most calls, as a mistake of the caller's.
	noMemory := n.error == C.WG_NO_MEMORY || strings.Contains(text, "Not enough memory left")
	n.error = C.WG_OK
	if noMemory {
		return fmt.Errorf("webgpu: %s: %w", doing, backend.ErrOutOfMemory)
	}
	return fmt.Errorf("webgpu: %s: %s", doing, text)
}

// oneLine brings wgpu's paragraphs, with their pictures of the source, into one line of bounded length.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "")), " ")
	s = strings.TrimPrefix(s, "Validation Error Caused by: ")
	s = wgpuCall.ReplaceAllString(s, "")
	if r := []rune(s); len(r) > 300 {
		s = string(r[:300]) + "…"
	}
	return s
}

// wgpuCall is how wgpu's errors begin.
var wgpuCall = regexp.MustCompile(`^In wgpu\w+ (Shader '' )?`)

// usable is called, with the device locked, before any work.
func (d *device) usable() error {
	if d.nat == nil {
		return errClosed
	}
	if d.nat.dead {
		return d.take("using the device")
	}
	return nil
}

// ready is usable after waiting for what was started, or a cancelled Run has left running.
func (d *device) ready(ctx context.Context) error {
	if err := d.usable(); err != nil {
		return err
	}
	return d.settle(ctx)
}

func (d *device) Info() backend.Info { return d.info }
func (d *device) Caps() backend.Caps { return d.caps }

// Close frees all kernels and buffers, then the device. Of a lost device nothing can be freed any more: what it had
// goes with the process.
func (d *device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.nat == nil {
		return nil
	}
	d.settle(context.Background()) // what is lost is lost
	for k := range d.kernels {
		k.free()
	}
	for b := range d.buffers {
		b.free()
	}
	d.staging.free(d)
	d.params.free(d)
	C.wg_close(d.nat)
	if !d.nat.dead { // else wgpu still has it for its callbacks
		C.free(unsafe.Pointer(d.nat))
	}
	d.nat = nil
	return nil
}
