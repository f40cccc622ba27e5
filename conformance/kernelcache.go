// Kernels that a device compiles once, however many parts of a run, or runs of a test, load them.

package conformance

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/spmmrun/spmm/backend"
	"github.com/spmmrun/spmm/shaders/spec"
)

// kernelCache keeps the loaded kernels of one device. Several goroutines may use it.
type kernelCache struct {
	mu      sync.Mutex
	kernels map[[sha256.Size]byte]*compiled
}

// compiled is a kernel that is loaded once.
type compiled struct {
	once   sync.Once
	kernel backend.Kernel
	err    error
}

func newKernelCache() *kernelCache {
	return &kernelCache{kernels: map[[sha256.Size]byte]*compiled{}}
}

// cachedKernel is a kernel that its cache closes, and no one else.
type cachedKernel struct{ backend.Kernel }

func (cachedKernel) Close() error { return nil }

// load returns the kernel of the same code, constants and limits, if there is one. Go functions cannot be compared, and
// take no time to load.
func (c *kernelCache) load(dev backend.Device, b backend.Binary) (backend.Kernel, error) {
	if b.Kind == backend.CodeGo {
		return dev.Load(b)
	}
	rest := b
	rest.Name, rest.Code, rest.Func = "", nil, nil // several variants may have the same code
	key := sha256.Sum256(fmt.Appendf(nil, "%+v %s", rest, b.Code))
	c.mu.Lock()
	k := c.kernels[key]
	if k == nil {
		k = new(compiled)
		c.kernels[key] = k
	}
	c.mu.Unlock()
	k.once.Do(func() { k.kernel, k.err = dev.Load(b) })
	return cachedKernel{k.kernel}, k.err
}

// preload loads the kernels that tests are for, in the tests' order, several at once: runners ask for one after the
// other, since neighbouring tests run the same ones, and a device takes up to seconds to compile one. Errors come again
// where a runner asks.
func (c *kernelCache) preload(ctx context.Context, dev backend.Device, may *eligibility, tests []test) {
	if dev.Caps().Code == backend.CodeGo || runtime.GOMAXPROCS(0) == 1 { // nothing to compile, or nobody to
		return
	}
	forms := make(chan form)
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for f := range forms {
				if bin, err := f.of.Binary(f.v); err == nil {
					_, _ = c.load(dev, bin)
				}
			}
		})
	}
	seen := map[*spec.Variant]bool{}
	for i := range tests {
		vs, _ := may.variants(&tests[i])
		for _, v := range vs {
			if v == nil || seen[v] || ctx.Err() != nil {
				continue
			}
			seen[v] = true
			for _, x := range []*spec.Variant{v, v.Before, v.Epilogue, v.Vector, v.IntoColumns} {
				if x != nil {
					forms <- form{tests[i].kernel.Program, x}
				}
			}
		}
	}
	close(forms)
	wait.Wait()
}

// form is a variant of a kernel, or what it runs before it, or another form of it.
type form struct {
	of *spec.Program
	v  *spec.Variant
}

func (c *kernelCache) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var err error
	for _, k := range c.kernels {
		if k.err == nil {
			err = errors.Join(err, k.kernel.Close())
		}
	}
	clear(c.kernels)
	return err
}
