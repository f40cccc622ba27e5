//go:build js || (cgo && amd64 && (linux || (windows && webgpu)))

// Devices: opening, errors, closing.

package webgpu

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spmmrun/spmm/backend"
)

// device serialises all calls with mu.
type device struct {
	info   backend.Info
	caps   backend.Caps
	limits limits
	mu     sync.Mutex
	gpu    *gpu // nil once closed

	buffers map[*buffer]struct{}
	kernels map[*kernel]struct{}
	params  paramRing
	times   backend.Batch // the launches of the next submission, to predict their time
	staging staging
	started *backend.Ticket // of the submission that is running; nil if that is a Run's
	worked  time.Duration   // by the submissions of the same Start before it
	looks   func()          // d.look
	pending int             // bytes written since the last submission: WebGPU holds a copy of them until then
}

// limits are a device's, as it was opened.
type limits struct {
	shared, invocations, groups uint32
	local                       [3]uint32
	binding                     int64 // bytes of a buffer that a kernel binds
	arguments                   int   // buffers that a kernel binds
	uniformAlign                int   // bytes
	dot4                        bool  // the language has packed_4x8_integer_dot_product
}

var errClosed = fmt.Errorf("webgpu: device, buffer or kernel %w", backend.ErrClosed)

// Devices lists the adapters.
func (Driver) Devices(ctx context.Context) ([]backend.Info, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	list, err := adapters()
	if err != nil {
		return nil, err
	}
	var infos []backend.Info
	for _, a := range list {
		infos = append(infos, a.info)
	}
	return infos, nil
}

// Open opens the adapter with all the limits it has.
func (d Driver) Open(ctx context.Context, info backend.Info) (backend.Device, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	list, err := adapters()
	if err != nil {
		return nil, err
	}
	if info.Backend != d.Name() || info.Index < 0 || info.Index >= len(list) {
		return nil, fmt.Errorf("device %s:%d: there are webgpu:0 to webgpu:%d: %w", info.Backend, info.Index, len(list)-1,
			backend.ErrUnavailable)
	}
	a := list[info.Index]
	dev := &device{info: a.info, gpu: open(a), buffers: map[*buffer]struct{}{}, kernels: map[*kernel]struct{}{}}
	dev.looks = dev.look
	err = dev.take("opening " + a.info.String())
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
	l := d.gpu.limits()
	d.limits = l
	d.caps = backend.Caps{
		Code:           backend.CodeWGSL,
		SharedBytes:    l.shared,
		MaxInvocations: l.invocations,
		MaxLocal:       l.local,
		MaxGroups:      [3]uint32{l.groups, l.groups, l.groups},
		MaxBinding:     l.binding,
		Dot4:           l.dot4,
	}
	if err := d.params.make(d); err != nil {
		return err
	}
	return d.gpu.setClock(d)
}

// failure is WebGPU's error.
type failure struct {
	kind failureKind
	text string
}

type failureKind int

// The numbers are those of native.h and of browser.js.
const (
	nothing failureKind = iota
	refused
	noMemory
	lost
)

// take returns the error that was kept since the last call, in one line. A lost device stays lost.
func (d *device) take(doing string) error {
	f := d.gpu.take()
	switch f.kind {
	case nothing:
		return nil
	case lost:
		return fmt.Errorf("webgpu: %s: %w (%s); close it and open it again", doing, backend.ErrDeviceLost, oneLine(f.text))
	case noMemory:
		return fmt.Errorf("webgpu: %s: %w", doing, backend.ErrOutOfMemory)
	}
	return fmt.Errorf("webgpu: %s: %s", doing, oneLine(f.text))
}

// oneLine brings paragraphs, with their pictures of the source, into one line of bounded length.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "")), " ")
	if r := []rune(s); len(r) > 300 {
		s = string(r[:300]) + "…"
	}
	return s
}

// usable is called, with the device locked, before any work.
func (d *device) usable() error {
	if d.gpu == nil {
		return errClosed
	}
	if d.gpu.dead() {
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
	if d.gpu == nil {
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
	d.gpu.close()
	d.gpu = nil
	return nil
}
