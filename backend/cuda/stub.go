//go:build !(cuda && cgo && linux && (amd64 || arm64))

// What takes the backend's place in builds without it.

package cuda

import (
	"context"
	"fmt"

	"github.com/spmmrun/spmm/backend"
)

func init() { backend.Register(absent{}) }

type absent struct{}

func (absent) Name() string { return "cuda" }

func (absent) Devices(context.Context) ([]backend.Info, error) { return nil, errAbsent() }

func (absent) Open(context.Context, backend.Info) (backend.Device, error) { return nil, errAbsent() }

func openContext(context.Context, uintptr) (backend.Device, error) { return nil, errAbsent() }

func errAbsent() error {
	return fmt.Errorf(`cuda: %w: this program was built without it; on 64-bit Linux with a C compiler: `+
		`eval "$(go run github.com/spmmrun/spmm/backend/cuda/env)"; CGO_ENABLED=1 go build -tags cuda`, backend.ErrUnavailable)
}
