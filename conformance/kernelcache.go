// Kernels that a device compiles once, however many parts of a run, or runs of a test, load them.

package conformance

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"

	"github.com/spmmrun/spmm/backend"
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
	rest.Code, rest.Func = nil, nil
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
