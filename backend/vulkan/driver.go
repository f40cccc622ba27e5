// The driver: listing and opening devices.

//go:build cgo && linux && !android && (amd64 || arm64 || ppc64le || riscv64 || loong64)

package vulkan

import (
	"context"

	"github.com/spmmrun/spmm/backend"
)

type driver struct{}

func init() { backend.Register(driver{}) }

func (driver) Name() string { return "vulkan" }

func (driver) Devices(ctx context.Context) ([]backend.Info, error) {
	list, err := present(ctx)
	if err != nil {
		return nil, err
	}
	infos := make([]backend.Info, len(list))
	for i, a := range list {
		infos[i] = a.info
	}
	return infos, nil
}

func (driver) Open(ctx context.Context, info backend.Info) (backend.Device, error) {
	list, err := present(ctx)
	if err != nil {
		return nil, err
	}
	if info.Index < 0 || info.Index >= len(list) {
		return nil, unavailable("there is no device %d (there are %d, counted from 0)", info.Index, len(list))
	}
	a := list[info.Index]
	if info.Name != "" && info.Name != a.info.Name {
		return nil, unavailable("device %d is %q now, not %q; list the devices again", info.Index, a.info.Name, info.Name)
	}
	return openDevice(a)
}

// present lists the devices.
func present(ctx context.Context) ([]*adapter, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	in, err := getInstance()
	if err != nil {
		return nil, err
	}
	return adapters(in)
}
