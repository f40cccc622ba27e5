//go:build cuda && cgo && linux && (amd64 || arm64)

// Kernels: loading PTX, and checking it against what the table says of it.

package cuda

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"

	"gorgonia.org/cu"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/backend/cuda/internal/driver"
)

// kernel is a function of a loaded library.
type kernel struct {
	dev    *device
	fn     cu.Function
	bin    backend.Binary // without its code
	pace   backend.Pace
	closed bool
}

// defaultShared is the shared memory that a kernel may use without a request.
const defaultShared = 48 << 10

// Load makes a kernel of PTX. Code is compiled once per content and stays loaded until the device is closed.
// Compiling takes up to seconds: the device does other things meanwhile, and several goroutines compile different
// code at once.
func (d *device) Load(b backend.Binary) (backend.Kernel, error) {
	if err := backend.CheckBinary(&b, &d.caps); err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	d.loading.RLock()
	defer d.loading.RUnlock()
	l, err := d.library(b.Code)
	if err != nil {
		return nil, err
	}
	fn, log, err := d.compile(l, b)
	if err != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		return nil, d.failLoad(b, log, err)
	}
	if err := d.enter(context.Background(), false); err != nil {
		return nil, err
	}
	defer d.leave()
	if err := d.checkFunction(b, fn); err != nil {
		return nil, err
	}
	b.Code = nil
	return &kernel{dev: d, fn: fn, bin: b}, nil
}

// library is code that is compiled once.
type library struct {
	mu     sync.Mutex      // held while the driver compiles
	loaded *driver.Library // nil before the driver has compiled it
}

// library returns that of some code.
func (d *device) library(code []byte) (*library, error) {
	key := sha256.Sum256(code)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return nil, err
	}
	l := d.code[key]
	if l == nil {
		l = new(library)
		d.code[key] = l
	}
	return l, nil
}

// compile returns the binary's function. The device's lock is not held meanwhile.
func (d *device) compile(l *library, b backend.Binary) (fn cu.Function, log string, err error) {
	if err := d.push(); err != nil {
		return fn, "", err
	}
	defer d.pop()
	defer driver.Relax()()
	return l.function(b)
}

// function returns the binary's function for the current context. Drivers compile when the library is loaded or when
// its function is looked up; where either fails nothing is kept, and the next call tries again.
func (l *library) function(b backend.Binary) (fn cu.Function, log string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.loaded != nil {
		return l.loaded.Function(b.Entry)
	}
	loaded, log, err := driver.LoadLibrary(b.Code)
	if err != nil {
		return fn, log, err
	}
	if fn, log, err = loaded.Function(b.Entry); err != nil {
		loaded.Unload() // the first error says more
		return fn, log, err
	}
	l.loaded = loaded
	return fn, "", nil
}

// failLoad wraps the error of a call that loads. The caller holds mu.
func (d *device) failLoad(b backend.Binary, log string, err error) error {
	if driver.Code(err) == driver.NotFound {
		return fmt.Errorf("cuda: %s: its PTX has no function %q", b.Name, b.Entry)
	}
	return d.note(loadError(b.Name, log, b.Code, cu.Version(), err))
}

// checkFunction holds the compiled function against the binary: its registers must allow the
// workgroup, its shared memory must fit, and its parameters must be those that a launch passes.
func (d *device) checkFunction(b backend.Binary, fn cu.Function) error {
	most, err := fn.Attribute(cu.FnMaxThreadsPerBlock)
	if err != nil {
		return d.fail("loading "+b.Name, err)
	}
	if threads := b.Local[0] * b.Local[1] * b.Local[2]; threads > uint32(most) {
		return fmt.Errorf("cuda: %s: %w: its registers allow workgroups of %d invocations, it has %d",
			b.Name, backend.ErrUnsupported, most, threads)
	}
	static, err := fn.Attribute(cu.SharedSizeBytes)
	if err != nil {
		return d.fail("loading "+b.Name, err)
	}
	if total := uint64(static) + uint64(b.Shared); total > uint64(d.caps.SharedBytes) {
		return fmt.Errorf("cuda: %s: %w: a workgroup uses %d bytes of shared memory, the device has %d",
			b.Name, backend.ErrUnsupported, total, d.caps.SharedBytes)
	}
	if b.Shared+uint32(static) > defaultShared && b.Shared > d.shared[fn] {
		if err := driver.SetMaxDynamicShared(fn, b.Shared); err != nil {
			return d.fail("loading "+b.Name, err)
		}
		d.shared[fn] = b.Shared
	}
	return d.checkParams(b, fn)
}

// checkParams compares the function's parameters with the binary's: a mismatch would make the
// device read what is not there. Drivers before CUDA 12.4 do not tell.
func (d *device) checkParams(b backend.Binary, fn cu.Function) error {
	want := make([]int, b.Args, b.Args+1+b.Maps)
	for i := range want {
		want[i] = 8
	}
	if b.ParamBytes > 0 {
		want = append(want, b.ParamBytes)
	}
	for range b.Maps {
		want = append(want, driver.MapBytes)
	}
	for i := 0; i <= len(want); i++ {
		size, err := driver.ParamSize(fn, i)
		switch {
		case driver.Code(err) == driver.SymbolNotFound:
			return nil
		case driver.Code(err) == driver.InvalidValue:
			if i < len(want) {
				return fmt.Errorf("cuda: %s: its PTX has %d parameters, its table %d", b.Name, i, len(want))
			}
		case err != nil:
			return d.fail("loading "+b.Name, err)
		case i == len(want):
			return fmt.Errorf("cuda: %s: its PTX has more than the %d parameters of its table", b.Name, i)
		case size != want[i]:
			return fmt.Errorf("cuda: %s: parameter %d has %d bytes in its PTX and %d in its table", b.Name, i, size, want[i])
		}
	}
	return nil
}

// Close ends the kernel's use. Its library stays, for the next Load of the same code.
func (k *kernel) Close() error {
	k.dev.mu.Lock()
	k.closed = true
	k.dev.mu.Unlock()
	return nil
}
