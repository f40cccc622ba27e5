// Kernels that a device compiles once, however many parts of a run, or runs of a test, load them.

package conformance

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"

	"github.com/spmmrun/spmm/backend"
)

// library is the kernels of one device. Several goroutines may use it.
type library struct {
	mu      sync.Mutex
	kernels map[[sha256.Size]byte]backend.Kernel
}

func newLibrary() *library { return &library{kernels: map[[sha256.Size]byte]backend.Kernel{}} }

// lent is a kernel of a library, which closes it.
type lent struct{ backend.Kernel }

func (lent) Close() error { return nil }

// load returns the kernel of the same code, constants and limits, if there is one. Go functions cannot be compared, and
// take no time to load.
func (l *library) load(dev backend.Device, b backend.Binary) (backend.Kernel, error) {
	if b.Kind == backend.CodeGo {
		return dev.Load(b)
	}
	rest := b
	rest.Code, rest.Func = nil, nil
	key := sha256.Sum256(fmt.Appendf(nil, "%+v %s", rest, b.Code))
	l.mu.Lock()
	defer l.mu.Unlock()
	if k := l.kernels[key]; k != nil {
		return lent{k}, nil
	}
	k, err := dev.Load(b)
	if err != nil {
		return nil, err
	}
	l.kernels[key] = k
	return lent{k}, nil
}

func (l *library) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var err error
	for _, k := range l.kernels {
		err = errors.Join(err, k.Close())
	}
	clear(l.kernels)
	return err
}
