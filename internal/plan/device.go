// A device with what plans share on it: loaded kernels, measured rates, and memory of the host for copies.

package plan

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/internal/plan/model"
	"github.com/spmmrun/spmm/shaders/spec"
)

// Device is an opened device that loads each kernel once. Its methods may be called from any
// goroutine.
type Device struct {
	backend.Device
	mu      sync.Mutex
	kernels map[*spec.Variant]*loading

	// scratch lends the memory for copies that change the distance of lines, at most chunk bytes each. It is no
	// sync.Pool, which may allocate at any time.
	scratch chan []byte

	measure sync.Mutex
	rates   *model.Rates       // once measured
	own     *model.DeviceModel // the device's own over that of its kind, once read
}

// NewDevice wraps an opened device, which belongs to the result from then on.
func NewDevice(d backend.Device) *Device {
	const copies = 2 // at once: one is rearranged on the host while the other is transferred
	w := &Device{Device: d, kernels: map[*spec.Variant]*loading{}, scratch: make(chan []byte, copies)}
	for range copies {
		w.scratch <- nil
	}
	return w
}

// borrow takes memory from scratch, where it is to go back.
func (d *Device) borrow(ctx context.Context) ([]byte, error) {
	select {
	case scratch := <-d.scratch:
		return scratch, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// loading is a kernel that is loaded once. Others load meanwhile: to compile code takes up to seconds.
type loading struct {
	mu     sync.Mutex
	kernel backend.Kernel // nil: not yet, or it failed
}

// kernel returns the variant's loaded code.
func (d *Device) kernel(k *spec.Program, v *spec.Variant) (backend.Kernel, error) {
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

// limit is the size in bytes that no buffer may exceed. Kernels count elements in 32 bits, which
// bounds buffers even where the device does not.
func (d *Device) limit() int64 {
	counted := min(int64(4<<31), math.MaxInt) // 2³¹ elements of 4 bytes, and what the host can count
	if m := d.Caps().MaxBinding; m > 0 {
		return min(m, counted)
	}
	return counted
}

// alloc returns a buffer of at least n bytes, and at least a word: devices have no empty ones.
func (d *Device) alloc(bytes int64, what string) (backend.Buffer, error) {
	if m := d.limit(); bytes > m {
		return nil, fmt.Errorf("%s takes %d bytes, and a buffer of %v at most %d: %w", what, bytes, d.Info(), m, backend.ErrUnsupported)
	}
	b, err := d.Alloc(max(4, (bytes+3)&^3))
	if err != nil {
		return nil, fmt.Errorf("%s (%d bytes): %w", what, bytes, err)
	}
	return b, nil
}
