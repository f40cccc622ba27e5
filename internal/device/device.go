// Package device wraps an opened device.
//
// It decides how large a buffer may be, and how data are copied to one. It keeps what all plans on the device share:
// loaded kernels, memory for copies, and what is known of the device's speed.
package device

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/memory"
	"github.com/spmmrun/spmm/internal/model"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Device is an opened device that loads each kernel once. Its methods may be called from any
// goroutine.
type Device struct {
	backend.Device
	mu      sync.Mutex
	kernels map[*spec.Variant]*loading

	// scratch has the memory for copies that rearrange data, at most chunk bytes each. A sync.Pool could free it and
	// allocate again at any time.
	scratch chan []byte

	Speed Speed
}

// Speed is how fast a device is, as far as it was measured. Package choose fills and reads it.
type Speed struct {
	sync.Mutex
	Rates *model.Rates       // nil until measured
	Seen  *model.Rates       // these, raised to what multiplications reached; nil: none has exceeded them
	Again bool               // they were measured again, as one exceeded them
	Model *model.DeviceModel // nil until read; the device's own model over that of its kind
}

// New wraps an opened device, which belongs to the result from then on.
func New(d backend.Device) *Device {
	const copies = 2 // at once: one is rearranged on the host while the other is transferred
	w := &Device{Device: d, kernels: map[*spec.Variant]*loading{}, scratch: make(chan []byte, copies)}
	for range copies {
		w.scratch <- nil
	}
	return w
}

// Borrow lends memory for a copy. The caller calls giveBack.
func (d *Device) Borrow(ctx context.Context) ([]byte, error) {
	select {
	case scratch := <-d.scratch:
		return scratch, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// GiveBack returns memory that borrow lent, or larger memory in its place.
func (d *Device) GiveBack(scratch []byte) { d.scratch <- scratch }

// loading is a kernel that is loaded once. Others load meanwhile: to compile code takes up to seconds.
type loading struct {
	mu     sync.Mutex
	kernel backend.Kernel // nil: not yet, or it failed
}

// Kernel returns the variant's loaded code.
func (d *Device) Kernel(k *spec.Program, v *spec.Variant) (backend.Kernel, error) {
	d.mu.Lock()
	l := d.kernels[v]
	if l == nil {
		l = new(loading)
		d.kernels[v] = l
	}
	d.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kernel != nil {
		return l.kernel, nil
	}
	bin, err := k.Binary(v)
	if err != nil {
		return nil, err
	}
	loaded, err := d.Load(bin)
	if err != nil {
		return nil, fmt.Errorf("kernel %s on %v: %w", bin.Name, d.Info(), err)
	}
	l.kernel = loaded
	return loaded, nil
}

// Limit is the size in bytes that no buffer may exceed. Kernels count elements in 32 bits, so there is a limit even
// where the device has none.
func (d *Device) Limit() int64 {
	counted := min(int64(4<<31), math.MaxInt) // 2³¹ elements of 4 bytes, and what the host can count
	if m := d.Caps().MaxBinding; m > 0 {
		return min(m, counted)
	}
	return counted
}

// NewBuffer returns a buffer of at least that many bytes, and of at least a word, as devices have no empty buffers.
// what names it in errors. A buffer beyond the limit is backend.ErrUnsupported.
func (d *Device) NewBuffer(bytes int64, what string) (backend.Buffer, error) {
	if m := d.Limit(); bytes > m {
		return nil, fmt.Errorf("%s takes %d bytes, and a buffer of %v at most %d: %w", what, bytes, d.Info(), m,
			backend.ErrUnsupported)
	}
	b, err := d.Alloc(max(4, (bytes+3)&^3))
	if err != nil {
		return nil, fmt.Errorf("%s (%d bytes): %w", what, bytes, err)
	}
	return b, nil
}

// Memory returns the bytes that data on the device can take at most, 0 if that is unknown. Where the device does
// not tell, the host's memory is the bound.
func (d *Device) Memory() int64 {
	info := d.Info()
	switch {
	case info.Kind == "cpu":
		return memory.Available()
	case info.Memory > 0:
		return info.Memory
	}
	return memory.Total()
}

// UseStream has the device work on a stream of somebody else's; backend.OwnStream is its own.
func (d *Device) UseStream(ctx context.Context, stream uintptr) error {
	s, ok := d.Device.(backend.Streamer)
	if !ok {
		return fmt.Errorf("%v takes no streams of others, CUDA devices do: %w", d.Info(), backend.ErrUnsupported)
	}
	return s.UseStream(ctx, stream)
}

// WithoutDoubles says why a device multiplies nothing of f64, and which does.
func WithoutDoubles(c backend.Caps) string {
	const others = "the cpu backend has it, as have cuda and vulkan on most GPUs"
	switch c.Code {
	case backend.CodeWGSL:
		return "WebGPU has no numbers of 64 bits; " + others
	case backend.CodeSPIRV:
		return "it lacks the feature shaderFloat64, or room for 144 bytes of push constants; " + others
	}
	return others
}
