// Package cpu is the backend that is always there: kernels are Go functions, one call per workgroup, spread
// over all cores by a persistent pool of goroutines. It needs no driver and no cgo.
//
// Memory is the host's: Alloc takes it from the system at once (no overcommit: what is not there is
// ErrOutOfMemory, not a killed process), and a kernel's panic is an error of Run.
package cpu

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/spmmrun/spmm/backend"
)

func init() { backend.Register(Driver{}) }

// Driver lists one device: all cores that this process may use.
type Driver struct{}

// Name is "cpu".
func (Driver) Name() string { return "cpu" }

// Devices lists the processor.
func (Driver) Devices(ctx context.Context) ([]backend.Info, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return []backend.Info{processor()}, nil
}

// Open starts the device's workers; Close ends them.
func (d Driver) Open(ctx context.Context, info backend.Info) (backend.Device, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if info.Backend != d.Name() || info.Index != 0 {
		return nil, fmt.Errorf("device %s:%d: there is only cpu:0: %w", info.Backend, info.Index, backend.ErrUnavailable)
	}
	dev := &device{info: processor(), buffers: map[*buffer]struct{}{}}
	dev.pool.start(runtime.GOMAXPROCS(0))
	dev.groups = dev.runGroups
	return dev, nil
}

var errClosed = fmt.Errorf("cpu: device, buffer or kernel %w", backend.ErrClosed)

// device serialises all calls with mu, which also guards every buffer's memory and kernel's state.
type device struct {
	info    backend.Info
	mu      sync.Mutex
	closed  bool
	pool    pool
	buffers map[*buffer]struct{}
	jobs    []*job // started and not done; the first is running

	// The launch being run, for runGroups. They live here so that a repeated Run allocates nothing.
	groups func(lo, hi int64)
	fn     backend.GroupFunc
	args   [backend.MaxArgs][]byte
	nargs  int
	params []byte
	grid   [3]uint32
	stop   <-chan struct{} // closed when the run's context ends
}

func (d *device) Info() backend.Info { return d.info }

// Caps has no limits on workgroups: a Go function is a whole one.
func (d *device) Caps() backend.Caps {
	return backend.Caps{
		Code: backend.CodeGo, SubgroupMin: 1, SubgroupMax: 1, Int8: true, F64: true,
		MaxInvocations: math.MaxInt32, MaxLocal: [3]uint32{math.MaxInt32, math.MaxInt32, math.MaxInt32},
		MaxGroups: [3]uint32{math.MaxInt32, math.MaxUint16, math.MaxUint16}, // the product fits 63 bits
		Units:     d.pool.workers(),
	}
}

type kernel struct {
	dev    *device
	bin    backend.Binary
	closed bool
}

// Load takes a Go function.
func (d *device) Load(b backend.Binary) (backend.Kernel, error) {
	caps := d.Caps()
	if err := backend.CheckBinary(&b, &caps); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errClosed
	}
	return &kernel{dev: d, bin: b}, nil
}

func (k *kernel) Close() error {
	k.dev.mu.Lock()
	defer k.dev.mu.Unlock()
	k.dev.settle(context.Background())
	k.closed = true
	return nil
}

// Run looks at the context before each launch, and its workers do so between workgroups.
func (d *device) Run(ctx context.Context, launches ...backend.Launch) (backend.Timing, error) {
	start := time.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.settle(ctx); err != nil {
		return backend.Timing{}, err
	}
	if err := d.checkAll(launches); err != nil {
		return backend.Timing{}, err
	}
	begin := time.Now()
	for i := range launches {
		if err := ctx.Err(); err != nil {
			return backend.Timing{}, err
		}
		if err := d.launch(ctx, &launches[i]); err != nil {
			return backend.Timing{}, err
		}
	}
	end := time.Now()
	return backend.Timing{Device: end.Sub(begin), Host: end.Sub(start)}, nil
}

// checkAll refuses launches before any of them runs.
func (d *device) checkAll(launches []backend.Launch) error {
	if d.closed {
		return errClosed
	}
	caps := d.Caps()
	for i := range launches {
		if err := d.check(&launches[i], &caps); err != nil {
			return err
		}
	}
	return nil
}

func (d *device) check(l *backend.Launch, caps *backend.Caps) error {
	k, ok := l.Kernel.(*kernel)
	if !ok || k == nil || k.dev != d {
		return errors.New("launch of a kernel that this device did not load")
	}
	if k.closed {
		return errClosed
	}
	if err := backend.CheckLaunch(l, &k.bin, caps); err != nil {
		return err
	}
	for i, a := range l.Args {
		b, ok := a.(*buffer)
		if !ok || b == nil || b.dev != d {
			return fmt.Errorf("kernel %s: argument %d is no buffer of this device", k.bin.Name, i)
		}
		if b.mem == nil {
			return fmt.Errorf("kernel %s: argument %d: %w", k.bin.Name, i, errClosed)
		}
	}
	return nil
}

// launch runs all groups of a launch; fewer, and the context's error, if the context ends.
func (d *device) launch(ctx context.Context, l *backend.Launch) error {
	n := int64(l.Groups[0]) * int64(l.Groups[1]) * int64(l.Groups[2])
	if n == 0 {
		return nil
	}
	k := l.Kernel.(*kernel)
	d.fn, d.params, d.grid, d.nargs = k.bin.Func, l.Params, l.Groups, len(l.Args)
	for i, a := range l.Args {
		d.args[i] = a.(*buffer).mem
	}
	d.stop = ctx.Done()
	err := d.pool.do(d.stop, n, d.groups)
	stopped := ended(d.stop)
	d.params, d.args, d.stop = nil, [backend.MaxArgs][]byte{}, nil
	if err != nil {
		return fmt.Errorf("kernel %s: %w", k.bin.Name, err)
	}
	if stopped {
		return ctx.Err()
	}
	return nil
}

// between is the number of groups between a worker's looks whether the run's context has ended: a look takes some
// nanoseconds, which the smallest groups would feel.
const between = 8

// runGroups runs groups lo…hi-1 of the grid, counted with x fastest.
func (d *device) runGroups(lo, hi int64) {
	nx, ny := int64(d.grid[0]), int64(d.grid[1])
	g := [3]uint32{uint32(lo % nx), uint32(lo / nx % ny), uint32(lo / nx / ny)}
	args := d.args[:d.nargs:d.nargs]
	for ; lo < hi && !ended(d.stop); lo += between {
		for range min(hi-lo, between) {
			d.fn(args, d.params, g)
			if g[0]++; g[0] == d.grid[0] {
				g[0] = 0
				if g[1]++; g[1] == d.grid[1] {
					g[1] = 0
					g[2]++
				}
			}
		}
	}
}

// Close waits for the call in progress and for what was started, then frees all buffers and ends the workers.
func (d *device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		d.settle(context.Background())
		return nil
	}
	d.closed = true // so that nothing else is started
	d.settle(context.Background())
	var errs []error
	for b := range d.buffers {
		errs = append(errs, b.free())
	}
	d.pool.end()
	return errors.Join(errs...)
}
