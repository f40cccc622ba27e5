// The driver of builds that cannot hold the real one.

//go:build !cgo || !linux || android || !(amd64 || arm64 || ppc64le || riscv64 || loong64)

package vulkan

import (
	"context"
	"fmt"

	"github.com/spmmrun/spmm/backend"
)

type driver struct{}

func init() { backend.Register(driver{}) }

func (driver) Name() string { return "vulkan" }

func (driver) Devices(context.Context) ([]backend.Info, error) { return nil, errNotBuilt() }

func (driver) Open(context.Context, backend.Info) (backend.Device, error) { return nil, errNotBuilt() }

func errNotBuilt() error {
	return fmt.Errorf("vulkan: %w: this program was built without it; build on 64-bit Linux with a C compiler and CGO_ENABLED=1", backend.ErrUnavailable)
}
